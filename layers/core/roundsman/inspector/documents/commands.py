"""Documents about commands to the task of one order, and about answers to callbacks."""

from typing import Literal, TypeAlias, TypedDict

from roundsman.inspector.documents.constraints import Count
from roundsman.model.events import CommandKind
from roundsman.model.states import ProcessState, TaskState

Outcome: TypeAlias = Literal["done", "refused", "sent", "unconfirmed"]
"""How a command ended."""


class CommandDocument(TypedDict):
    """The result of a command for one order."""

    orderId: str
    command: CommandKind
    outcome: Outcome
    sentence: str
    """The result in words, for people."""
    commandId: str | None
    """The id of the command in the task's history; null if the command was not sent."""
    by: str
    reason: str
    state: TaskState | None
    """The state of the task; null if the task no longer exists or cannot be read."""
    version: Count | None


class AnswerDocument(TypedDict):
    """The result of an answer to a callback."""

    orderId: str
    command: Literal["answer"]
    step: str
    outcome: Outcome
    sentence: str
    """The result in words, for people."""
    processState: ProcessState | None
    state: TaskState | None
    version: Count | None
