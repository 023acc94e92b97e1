"""Documents about commands to the task of one order, and about answers to callbacks."""

from typing import Literal, NotRequired, TypeAlias, TypedDict

from roundsman.definition.plan_differences import Change
from roundsman.model.events import CommandKind
from roundsman.model.states import ProcessState, TaskState
from roundsman_console.base.constraints import Count

Outcome: TypeAlias = Literal["done", "refused", "sent", "unconfirmed", "dryRun"]
"""How a command ended; `dryRun` if it is possible and was not to be sent."""


class PlanDifferenceDocument(TypedDict):
    """One difference between two plans."""

    change: Change
    step: str | None
    """The step; null if the difference is about the whole workflow."""
    sentence: str
    """The difference in words."""


class PlanMoveDocument(TypedDict):
    """The change of a task's plan by `resubmit --plan newest`."""

    before: str
    """The hash of the task's plan."""
    after: str
    """The hash of the newest plan."""
    differences: list[PlanDifferenceDocument] | None
    """Empty if the plans are the same; null if the task's plan is not stored."""


class InputChangeDocument(TypedDict):
    """A change of the input of a task."""

    path: str
    before: str | None
    """The value as JSON text, cut if it is long; `(masked)` where the input type says so. Null if
    there was no value."""
    after: str | None
    """The same for the new value; null if the value is removed."""


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
    plan: NotRequired[PlanMoveDocument]
    """Only of `resubmit --plan newest`."""
    input: NotRequired[list[InputChangeDocument]]
    """Only of a `resubmit` that corrects the input, if the corrected input is valid."""


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
