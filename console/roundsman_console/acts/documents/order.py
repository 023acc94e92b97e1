"""Documents about commands to the task of one order, and about answers to callbacks."""

from collections.abc import Sequence
from typing import Literal, NotRequired, TypeAlias, TypedDict

from roundsman.model.events import CommandKind
from roundsman.model.states import TaskState
from roundsman_console.acts.changes import InputChange, PlanMove
from roundsman_console.base.constraints import Count

Outcome: TypeAlias = Literal["done", "refused", "sent", "unconfirmed", "dryRun"]
"""How a command ended; `dryRun` if it is possible and was not to be sent."""


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
    plan: NotRequired[PlanMove]
    """Only of `resubmit --plan newest`."""
    input: NotRequired[Sequence[InputChange]]
    """Only of a `resubmit` that corrects the input, if the corrected input is valid."""
