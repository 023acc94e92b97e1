"""In-memory implementations of the stores in `roundsman.ports`, for tests and experiments.

They make the same promises as the AWS adapters and pass the same tests. Records are frozen, so
they are shared and not copied. These stores never fail; `roundsman.testing.faults` wraps them to
inject faults.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from threading import RLock

from roundsman.agents.call_notes import Begun
from roundsman.alerts.group import room_for
from roundsman.engine.due import (
    Lane,
    lane_key,
    order_expiry,
    removed_at_once,
    with_order_expiry,
)
from roundsman.engine.erasure import keeps_reason
from roundsman.engine.history import fitting
from roundsman.errors import RoundsmanError, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.bulk_run import BulkRecord, ListedRun, OrderNote, PlannedOrder, Run, RunRequest
from roundsman.model.events import Agents, HistoryRow
from roundsman.model.failure import Group
from roundsman.model.holds import BREAKER, Hold, in_force, with_holds
from roundsman.model.instants import SECOND
from roundsman.model.leases import Leases
from roundsman.model.plan import Plan
from roundsman.model.queue_lag import ReadMark, ReadMarkWriter, queue_key, view_of_mark
from roundsman.model.scheduler_queues import QueueDepth, is_of_scheduler
from roundsman.model.task import ERASED, Task
from roundsman.ports import (
    Clock,
    Created,
    DueEntry,
    Exists,
    HoldStore,
    Member,
    OrderRow,
    Saved,
    Superseded,
)


class MemoryStore:
    """TaskStore and OrderStore in memory. Thread-safe: each call is atomic.

    `removed` holds the last record of each task that was removed at its end, for tests that check
    it. `on_write` is called with each record that is stored, or removed instead of being stored.
    `order_retention` is the time in ms that an order is kept after its task has ended; None keeps
    orders for ever.
    """

    def __init__(
        self,
        on_write: Callable[[Task], None] = lambda _: None,
        *,
        order_retention: int | None = None,
    ) -> None:
        self._lock = RLock()
        self.order_retention = order_retention
        self._on_write = on_write
        self._orders: dict[str, OrderRow] = {}
        self._tasks: dict[str, Task] = {}
        self._before: dict[str, Task | None] = {}
        self._history: dict[str, dict[int, HistoryRow]] = {}
        self._troubles: dict[str, int] = {}
        self._broken: dict[str, tuple[str, int, int]] = {}
        self._unreadable: dict[str, RoundsmanError] = {}
        self.removed: dict[str, Task] = {}

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        """Store the order and its task in one operation; store neither if the order id is taken.

        If the task's retention is over and the order row is gone, the id can be used again. Raises
        TryAgain if there is a task with that id but no order row.
        """
        now = task.created_at
        with self._lock:
            found = self._orders.get(order.order_id)
            if found is not None:
                return Exists(found, self.load(order.order_id, now))
            if self.load(task.task_id, now) is not None:
                raise TryAgain(f"{order.order_id}: a task with that id exists, but no order row")
            self._orders[order.order_id] = order
            self._put(task)
            return Created()

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:  # noqa: ARG002  # every read is consistent here
        """The task; None if there is none or its retention is over.

        Raises the error that `make_unreadable` set for it.
        """
        with self._lock:
            if task_id in self._tasks and task_id in self._unreadable:
                raise self._unreadable[task_id]
            return _kept(self._tasks.get(task_id), now)

    def load_with_orders(self, task_ids: Sequence[str], now: int) -> list[tuple[Task, OrderRow]]:
        """These tasks with their orders, without those that cannot be read."""
        return self._with_orders(task_ids, lambda task_id: self.load(task_id, now, latest=False))

    def load_with_orders_before(
        self, task_ids: Sequence[str], now: int
    ) -> list[tuple[Task, OrderRow]]:
        """The result of a stale read: the tasks before their last writes, with their orders."""
        return self._with_orders(task_ids, lambda task_id: self.load_before(task_id, now))

    def _with_orders(
        self, task_ids: Sequence[str], load: Callable[[str], Task | None]
    ) -> list[tuple[Task, OrderRow]]:
        found = list[tuple[Task, OrderRow]]()
        for task_id in dict.fromkeys(task_ids):
            with suppress(SchemaTooNew, UnreadableRecord):
                task, order = load(task_id), self.order(task_id)
                if task is not None and order is not None:
                    found.append((task, order))
        return found

    def load_before(self, task_id: str, now: int) -> Task | None:
        """The result of a stale read: the task before its last write."""
        with self._lock:
            return _kept(self._before.get(task_id), now)

    def save(
        self, task: Task, *, seen: int, history: Sequence[HistoryRow] = ()
    ) -> Saved | Superseded:
        """Store a decision and its history rows, if the stored version is still `seen`.

        A record that is `removed_at_once` is removed instead of stored.
        """
        with self._lock:
            if not self._is_at(task, seen):
                return Superseded()
            self._put(task)
            self._troubles.pop(task.task_id, None)
            self._broken.pop(task.task_id, None)
            rows = self._history.setdefault(task.task_id, {})
            rows.update({row.seq: row for row in fitting(history)})
            return Saved()

    def add_history(self, task_id: str, row: HistoryRow) -> None:
        """Store a history row that belongs to no decision. Storing it again has no effect."""
        with self._lock:
            self._history.setdefault(task_id, {})[row.seq] = row

    def erase_order(self, order_id: str, *, created_at: int, erased_at: int) -> None:
        """Replace the content of the order that was stored at `created_at` by None."""
        with self._lock:
            row = self._orders.get(order_id)
            if row is not None and row.created_at == created_at and row.erased_at is None:
                self._orders[order_id] = replace(row, content=None, erased_at=erased_at)

    def erase_history(self, task_id: str) -> None:
        """Replace the reasons of the task's history, except those of `erase` commands."""
        with self._lock:
            rows = self._history.get(task_id, {})
            for seq, row in rows.items():
                if not keeps_reason(row.kind):
                    rows[seq] = replace(row, reason=ERASED)

    def clear_owed(self, task: Task) -> Saved | Superseded:
        """Store that owed statuses and alerts were sent, without a new version.

        A record that is then `removed_at_once` is removed.
        """
        with self._lock:
            if not self._is_at(task, task.version):
                return Superseded()
            stored = self._tasks[task.task_id]
            if not stored.owed:
                return Superseded()
            changed = replace(stored, owed=task.owed, failure=task.failure)
            if not _is_open(task):
                changed = replace(
                    changed, lane=task.lane, due_at=task.due_at, expires_at=task.expires_at
                )
            self._put(changed)
            self._broken.pop(task.task_id, None)
            return Saved()

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        """Move the due entry of an open task to `due_at`, if its version is unchanged."""
        with self._lock:
            if not self._is_at(task, task.version):
                return Superseded()
            stored = self._tasks[task.task_id]
            if stored.lane != lane_key(Lane.OPEN, task.shard):
                return Superseded()
            self._put(replace(stored, due_at=due_at))
            self._broken.pop(task.task_id, None)
            return Saved()

    def postpone(self, task_id: str, due_at: int) -> None:
        """Move the due entry of a record that cannot be handled to a later instant (epoch ms)."""
        with self._lock:
            stored = self._tasks.get(task_id)
            if stored is not None and _is_open(stored) and stored.due_at < due_at:
                self._put(replace(stored, due_at=due_at))

    def trouble(self, task_id: str, member_of: tuple[str, int], now: int) -> int:
        """Count one more failure to handle this record. Returns the number of failures so far."""
        with self._lock:
            if task_id not in self._tasks:
                return 1
            since = self._broken[task_id][2] if task_id in self._broken else now
            self._broken[task_id] = (*member_of, since)
            self._troubles[task_id] = self._troubles.get(task_id, 0) + 1
            return self._troubles[task_id]

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        """The entries of one lane shard that are due at or before `until`, earliest first."""
        with self._lock:
            found = [t for t in self._tasks.values() if t.lane == lane and t.due_at <= until]
        for task in sorted(found, key=lambda task: (task.due_at, task.task_id)):
            yield DueEntry(task.task_id, task.due_at)

    def members(
        self, group: str, shard: int, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        """The tasks of one shard that are in this failure group, ordered by when they failed."""
        with self._lock:
            found = [
                Member(task.task_id, at, task.complete_by, task.expires_at)
                for task in self._tasks.values()
                for name, of, at in [self._stands_in(task)]
                if (name, of) == (group, shard) and at >= since
            ]
        yield from sorted(found, key=lambda one: one.failed_at, reverse=newest_first)

    def _stands_in(self, task: Task) -> tuple[str | None, int, int]:
        """The failure group of the task, its shard, and the instant (epoch ms) when it joined."""
        return self._broken.get(task.task_id) or (task.failure, task.shard, task.failed_at or 0)

    def order(self, order_id: str) -> OrderRow | None:
        """The order; None if there is none."""
        return self._orders.get(order_id)

    def history(self, task_id: str) -> list[HistoryRow]:
        """All history rows of a task, oldest first."""
        rows = self._history.get(task_id, {})
        return [rows[seq] for seq in sorted(rows)]

    def tasks(self) -> list[Task]:
        """Every stored record, including those whose retention is over, ordered by id."""
        with self._lock:
            return [self._tasks[task_id] for task_id in sorted(self._tasks)]

    def make_unreadable(self, task_id: str, error: RoundsmanError) -> None:
        """Make each `load` of the task raise this error, as for a record that was corrupted."""
        self._unreadable[task_id] = error

    def remove_order(self, order_id: str) -> None:
        """Remove the order row, as happens at the end of the order's retention."""
        with self._lock:
            del self._orders[order_id]

    def remove_task(self, task_id: str) -> None:
        """Remove the task record, as DynamoDB's TTL does."""
        with self._lock:
            del self._tasks[task_id]

    def _put(self, task: Task) -> None:
        task = self._with_order(task)
        self._before[task.task_id] = self._tasks.get(task.task_id)
        if removed_at_once(task):
            del self._tasks[task.task_id]
            self.removed[task.task_id] = task
        else:
            self._tasks[task.task_id] = _as_stored(task)
        self._on_write(task)

    def _with_order(self, task: Task) -> Task:
        """Give the order row its expiry if the task is over, and take it back if it is not."""
        found = with_order_expiry(task, self.order_retention)
        row = self._orders.get(task.task_id)
        if row is not None and found.order_expires != task.order_expires:
            expires_at = order_expiry(task, self.order_retention or 0)
            if expires_at is not None:
                expires_at = _whole_second(expires_at)
            self._orders[task.task_id] = replace(row, expires_at=expires_at)
        return found

    def _is_at(self, task: Task, version: int) -> bool:
        """Whether the stored record is of this very task, and at `version`."""
        stored = self._tasks.get(task.task_id)
        if stored is None or stored.created_at != task.created_at:
            return False
        return stored.version == version


def _kept(task: Task | None, now: int) -> Task | None:
    """The task; None if its retention is over."""
    over = task is not None and task.expires_at is not None and task.expires_at <= now
    return None if over else task


def _as_stored(task: Task) -> Task:
    """The record with its expiry rounded up to a full second, the unit of DynamoDB's TTL."""
    if task.expires_at is None:
        return task
    return replace(task, expires_at=_whole_second(task.expires_at))


def _whole_second(instant: int) -> int:
    return -(-instant // SECOND) * SECOND


def _is_open(task: Task) -> bool:
    return task.lane.startswith(f"{Lane.OPEN}#")


class MemoryPlans:
    """PlanStore in memory."""

    def __init__(self) -> None:
        self._plans: dict[str, Plan] = {}

    def put_plan(self, plan: Plan) -> None:
        """Store the plan under its hash. Storing it again has no effect."""
        self._plans[plan.hash] = plan

    def plan(self, plan_hash: str) -> Plan | None:
        """The plan; None if it is not stored."""
        return self._plans.get(plan_hash)


class MemoryHolds:
    """HoldStore in memory. Thread-safe: each call is atomic."""

    def __init__(self, clock: Clock) -> None:
        self._lock = RLock()
        self._clock = clock
        self._holds: dict[tuple[str, str], Hold] = {}

    def holds(self) -> list[Hold]:
        """The holds that are in force now, ordered by agent and kind."""
        with self._lock:
            return in_force(self._holds.values(), self._clock())

    def hold(self, hold: Hold) -> bool:
        """Replace the agent's hold of that kind. Returns True if no such hold was in force.

        A hold by the circuit breaker never replaces a longer one.
        """
        with self._lock:
            known = self._holds.get((hold.agent, hold.kind))
            if known is None or hold.kind != BREAKER or known.until <= hold.until:
                self._holds[hold.agent, hold.kind] = hold
            return known is None or not in_force([known], self._clock())

    def release(self, agent: str, kind: str) -> bool:
        """End the hold. Returns True if it was in force."""
        with self._lock:
            ended = self._holds.pop((agent, kind), None)
            return ended is not None and bool(in_force([ended], self._clock()))


class MemoryAgentBoard:
    """AgentBoard and ReadNotes in memory. Read marks and holds are visible immediately."""

    def __init__(
        self,
        clock: Clock,
        holds: HoldStore | None = None,
        depth_of: Callable[[str], QueueDepth | None] = lambda _: None,
    ) -> None:
        """`depth_of` reads the depth of a queue that the scheduler reads."""
        self._clock = clock
        self._holds = holds
        self._depth_of = depth_of
        self._notebooks: dict[str, ReadMarkWriter] = {}
        self._marks: dict[str, ReadMark] = {}

    def agents(self) -> Agents:
        """The state of each queue, by agent and priority (`payment/normal`).

        A queue that was never read is missing, unless its agent is on hold.
        """
        now = self._clock()
        views = {
            queue: view_of_mark(mark, now)
            for queue, mark in self._marks.items()
            if not is_of_scheduler(queue)
        }
        return with_holds(views, self._holds.holds() if self._holds else (), now)

    def marks(self) -> Mapping[str, ReadMark]:
        """The read marks of the queues that the scheduler reads, by key."""
        return {queue: mark for queue, mark in self._marks.items() if is_of_scheduler(queue)}

    def depth(self, key: str) -> QueueDepth | None:
        """The depth of a queue that the scheduler reads."""
        return self._depth_of(key)

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """Note that a request that was sent at `sent_at` (epoch ms) is read now."""
        queue = queue_key(agent, priority)
        notebook = self._notebooks.setdefault(queue, ReadMarkWriter())
        mark = notebook.read(sent_at, self._clock(), lock)
        if mark is not None:
            self._marks[queue] = mark
            notebook.written(mark)


class MemoryLeases:
    """LeaseStore in memory. Thread-safe: each call is atomic."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._leases = Leases()

    def read(self) -> Leases:
        """The leases; empty leases of version 0 if none were ever written."""
        return self._leases

    def write(self, leases: Leases, *, seen: int) -> bool:
        """Store the leases if the version is still `seen`. Returns False if it is not."""
        with self._lock:
            if self._leases.version != seen:
                return False
            self._leases = leases
            return True


class MemoryBulkRuns:
    """BulkRunStore in memory. Thread-safe: each call is atomic.

    `notes` are the orders that failed again or were refused, by run.
    """

    def __init__(self, clock: Clock) -> None:
        self._lock = RLock()
        self._clock = clock
        self._plans: dict[str, tuple[Run, Sequence[PlannedOrder]]] = {}
        self._open: dict[str, ListedRun] = {}
        self._closed: set[str] = set()
        self._requests: dict[tuple[str, str], RunRequest] = {}
        self._records: dict[str, BulkRecord] = {}
        self.notes: dict[str, list[OrderNote]] = {}

    def begin(self, run: Run, orders: Sequence[PlannedOrder]) -> None:
        """Store the plan and add the run to the list of runs."""
        with self._lock:
            self._plans[run.id] = (run, tuple(orders))
            self._open[run.id] = ListedRun(run.id, run.starter, run.started_at)

    def ask(self, run_id: str, request: RunRequest, *, seen: int) -> bool:
        """Store a request, if nobody has asked for anything since `seen`."""
        with self._lock:
            known = self._open.get(run_id)
            if known is None or known.asked_at != seen:
                return False
            request = replace(request, at=max(request.at, seen + 1))
            self._requests[run_id, request.sender] = request
            self._open[run_id] = replace(known, asked_by=request.sender, asked_at=request.at)
            self._closed.discard(run_id)
            return True

    def open_runs(self) -> list[ListedRun]:
        """The runs that a supervisor has to look at, the oldest first."""
        with self._lock:
            found = [one for one in self._open.values() if one.run_id not in self._closed]
            return sorted(found, key=lambda one: (one.started_at, one.run_id))

    def load(self, run_id: str, starter: str) -> BulkRecord | None:
        """The run; None if this starter has planned no such run."""
        with self._lock:
            planned = self._plans.get(run_id)
            if planned is None or planned[0].starter != starter:
                return None
            return self._records.get(run_id) or BulkRecord(planned[0])

    def orders(self, run: Run, first: int, most: int) -> list[PlannedOrder]:
        """At most `most` orders of the plan, from index `first` on, all from one chunk."""
        end = min(first + most, (first // run.chunk + 1) * run.chunk)
        return list(self._plans[run.id][1][first:end])

    def request(self, run: ListedRun) -> RunRequest | None:
        """The last request about a run; None if there is none."""
        return self._requests.get((run.run_id, run.asked_by or ""))

    def save(self, record: BulkRecord, notes: Sequence[OrderNote] = ()) -> BulkRecord | None:
        """Store the progress if the stored version is unchanged; None if it is not."""
        with self._lock:
            stored = self._records.get(record.run.id)
            if (0 if stored is None else stored.version) != record.version:
                return None
            wanted = replace(
                record,
                version=record.version + 1,
                saved_at=self._clock(),
                lists=record.lists + bool(notes),
            )
            self._records[record.run.id] = wanted
            self.notes.setdefault(record.run.id, []).extend(notes)
            return wanted

    def close(self, run: ListedRun) -> None:
        """Remove the run from `open_runs`, unless there is a newer request."""
        with self._lock:
            if self._open[run.run_id].asked_at == run.asked_at:
                self._closed.add(run.run_id)


class MemoryCallNotes:
    """CallNotes in memory, for any number of agents, which share no keys. Thread-safe."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._calls: dict[str, int] = {}
        self._closed_up_to: dict[str, int] = {}

    def begin(self, key: str, claim: int) -> Begun:
        """Note that a request of the claim with number `claim` is about to call the service."""
        with self._lock:
            if self._closed_up_to.get(key, -1) >= claim:
                return Begun.CLOSED
            self._calls[key] = self._calls.get(key, 0) + 1
            return Begun.FIRST if self._calls[key] == 1 else Begun.AGAIN

    def close(self, key: str, claim: int, *, begun: bool) -> bool:
        """Forbid further calls under this key by the requests of this claim and of earlier claims.

        Returns False and changes nothing if a call is noted. With `begun`, exactly one call, the
        caller's own, must be noted.
        """
        with self._lock:
            calls, closed_up_to = self._calls.get(key, 0), self._closed_up_to.get(key, -1)
            if calls == 0 and closed_up_to >= claim:
                return True
            if calls != int(begun) or closed_up_to > claim:
                return False
            self._calls[key] = 0
            self._closed_up_to[key] = claim
            return True


class MemoryGroups:
    """GroupStore in memory. Thread-safe: each call is atomic."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._groups: dict[str, Group] = {}

    def groups(self) -> list[Group]:
        """All open failure groups, oldest first."""
        with self._lock:
            return sorted(self._groups.values(), key=lambda group: (group.opened_at, group.id))

    def open(self, group: Group) -> Group | None:
        """Store the group unless one with its id exists.

        Returns the stored group, or None if there is no room for another group.
        """
        with self._lock:
            found = self._groups.get(group.id)
            if found is not None:
                return found
            room = room_for(group)
            if room is not None and len(self._groups) >= room:
                return None
            self._groups[group.id] = group
            return group

    def change(self, group: Group, *, seen: int) -> bool:
        """Store the group if its version is still `seen`. Returns False if it is not."""
        with self._lock:
            found = self._groups.get(group.id)
            if found is None or found.version != seen:
                return False
            self._groups[group.id] = group
            return True

    def remove(self, group: Group) -> bool:
        """Remove the group if its version is unchanged. Returns False if it is not."""
        with self._lock:
            found = self._groups.get(group.id)
            if found is None or found.version != group.version:
                return False
            del self._groups[group.id]
            return True
