"""The facts that are read from a stack, and the findings of the checks on them, as plain values.

A part that could not be read is None or left out.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.leases import Leases
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman_console.inspector.doctor.catalog import CATALOG, Entry
from roundsman_console.inspector.documents.doctor import FindingKind


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong."""

    kind: FindingKind
    where: str
    """The part that is concerned: the id of a task, the name of a queue, `shard 3`."""
    evidence: str
    """The facts that show it, in words."""
    command: str | None = None
    """The command that the operator should type next; None if there is none."""
    fixable: bool = False
    """Whether `--fix` repairs it, by an inspect command for the task `where`: harmless if the task
    needs nothing."""

    @property
    def entry(self) -> Entry:
        """The catalogue entry of the finding's kind."""
        return CATALOG[self.kind]


@dataclass(frozen=True, slots=True)
class Unseen:
    """A part of the stack that could not be read."""

    what: str
    why: str
    lacking: bool = False
    """The deployment (an emulator) does not have this part at all, so nothing can be wrong with
    it."""


@dataclass(frozen=True, slots=True)
class TaskSeen:
    """One item of the tasks table."""

    task_id: str
    task: Task | None
    """The task; None if its record cannot be read."""
    problem: str | None = None
    """Why the record cannot be read; None if it can."""
    newer: bool = False
    """Newer code wrote the record, in a format that this code does not know."""
    trouble: int = 0
    """How often the supervisor failed to handle the record since the last stored decision."""
    ordered: bool | None = None
    """Whether the task's order row exists; None if that was not checked."""


@dataclass(frozen=True, slots=True)
class QueueFact:
    """One queue of the stack."""

    name: str
    """The logical id in the template; the name in SQS if the logical id is not known."""
    url: str
    arn: str
    waiting: int = 0
    """The approximate number of visible messages."""
    in_flight: int = 0
    """The approximate number of messages that were received and not deleted."""
    dead_letters_to: str | None = None
    """The ARN of the dead-letter queue; None without a redrive policy."""


@dataclass(frozen=True, slots=True)
class MappingFact:
    """One event source mapping, which connects a queue to a function."""

    uuid: str
    queue_arn: str
    function: str
    """The name of the function in Lambda."""
    state: str


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """One Lambda function of the stack."""

    name: str
    """The logical id in the template."""
    physical: str
    """The name of the function in Lambda."""
    timeout: int
    """The timeout in seconds."""
    state: str = "Active"
    update: str = "Successful"
    """The status of the last update."""
    reason: str = ""
    """Why the function has this state or update status."""
    reserved: int | None = None
    """The reserved concurrency; None if there is none, or if it could not be read."""


@dataclass(frozen=True, slots=True)
class TableFact:
    """One DynamoDB table of the stack."""

    name: str
    """The logical id in the template."""
    physical: str
    """The name of the table in DynamoDB."""
    status: str = "ACTIVE"
    indexes: Mapping[str, str] = field(default_factory=dict)
    """The status of each global secondary index, by name."""
    ttl: bool | None = None
    """Whether TTL is enabled; None if that could not be read."""
    recovery: bool | None = None
    """Whether point-in-time recovery is enabled; None if that could not be read."""
    protected: bool | None = None
    """Whether the table refuses to be deleted; None if AWS does not say it."""


@dataclass(frozen=True, slots=True)
class AlarmFact:
    """One CloudWatch alarm of the stack."""

    name: str
    """The logical id in the template."""
    physical: str
    """The name of the alarm in CloudWatch."""
    enabled: bool = True
    """Whether the actions are enabled."""
    actions: int = 1
    """The number of actions for the state ALARM."""


@dataclass(frozen=True, slots=True)
class TopicFact:
    """The AlertTopic, and the numbers of its subscriptions."""

    arn: str
    confirmed: int
    pending: int
    """Subscriptions that are not confirmed."""


@dataclass(frozen=True, slots=True)
class ScheduleFact:
    """One schedule of the stack, in EventBridge Scheduler."""

    name: str
    """The logical id in the template."""
    physical: str
    """The name of the schedule in EventBridge Scheduler."""
    state: str | None
    """None if the schedule does not exist."""


@dataclass(frozen=True, slots=True)
class OrphanOrder:
    """An order row without a task."""

    order_id: str
    created_at: int
    """When the row was stored, in epoch ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StackFacts:
    """All facts that were read from a stack."""

    now: int
    """The instant at which the facts are checked, in epoch ms."""
    interval: int
    """The time from one pass of the supervisor to the next, in ms."""
    shards: int
    """The number of shards of each lane for new tasks: the stack's parameter DueShards."""
    stack_created_at: int = 0
    """When the stack was created, in epoch ms; 0 if that could not be read."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The stack's parameters, by name."""
    submission_queue: str = ""
    """The URL of the SubmissionQueue."""
    tasks: Sequence[TaskSeen] = ()
    plans: Mapping[str, Plan | None] = field(default_factory=dict)
    """The plans that tasks name, by hash; None for a plan that is not stored."""
    unreadable_plans: Mapping[str, str] = field(default_factory=dict)
    """Why a plan cannot be read, by hash."""
    unreadable_parts: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Why a part of the ControlTable cannot be read, by row and attribute."""
    holds: Sequence[Hold] | None = None
    agents: Collection[str] | None = None
    """The names of the agents that have a request queue; None if they are not known."""
    groups: Sequence[Group] | None = None
    leases: Leases | None = None
    work_queues: Sequence[QueueFact] = ()
    """The queues that functions read."""
    dead_letter_queues: Sequence[QueueFact] = ()
    rejected_queue: QueueFact | None = None
    mappings: Sequence[MappingFact] | None = None
    """The event source mappings; None unless those of all functions could be read."""
    functions: Sequence[FunctionFact] = ()
    tables: Sequence[TableFact] = ()
    alarms: Sequence[AlarmFact] = ()
    topic: TopicFact | None = None
    schedules: Sequence[ScheduleFact] = ()
    orphans: Sequence[OrphanOrder] = ()
    """Order rows without a task; only the deep look finds them."""
    shortest_retention: int | None = None
    """The shortest retention of all tasks, in ms; None if it is not known."""
