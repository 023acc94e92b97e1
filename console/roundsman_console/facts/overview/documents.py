"""Documents about the numbers of a stack."""

from typing import Literal, TypeAlias, TypedDict

from roundsman.engine.due import Lane
from roundsman.model.states import TaskState
from roundsman_console.base.constraints import Count, Duration, Instant
from roundsman_console.facts.agent.documents import AgentDocument
from roundsman_console.facts.order.documents import TaskSummaryDocument

AgeSource: TypeAlias = Literal["cloudwatch", "marks"]
"""The source of the age of a queue's oldest message."""


class CountDocument(TypedDict):
    """A number of tasks, which may be a lower bound."""

    count: Count
    more: bool
    """Whether there may be more."""


class QueueDocument(TypedDict):
    """One queue. The numbers of messages are approximate."""

    queue: str
    """The name of the stack's output without `Url`."""
    waiting: Count
    inFlight: Count
    delayed: Count
    oldest: Duration | None
    """The age of the oldest message in seconds; null if the queue is empty or the age is not
    known."""
    oldestToldBy: AgeSource | None
    """The source of the age: CloudWatch, or the mark of what was read last."""


class StatsDocument(TypedDict):
    """The numbers of a stack: its tasks, queues and agents, and what is overdue."""

    at: Instant
    """When the numbers were read."""
    states: dict[TaskState, CountDocument]
    """The number of tasks by state."""
    lanes: dict[Lane, CountDocument]
    """The number of tasks by lane of the due index."""
    leftOut: CountDocument
    """The number of completed tasks that have left out an item of a fan-out."""
    oldestArchivedAt: Instant | None
    recoveryLag: Duration
    """How long the oldest due entry of an open task has been overdue, in seconds."""
    supervisorSeenAt: Instant | None
    """When the last complete visit of a shard by a supervisor began."""
    queues: list[QueueDocument]
    agents: list[AgentDocument]


class WatchDocument(StatsDocument):
    """One reading of the stack: its numbers and the newest failures."""

    newestFailures: list[TaskSummaryDocument]
    """The tasks that were archived last, the newest first."""


class VersionChangeDocument(TypedDict):
    """A function that went back."""

    name: str
    """As in the template: Payment, Scheduler."""
    function: str
    left: Count
    """The version that ran until now."""
    runs: Count
    """The version that runs now."""


class RollbackDocument(TypedDict):
    """The functions that went back to the versions of before the last deployment."""

    stack: str
    wentBack: list[VersionChangeDocument]
    """Empty if every function runs that version already."""
