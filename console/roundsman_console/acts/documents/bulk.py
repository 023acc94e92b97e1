"""Documents about bulk runs: one command for many orders."""

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypeAlias, TypedDict

from roundsman.model.events import CommandKind
from roundsman_console.acts.changes import BulkPlanMove, InputChange
from roundsman_console.base.constraints import (
    Count,
    Duration,
    Instant,
    Keyword,
    RunId,
    Samples,
)

BulkState: TypeAlias = Literal["running", "paused", "stopped", "finished"]
"""The state of a bulk run. A run that is paused or stopped can be resumed."""


class ReasonDocument(TypedDict):
    """Orders with the same reason. Of more than 20 reasons, the others are counted as one."""

    reason: str
    orders: Count
    samples: Samples


class FailureDocument(TypedDict):
    """Orders with the same failure. Of more than 20 failures, the others are counted as one."""

    group: str
    """The id of the failure group, or `gone` or `none`."""
    failure: str
    orders: Count
    samples: Samples


class EligibleDocument(TypedDict):
    """The orders to which the command would be sent."""

    orders: Count
    samples: Samples


class OrderInputDocument(TypedDict):
    """The changes of one order's input."""

    orderId: str
    changes: Sequence[InputChange]


class DryRunDocument(TypedDict):
    """A dry run: what would be done to the selected orders. Nothing was sent."""

    command: CommandKind
    dryRun: Literal[True]
    by: str
    reason: str
    selection: str
    """The options and ids with which the orders were selected, as typed."""
    selected: Count
    """The number of selected orders."""
    examined: Count
    """The number of tasks that were examined to find them; 0 if no search was needed."""
    lookedAt: Count
    """The number of selected orders that were assessed."""
    eligible: EligibleDocument
    refused: list[ReasonDocument]
    """The orders that would be refused."""
    held: list[ReasonDocument]
    """The orders that would then wait for an agent on hold."""
    lostSignals: list[ReasonDocument]
    """The eligible orders with unread signals that no step could read any more."""
    goAhead: str
    """The command line of the real run."""
    plans: NotRequired[Sequence[BulkPlanMove]]
    """Only of `resubmit --plan newest`."""
    inputs: NotRequired[list[OrderInputDocument]]
    """Only of a `resubmit` that corrects the inputs: the changes of the first eligible orders."""


class BulkRunSummaryDocument(TypedDict):
    """The main fields of a bulk run."""

    runId: RunId
    command: CommandKind
    by: str
    reason: str
    selection: str
    """The options and ids with which the orders were selected, as typed."""
    startedAt: Instant
    state: BulkState
    why: str | None
    """Why the run is paused or stopped."""
    selected: Count
    sent: Count
    failedAgain: Count
    notReached: Count
    """The number of selected orders that were not assessed yet."""


class BulkOrderDocument(TypedDict):
    """An order that failed again or was refused."""

    orderId: str
    result: Literal["failedAgain", "refused"]
    sentence: str
    """The failure, or the reason of the refusal."""


class BulkRunDocument(BulkRunSummaryDocument):
    """A bulk run and its progress."""

    dryRun: Literal[False]
    sender: str
    """The principal that started the run, as AWS authenticated it."""
    savedAt: Instant | None
    """When the supervisor last stored the progress; null if it has not begun yet."""
    open: bool
    """Whether the stack still works on the run."""
    completed: Count
    undone: Count
    cancelled: Count
    taken: Count
    """The number of orders for which the command was carried out and has no further result:
    `extend`."""
    failures: list[FailureDocument]
    refused: list[ReasonDocument]
    underWay: Count
    rate: Annotated[float, Keyword("exclusiveMinimum", 0)]
    """The maximum number of orders sent per second."""
    canary: Count
    """The number of orders that are sent first."""
    canaryWait: Duration
    """The maximum time without news of the orders under way, in seconds."""
    stopAt: Annotated[float, Keyword("minimum", 0), Keyword("maximum", 1)]
    """The run stops if more than this share of the results are failures."""
    atOnce: Count
    """The maximum number of orders under way."""
    requests: list[str]
    """Who paused, resumed or stopped the run, when and why."""
    resume: str | None
    """The command that resumes the run; null if it is not paused or stopped."""
    orders: NotRequired[list[BulkOrderDocument]]
    """Only with --orders: every order that failed again or was refused."""


class BulkRunListDocument(TypedDict):
    """Bulk runs, the newest first."""

    runs: list[BulkRunSummaryDocument]
