"""The ports of the core: the protocols that the adapters in `roundsman.aws` implement.

An adapter raises TryAgain for a transient failure (throttling, a timeout, a transaction conflict):
the message is then redelivered. It raises CallRefused if AWS would refuse a retry too. A lost race
is a return value, not an exception.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol, TypeAlias

from roundsman.definition.plan import Plan
from roundsman.errors import Problem
from roundsman.model.events import Agents, HistoryRow
from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.model.leases import Leases
from roundsman.model.queue_lag import ReadMark
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.task import Task
from roundsman.model.wakes import Wake
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import AgentRequest

if TYPE_CHECKING:  # most instances carry out no bulk run and watch no stack
    from roundsman.model.bulk_run import (
        BulkRecord,
        ListedRun,
        OrderNote,
        PlannedOrder,
        Run,
        RunRequest,
    )
    from roundsman.model.order_limit import LimitRow
    from roundsman.model.schedules import Pause, ScheduleRecord
    from roundsman.model.stack_faults import QueueLook, StackFaults

Clock: TypeAlias = Callable[[], int]
"""Returns the current time in epoch ms."""

NO_INPUTS: Mapping[str, Json] = {}

LONGEST_DELAY = 15 * MINUTE
"""The largest DelaySeconds of SQS, in ms. The due index finds what starts later than that."""


SOURCES_STATEMENT = "TakesEventsOfSources"
"""The statement of the SubmissionQueue's policy that admits them (`stacks/engine.yaml`)."""


class EventSources(Protocol):
    """The topics, buckets and rules whose events a stack takes (`SubmitterSources`)."""

    def lists(self, service: str, arn: str | None) -> bool:
        """Whether this topic (`sns`), bucket (`s3`) or rule (`events`) is one of them.

        None for any of the service. Raises TryAgain and CallRefused if that is not known.
        """


@dataclass(frozen=True, slots=True)
class OrderRow:
    """An order as stored."""

    order_id: str
    """The id of the order, which is the id of its task."""
    content: Json
    """The order's JSON after validation, with `total` added."""
    content_hash: str
    """Identifies the order event; a duplicate of the event has the same hash."""
    created_at: int
    """When the order was stored, in epoch ms."""
    expires_at: int | None = None
    """When the row may be removed, in epoch ms; None while its task is open or archived, and if
    orders are kept for ever."""
    erased_at: int | None = None
    """When the content was erased, and replaced by null, in epoch ms; None if it was not."""
    search: tuple[str, ...] = ()
    """The keys by which the order is found (`roundsman.model.search`)."""


@dataclass(frozen=True, slots=True)
class Created:
    """The order and its task were both stored."""


@dataclass(frozen=True, slots=True)
class Exists:
    """An order with this id already exists. Nothing was written."""

    order: OrderRow
    task: Task | None
    """None if the task's retention is over. Such a task is not created again."""


@dataclass(frozen=True, slots=True)
class Saved:
    """The record was stored as given."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """The write failed because the record has changed: load it and decide again.

    Another decision was stored first. Or this write itself succeeded, its response was lost, and
    the client's retry failed on the condition.
    """


@dataclass(frozen=True, slots=True)
class DueEntry:
    """An entry of the due index: a task in which something may be overdue."""

    task_id: str
    due_at: int
    """Epoch ms; something may be overdue since then."""


@dataclass(frozen=True, slots=True)
class ParkedEntry:
    """An entry of the index of parked tasks."""

    task_id: str
    since: int
    """Since when the task has waited for its hold, in epoch ms."""
    shard: int


@dataclass(frozen=True, slots=True)
class Member:
    """A task that is a member of a failure group. Instants are epoch ms."""

    task_id: str
    failed_at: int
    """When the task joined the group."""
    complete_by: int
    """The task's own `complete_by`; 0 if its record has none."""
    expires_at: int | None = None
    """When the record may be removed; None if it does not expire."""


class TaskStore(Protocol):
    """Stores orders and tasks. Reads of a task are consistent, but for documented exceptions."""

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        """Store the order and its task in one operation; store neither if the order id exists.

        If the response to a successful write was lost, a repeated call returns Exists with the
        same content.
        """

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        """Return the task; None if there is none, or if its retention is over at `now` (epoch ms).

        With `latest=False` the read is eventually consistent and costs half as much. Its result,
        also None, may be stale. It is good enough only for a write that is conditional on the
        version that was read.

        Raises SchemaTooNew for a record that newer code wrote, and UnreadableRecord for one that
        cannot be read.
        """

    def save(
        self,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        """Store a decision and its history rows together, if the stored version is `seen`.

        `inputs` has the inputs of the steps that the decision adds, by record name. `search` has
        the keys by which the order is found from then on; None if they stay as they are.

        Returns Superseded, and stores nothing, if the version is another, or if the record is of
        another task with the same id: one with another `created_at`.

        A record for which `due.removed_at_once` is true is removed instead of stored.
        """

    def inputs(self, task: Task, names: Collection[str]) -> Mapping[str, Json]:
        """Return the inputs with which these steps were added to the task, by record name.

        Raises TryAgain if one is missing.
        """

    def add_history(self, task_id: str, row: HistoryRow) -> None:
        """Store a history row that belongs to no decision. The call is idempotent."""

    def history(self, task_id: str) -> list[HistoryRow]:
        """Return all rows of a task's history, the oldest first. Raises UnreadableRecord."""

    def erase_order(self, order_id: str, *, created_at: int, erased_at: int) -> None:
        """Replace the content of the order that was stored at `created_at` by null.

        Changes nothing if there is no such order, or if it was erased before. Its hash stays, so
        that a duplicate of its event is still recognized. Instants are epoch ms.
        """

    def erase_history(self, task_id: str) -> None:
        """Replace the reason of each history row by ERASED, except those of `erase` commands, and
        remove the data of its signal.

        The call is idempotent. If it fails half-way, the next call continues.
        """

    def clear_owed(self, task: Task) -> Saved | Superseded:
        """Store that owed statuses and alerts were sent.

        `task` is the record as `due.without_owed` returns it: `owed` holds only what is still
        owed. The write changes only the attributes that follow from this. It is conditional on
        `task.version` and does not increase it. A record for which `due.removed_at_once` is then
        true is removed. The `failure` of the task is stored too.
        """

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        """Move the due entry of an open task to `due_at` (epoch ms), if its version is unchanged.

        Ends the membership in a failure group that `trouble` began: the task is in its own one
        again, if it has one.
        """

    def trouble(self, task_id: str, member_of: tuple[str, int], now: int) -> int:
        """Count a failure to handle this record, and return the count so far.

        The task is a member of the failure group and shard `member_of` from then on, until a
        decision on it is stored or `rearm` is called. The next stored decision resets the count.
        """

    def postpone(self, task_id: str, due_at: int) -> None:
        """Move the due entry of a record that cannot be handled to the later instant `due_at`.

        Does not read the record, so it works for any content. Changes nothing if the record is
        gone, is not in the open lane, or is already due later.
        """

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        """Yield the entries of one lane shard (`open#7`) due at or before `until`, earliest first.

        The index is eventually consistent: load the record before you act on an entry.
        """

    def parked(
        self, target: str, priority: str, shard: int, *, after: int
    ) -> Iterator[ParkedEntry]:
        """Yield the tasks of one shard whose steps wait for a hold, the longest waiting first.

        `target` is what they wait for (`roundsman.engine.due.ParkedFor`); only those that have
        waited since a later instant than `after` (epoch ms). The index is eventually consistent.
        """

    def waiting(self, limit: str, most: int) -> Sequence[ParkedEntry]:
        """Return the first `most` tasks that wait for their turn, the longest waiting first.

        `limit` is the key under which a limit counts them. The index is eventually consistent.
        """

    def members(
        self, group: str, shard: int, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        """Yield the members of a failure group in one shard, ordered by `failed_at`.

        Only those that failed at `since` (epoch ms) or later. The index is eventually consistent.
        """


class PayloadObject(Protocol):
    """An object of the PayloadBucket while it is read."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes that follow; none at the end. Raises TryAgain."""

    def close(self) -> None:
        """End the reading."""


class PayloadStore(Protocol):
    """Stores what is too large for orders, in the PayloadBucket. See `roundsman.model.payloads`.

    CallRefused says so if the bucket is gone, or the object is not in it.
    """

    def put(self, key: str, body: BinaryIO, size: int) -> None:
        """Store `size` bytes, a file from its start, under the key that ends with their SHA-256.

        The bucket checks the hash. Idempotent.
        """

    def open(self, key: str) -> PayloadObject:
        """Begin to read the object under the key."""

    def erase(self, order_id: str) -> None:
        """Remove all versions of all objects of an order, and nothing of any other.

        The call is idempotent. If it fails half-way, the next call continues.
        """


class OrderStore(Protocol):
    """Reads the rows of OrdersTable."""

    def order(self, order_id: str) -> OrderRow | None:
        """Return the order; None if there is none."""


class PlanStore(Protocol):
    """Stores plans by hash. A plan never changes or expires, so an instance may cache it."""

    def put_plan(self, plan: Plan) -> None:
        """Store the plan under its hash. The call is idempotent."""

    def plan(self, plan_hash: str) -> Plan | None:
        """Return the plan; None if it is not stored. Raises UnreadableRecord if it was altered."""


class AgentBoard(Protocol):
    """The state of the queues between scheduler and agents, and the holds.

    What is stored of it may be some seconds old.
    """

    def agents(self) -> Agents:
        """Return the views of the request queues, by agent and priority (`payment/normal`)."""

    def order_holds(self) -> Sequence[Hold]:
        """Return the stored holds on orders, which are read together with `agents`."""

    def marks(self) -> Mapping[str, ReadMark]:
        """Return the read marks of the queues that the scheduler reads, by key.

        See `roundsman.model.scheduler_queues`.
        """

    def depth(self, key: str) -> QueueDepth | None:
        """Read the depth of a queue that the scheduler reads, by the key of its mark.

        Returns None if this board cannot read depths.
        """

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """Store a read mark, as `roundsman.model.queue_lag.ReadNotes` documents."""


class WakeStore(Protocol):
    """Stores how far waking has gone after the end of holds, by target, in ControlTable."""

    def read(self) -> Mapping[str, Wake]:
        """Return the wakes by target, read consistently. Leaves out what cannot be read."""

    def write(self, target: str, wake: Wake, *, before: Wake | None) -> bool:
        """Store the wake of a target, if that stored is `before`. Returns False if it is not."""


class LimitStore(Protocol):
    """Stores which orders a limit lets be under way, in ControlTable: a row for each key."""

    def read(self, limit: str) -> "LimitRow":
        """Return the row of this key, read consistently; an empty one if there is none."""

    def write(self, limit: str, before: "LimitRow", after: "LimitRow") -> bool:
        """Store the row if that stored is `before`. Returns False if it is not.

        A row without a turn is removed. True also if `after` is stored already.
        """


class WakeHolds(Protocol):
    """Reads the holds, also those that have ended."""

    def stored(self, *, latest: bool = True) -> Sequence[Hold]:
        """Return all stored holds, also those that have ended.

        With `latest=False` the read is eventually consistent and costs half as much.
        """


class HoldStore(Protocol):
    """Stores the holds on agents and on orders, in ControlTable."""

    def holds(self) -> Sequence[Hold]:
        """Return the holds in force: those on orders first, then by agent and kind."""

    def hold(self, hold: Hold) -> bool:
        """Store a hold; it replaces the earlier hold of the same kind on the same target.

        Returns True if no such hold was in force before. A circuit breaker's hold never replaces a
        longer one: then nothing is stored, and the method returns False.
        """

    def release(self, agent: str, kind: str) -> bool:
        """End the hold on an agent now. Returns True if it was in force."""

    def change(self, before: Hold, after: Hold) -> bool:
        """Store `after` in place of `before`, with the same target. False if others changed it."""


class GroupStore(Protocol):
    """Stores the open failure groups, in ControlTable. See `roundsman.alerts.group`."""

    def groups(self) -> Sequence[Group]:
        """Return all open groups, read consistently, the oldest first.

        An attribute that cannot be read as a group is left out.
        """

    def open(self, group: Group) -> Group | None:
        """Store the group if it is not open yet, and return the stored group.

        That is the given group if this call stored it (also if the response was lost and the write
        was retried), the existing group if it was open already, and None if too many groups are
        open.
        """

    def change(self, group: Group, *, seen: int) -> bool:
        """Store the group if the stored version is `seen`. Returns False if it is not."""

    def remove(self, group: Group) -> bool:
        """Remove the group if the stored version is `group.version`. Returns False if it is not."""


class LeaseStore(Protocol):
    """Stores the supervisors' leases, in one record for all shards."""

    def read(self) -> Leases:
        """Return the leases, read consistently; `Leases()` (version 0) if there is no record."""

    def write(self, leases: Leases, *, seen: int) -> bool:
        """Store the leases if the stored version is `seen`. Returns False if it is not."""


class StackFaultStore(Protocol):
    """Stores the faults of the stack, in one record. See `roundsman.alerts.stack_faults`."""

    def read(self) -> "StackFaults":
        """Return the faults, read consistently; `StackFaults()` if there is no record."""

    def write(self, faults: "StackFaults", *, seen: int) -> bool:
        """Store the faults if the stored version is `seen`. Returns False if it is not."""


class StackQueues(Protocol):
    """The queues of the stack. A name is without that of the stack: `PaymentRequestQueue`."""

    def of_agents(self) -> Sequence[str]:
        """Return the names of the agents' queues for requests and replies."""

    def look(self, name: str) -> "QueueLook":
        """Count the messages of a queue and of its dead-letter queue."""


class BulkRunStore(Protocol):
    """Stores bulk runs, in ControlTable.

    A person writes the plan and the requests, and a supervisor writes the progress, under keys of
    their own. `begin` and `ask` are the calls of a person.
    """

    def begin(self, run: "Run", orders: "Sequence[PlannedOrder]") -> None:
        """Store the plan of a new run, and then add the run to the list of runs."""

    def ask(self, run_id: str, request: "RunRequest", *, seen: int) -> bool:
        """Store a request, if nobody has asked for anything since `seen`.

        `seen` is the `asked_at` of the run as the caller has read it: a request is later than that,
        whatever the clock of the person. Returns False, and nothing is asked, if somebody has
        asked since, or if there is no such run.
        """

    def open_runs(self) -> "Sequence[ListedRun]":
        """Return the runs that a supervisor has to look at, the oldest first."""

    def load(self, run_id: str, starter: str) -> "BulkRecord | None":
        """Return the run, read consistently; None if this starter has planned no such run.

        Raises UnreadableRecord.
        """

    def orders(self, run: "Run", first: int, most: int) -> "Sequence[PlannedOrder]":
        """Return at most `most` orders of the plan, from index `first` on.

        There may be fewer, but at least one before the end. Raises UnreadableRecord.
        """

    def request(self, run: "ListedRun") -> "RunRequest | None":
        """Return the last request about a run; None if there is none."""

    def save(self, record: "BulkRecord", notes: "Sequence[OrderNote]" = ()) -> "BulkRecord | None":
        """Store the progress of a run and a row with `notes`, if the stored version is unchanged.

        Returns the record with its new version; None, and nothing is stored, if another supervisor
        stored the progress first.
        """

    def close(self, run: "ListedRun") -> None:
        """Remove the run from `open_runs`, unless there is a newer request."""


class ScheduleStore(Protocol):
    """Stores what becomes of the runs of recurring orders, in ControlTable.

    See `roundsman.model.schedules`. `pause` and `resume` are the calls of a person.
    """

    def pauses(self) -> "Sequence[Pause]":
        """Return all pauses, read consistently."""

    def pause(self, pause: "Pause") -> None:
        """Store a pause, in place of the one of its target."""

    def resume(self, target: str) -> None:
        """Remove the pause of a target, if there is one."""

    def read(self, schedule: str) -> "ScheduleRecord":
        """Return what is stored of a schedule, read consistently. Raises UnreadableRecord."""

    def write(self, record: "ScheduleRecord", *, now: int) -> bool:
        """Store the record at `now` (epoch ms), if the stored version is the one before.

        False if it is not: another write came first, or the answer to this one was lost.
        """

    def mark(self, record: "ScheduleRecord") -> None:
        """Let the supervisor look at the orders of the schedule that wait."""

    def unmark(self, schedule: str, version: int) -> None:
        """Remove the mark of a schedule, if it has this version."""


class Outbox(Protocol):
    """Sends messages and alerts.

    Each method returns when everything is accepted; otherwise it raises TryAgain or CallRefused.
    """

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Send each (agent, priority, request) to the agent's request queue.

        Raises UnknownAgent if the stack has no such queue.
        """

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Send a `start` command to the scheduler, delayed by `delay` ms (at most 15 minutes).

        The scheduler starts the task's steps that are ready.
        """

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """Send an `inspect` command to the scheduler, delayed by `delay` ms (at most 15 minutes).

        The scheduler looks for anything overdue in the task.
        """

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Send an `inspect` command for each (task id, delay in ms), in batches."""

    def send_command(self, command: Command) -> None:
        """Send a command to the scheduler."""

    def send_commands(self, commands: Sequence[tuple[Command, int]]) -> None:
        """Send each (command, delay in ms) to the scheduler, in batches.

        If this raises, some of them may have been sent.
        """

    def send_status(self, queue_url: str, body: str) -> bool:
        """Send a status to the application. Returns False if the queue can never accept it."""

    def publish(self, alert: Alert) -> None:
        """Publish an alert to the operators."""

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Send a message that can never be handled to the RejectedQueue, with its problems.

        `queue` is the name of the queue that the message came from.
        """

    def reject_command(self, body: str, problems: Sequence[Problem]) -> None:
        """Send a command that was accepted, and can have no effect any more, to the RejectedQueue.

        It is as if it had been rejected when it came from the SchedulerQueue.
        """
