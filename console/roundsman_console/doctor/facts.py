"""What is found in the stack, as plain values that checks look at, and what they find in them.

A part that could not be looked at is None or left out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.leases import Leases
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman_console.doctor.catalog import CATALOG, Entry, FindingKind


@dataclass(frozen=True, slots=True)
class InspectRepair:
    """Have the scheduler look at the task: harmless to one that needs nothing."""

    task_id: str

    @property
    def does(self) -> str:
        """In words."""
        return "have the scheduler inspect it"


@dataclass(frozen=True, slots=True)
class Rearm:
    """Move the due entry of the task to `at` (epoch ms), if its version is still as seen."""

    task: Task
    at: int

    @property
    def task_id(self) -> str:
        """Whose entry it is."""
        return self.task.task_id

    @property
    def does(self) -> str:
        """In words."""
        return f"move its due entry, if it is still at version {self.task.version}"


Fix: TypeAlias = InspectRepair | Rearm


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: of which kind, where, by what it shows, and what to type next."""

    kind: FindingKind
    where: str
    evidence: str
    command: str | None = None
    fix: Fix | None = None

    @property
    def entry(self) -> Entry:
        """What is the same of all findings of its kind."""
        return CATALOG[self.kind]


@dataclass(frozen=True, slots=True)
class Unseen:
    """What could not be looked at, and why.

    `lacking` says that this deployment does not have such a thing at all (an emulator), so that
    nothing is wrong with it.
    """

    what: str
    why: str
    lacking: bool = False


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """One task as it was read: its record, or why it cannot be read.

    `trouble` is how often the supervisor could not handle it. `newer` says that newer code wrote
    the record.
    """

    task_id: str
    task: Task | None
    problem: str | None = None
    newer: bool = False
    trouble: int = 0
    ordered: bool | None = None
    """Whether its order row is there; None where nobody looked."""


@dataclass(frozen=True, slots=True)
class QueueFact:
    """One queue. Times are in seconds; `oldest` is the age of its oldest message, where known."""

    name: str
    url: str
    arn: str
    waiting: int = 0
    in_flight: int = 0
    visibility: int = 30
    retention: int = 345_600
    delay: int = 0
    dead_letters_to: str | None = None
    max_receives: int | None = None
    oldest: int | None = None


@dataclass(frozen=True, slots=True)
class MappingFact:
    """One event source mapping: which queue wakes which function."""

    uuid: str
    queue_arn: str
    function: str
    state: str


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """One function; `timeout` in seconds, `throttles` in the last quarter of an hour."""

    name: str
    physical: str
    timeout: int
    state: str = "Active"
    update: str = "Successful"
    reason: str = ""
    reserved: int | None = None
    throttles: int = 0


@dataclass(frozen=True, slots=True)
class TableFact:
    """One table. `ttl` and `recovery` are None where they could not be asked for."""

    name: str
    physical: str
    status: str = "ACTIVE"
    indexes: Mapping[str, str] = field(default_factory=dict)
    ttl: bool | None = None
    recovery: bool | None = None


@dataclass(frozen=True, slots=True)
class AlarmFact:
    """One alarm that the stack names; `state` is None where there is none."""

    name: str
    physical: str
    state: str | None
    reason: str = ""
    enabled: bool = True
    actions: int = 1


@dataclass(frozen=True, slots=True)
class TopicFact:
    """The AlertTopic's subscriptions."""

    arn: str
    confirmed: int
    pending: int


@dataclass(frozen=True, slots=True)
class ScheduleFact:
    """One schedule that the stack names; `state` is None where there is none."""

    name: str
    physical: str
    state: str | None


@dataclass(frozen=True, slots=True)
class BulkFact:
    """One run over many orders that says it is running: how far it is, by whom, since when."""

    name: str
    saved_at: int
    reached: int
    selected: int
    by: str


@dataclass(frozen=True, slots=True)
class OrphanOrder:
    """An order row without a task, and when it was stored (epoch ms)."""

    order_id: str
    created_at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """All that was found, at `now` (epoch ms). `interval` is the supervisor's, in ms."""

    now: int
    interval: int
    shards: int
    stack_created_at: int = 0
    parameters: Mapping[str, str] = field(default_factory=dict)
    submission_queue: str = ""
    tasks: Sequence[TaskSeen] = ()
    by_shard: Mapping[int, int] = field(default_factory=dict)
    """How many entries of the open lanes were found in each shard."""
    plans: Mapping[str, Plan | None] = field(default_factory=dict)
    unreadable_plans: Mapping[str, str] = field(default_factory=dict)
    unreadable_parts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """What is wrong, by row of the ControlTable and attribute."""
    holds: Sequence[Hold] | None = None
    agents: Collection[str] | None = None
    groups: Sequence[Group] | None = None
    leases: Leases | None = None
    bulk: Sequence[BulkFact] = ()
    work_queues: Sequence[QueueFact] = ()
    dead_letter_queues: Sequence[QueueFact] = ()
    rejected_queue: QueueFact | None = None
    missing_queues: Sequence[str] = ()
    agent_queues: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The ARNs of each agent's request queues."""
    mappings: Sequence[MappingFact] | None = None
    functions: Sequence[FunctionFact] = ()
    tables: Sequence[TableFact] = ()
    alarms: Sequence[AlarmFact] = ()
    topic: TopicFact | None = None
    schedules: Sequence[ScheduleFact] = ()
    orphans: Sequence[OrphanOrder] = ()
    shortest_retention: int | None = None
    """Of all tasks there are, in ms; None where it is not known."""
