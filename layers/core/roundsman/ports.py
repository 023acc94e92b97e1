"""What the core needs of the world, as protocols; the adapters are in `roundsman.aws`.

An adapter raises TryAgain for anything that may pass (throttling, a time-out, a conflict of
transactions): the message is then delivered again. Losing a race is a value, not an error.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from roundsman.errors import Problem
from roundsman.model.events import Agents, HistoryRow
from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE
from roundsman.model.json import Json
from roundsman.model.leases import Leases
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import AgentRequest

Clock: TypeAlias = Callable[[], int]
"""The present in epoch ms."""

LONGEST_DELAY = 15 * MINUTE
"""SQS's longest DelaySeconds; what is later is found through the due index."""


@dataclass(frozen=True, slots=True)
class OrderRow:
    """An order as stored: its JSON as validated (with `total`), and the hash of the event."""

    order_id: str
    content: Json
    content_hash: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Created:
    """Order and task are stored, both of them."""


@dataclass(frozen=True, slots=True)
class Exists:
    """An order with this id is there already, and nothing was written.

    `task` is None where the task is gone (its retention is over); it is never created again.
    """

    order: OrderRow
    task: Task | None


@dataclass(frozen=True, slots=True)
class Saved:
    """The record is stored as given."""


@dataclass(frozen=True, slots=True)
class Superseded:
    """Another decision came first (or this very write, its answer lost): load and decide again."""


@dataclass(frozen=True, slots=True)
class DueEntry:
    """A task that may have something overdue since `due_at` (epoch ms)."""

    task_id: str
    due_at: int


@dataclass(frozen=True, slots=True)
class Member:
    """A task that stands in a failure group since `failed_at`; instants are epoch ms.

    `complete_by` is the task's, 0 where its record has none. `expires_at` is set where the record
    may go by itself.
    """

    task_id: str
    failed_at: int
    complete_by: int
    expires_at: int | None = None


class TaskStore(Protocol):
    """Orders and tasks. Reads of a task are consistent, but where it is said that they need not."""

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        """Store order and task in one operation, or nothing where the order's id is taken.

        A write whose answer was lost and that is repeated by the client finds itself: it is
        reported as Exists with the same content.
        """

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        """The task; None where there is none, or where its retention is over.

        Not `latest` is half the price, and may be the record, or the absence, of a moment ago:
        enough for a write on the version that was seen, for nothing else.

        Raises SchemaTooNew for a record that newer code wrote.
        """

    def save(
        self, task: Task, *, seen: int, history: Sequence[HistoryRow] = ()
    ) -> Saved | Superseded:
        """Store a decision on the version that was seen, with its history rows, or nothing.

        A record that is `due.removed_at_once` is removed in place of being stored.
        """

    def add_history(self, task_id: str, row: HistoryRow) -> None:
        """Store a row that no decision goes with; storing it again is harmless."""

    def clear_owed(self, task: Task) -> Saved | Superseded:
        """Store that what this version owed was sent.

        `task` is the record with only what it still owes, placed anew (`due.without_owed`).
        Writes only what that changes, on the same version: the version is not raised. A record
        that is then `due.removed_at_once` is removed. The `failure` of one that ended in one is
        stored with it.
        """

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        """Move the due entry of an open task to `due_at`, if its version is still the same."""

    def trouble(self, task_id: str, member_of: tuple[str, int], now: int) -> int:
        """Count one more time that this record could not be handled; the count so far.

        It stands in this failure group (and shard) from then on, until a decision on it is stored
        or it is rearmed.
        """

    def postpone(self, task_id: str, due_at: int) -> None:
        """Move the due entry of a record that cannot be handled, whatever it holds."""

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        """The entries of one lane shard (`open#7`) due at or before `until`, earliest first.

        The index lags behind the records; an entry is a reason to look, not a fact.
        """

    def members(
        self, group: str, shard: int, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        """The tasks of one shard that stand in this failure group, by when they failed.

        Those that failed at `since` (epoch ms) or later. The index lags behind the records.
        """


class OrderStore(Protocol):
    """The rows of OrdersTable."""

    def order(self, order_id: str) -> OrderRow | None:
        """The order; None where there is none."""


class PlanStore(Protocol):
    """Plans by hash. They never change and never expire, so an instance may keep them."""

    def put_plan(self, plan: Plan) -> None:
        """Store the plan under its hash; storing it again is harmless."""

    def plan(self, plan_hash: str) -> Plan | None:
        """The plan; None where it is not stored."""


class AgentBoard(Protocol):
    """What is known of the agents' queues; may be some seconds old."""

    def agents(self) -> Agents:
        """By agent and priority (`payment/normal`)."""


class HoldStore(Protocol):
    """The holds on agents, in ControlTable."""

    def holds(self) -> Sequence[Hold]:
        """Those that are in force, by agent and kind."""

    def hold(self, hold: Hold) -> bool:
        """Store it in place of the agent's earlier one of that kind; whether none was in force.

        A breaker's hold never takes the place of a longer one.
        """

    def release(self, agent: str, kind: str) -> bool:
        """End it now; whether there was one in force."""


class GroupStore(Protocol):
    """The failure groups that are open, in ControlTable. See `roundsman.alerts.group`."""

    def groups(self) -> Sequence[Group]:
        """All of them, read consistently, the oldest first. What is no group is left out."""

    def open(self, group: Group) -> Group | None:
        """Store a group that is not there; the group as it stands in the store.

        That is the very one that was given where it was stored (also where the answer to that was
        lost), another one where it was open already, and None where there is no room for it.
        """

    def change(self, group: Group, *, seen: int) -> bool:
        """Store it on the version that was seen; False where another write came first."""

    def remove(self, group: Group) -> bool:
        """Forget it, if it is still at that version."""


class LeaseStore(Protocol):
    """The supervisors' leases: one record for all shards."""

    def read(self) -> Leases:
        """The leases, read consistently; empty ones of version 0 where there is no record yet."""

    def write(self, leases: Leases, *, seen: int) -> bool:
        """Store them on the version that was seen; False where another write came first."""


class Outbox(Protocol):
    """Sending. Each call returns once everything is accepted, and raises TryAgain otherwise."""

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Send each (agent, priority, request) to its agent's queue."""

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Tell the scheduler to start what is ready, `delay` ms from now (at most 15 minutes)."""

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """Tell the scheduler to look for what is overdue, `delay` ms from now."""

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Send an inspect for each (task id, delay in ms), at few requests."""

    def send_command(self, command: Command) -> None:
        """Pass on to the scheduler what somebody asks of a task."""

    def send_status(self, queue_url: str, body: str) -> bool:
        """Tell the application. False where that can never succeed (the queue is gone)."""

    def publish(self, alert: Alert) -> None:
        """Tell the operators."""

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Put a message that can never be handled aside, with all that is wrong with it."""
