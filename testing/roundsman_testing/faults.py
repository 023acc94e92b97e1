"""Fault injection: wrappers around the ports that let any call fail, crash or lose its answer.

Each wrapper passes its calls to a `Faults` object, by name: `save`, `send_requests`, `read_board`.
An operation that takes one call to AWS in the real adapters is one call here.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import StrEnum
from functools import partial
from traceback import extract_tb
from typing import BinaryIO, Generic, NamedTuple, ParamSpec, Protocol, TypeVar

from roundsman.agents.call_notes import Begun
from roundsman.definition.plan import Plan
from roundsman.errors import CallRefused, Problem, Throttled, TryAgain
from roundsman.model.bulk_run import BulkRecord, ListedRun, OrderNote, PlannedOrder, Run, RunRequest
from roundsman.model.events import Agents, HistoryRow
from roundsman.model.failure import Group
from roundsman.model.holds import Hold
from roundsman.model.json import Json
from roundsman.model.leases import Leases
from roundsman.model.order_limit import LimitRow
from roundsman.model.queue_lag import ReadMark
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.schedules import Pause, ScheduleRecord
from roundsman.model.task import Task
from roundsman.model.wakes import Wake
from roundsman.ports import (
    NO_INPUTS,
    Created,
    DueEntry,
    Exists,
    Member,
    OrderRow,
    Outbox,
    ParkedEntry,
    PayloadObject,
    Saved,
    Superseded,
)
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import AgentRequest
from roundsman_testing.dynamodb.tables import MemoryDynamoDB
from roundsman_testing.memory import (
    TABLES,
    MemoryAgentBoard,
    MemoryBulkRuns,
    MemoryCallNotes,
    MemoryGroups,
    MemoryHolds,
    MemoryLeases,
    MemoryOrderLimits,
    MemoryPayloads,
    MemoryPlans,
    MemorySchedules,
    MemorySearchSecret,
    MemoryStore,
    MemoryWakes,
)

T = TypeVar("T")
P = ParamSpec("P")


class Crash(BaseException):
    """The process has died. Not an Exception, so that no `except Exception` catches it."""


class FunctionExits(AssertionError):
    """Code of the application has called sys.exit, which ends the process of its function."""

    def __init__(self, where: str, ended: SystemExit) -> None:
        last = extract_tb(ended.__traceback__)[-1]
        super().__init__(
            f"{where}: {last.filename}, line {last.lineno}, has called sys.exit({ended.code!r}). "
            "On Lambda that ends the process of the function, and its messages come again. Raise "
            "PermanentError or TransientError instead"
        )


class Fault(StrEnum):
    """A way in which one call can fail. Each value is a sentence that describes it."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call"
    NOT_DONE = "the call fails for now, without effect"
    UNKNOWN = "the call has its effect, and then fails"
    REFUSED = "the call fails for good"
    ANSWER_LOST = "a write has its effect, its answer is lost, and boto3 repeats it"
    SWALLOWED = "a message is accepted and lost"
    STALE = "a read that need not be the latest finds what was there before the last write"
    LAGGING = "an index shows what was there before the last write"
    LEFT_OUT = "a batch read leaves all keys but one out"
    CONFLICT = "a write meets a transaction of another caller"
    THROTTLED = "the tables have no capacity left"


MESSAGES = (
    *("send_requests", "send_start", "send_inspect", "send_inspects", "send_commands"),
    "reply",
)
READS = (
    *("load", "load_eventually", "order", "plan", "due", "parked", "members", "history"),
    *("read_board", "read_depth", "read_holds", "read_wakes", "read_leases", "read_groups"),
    *("read_bulk_list", "read_bulk", "read_bulk_plan", "read_bulk_request", "read_limit"),
    *("read_pauses", "read_schedule", "open_payload"),
)
STALE_READS = ("load_eventually",)
INDEX_READS = ("due", "parked", "members")
BATCH_READS = ("load", "load_eventually")
"""A load reads a batch only if the task has rows of settled steps."""

CONDITIONAL_WRITES = (
    "create",
    "save",
    "clear_owed",
    "rearm",
    "write_leases",
    "note_call",
    "write_schedule",
)
TASK_WRITES = ("create", "save", "clear_owed", "rearm", "trouble", "postpone")
TABLE_CALLS = (
    *TASK_WRITES,
    *("load", "load_eventually", "order", "due", "parked", "members", "history"),
    *("read_board", "read_holds", "read_wakes", "read_leases", "read_groups"),
    *("read_bulk_list", "read_bulk", "read_bulk_plan", "read_bulk_request", "read_limit"),
    *("read_pauses", "read_schedule", "write_schedule", "mark_schedule", "unmark_schedule"),
    *("add_history", "erase_order", "erase_history"),
    *("write_leases", "open_group", "change_group", "remove_group", "write_limit"),
    *("write_wake", "write_bulk", "close_bulk", "note_call", "close_key", "note_read"),
)
"""The calls that read or write a table each time. A plan is read and stored once and then kept."""

CALLS = (
    *CONDITIONAL_WRITES,
    *MESSAGES,
    *READS,
    *("put_plan", "add_history", "trouble", "postpone", "note_read", "close_key"),
    *("erase_order", "erase_history"),
    *("open_group", "change_group", "remove_group", "write_limit"),
    *("write_wake", "write_bulk", "close_bulk", "mark_schedule", "unmark_schedule"),
    *("send_command", "send_status", "publish", "reject"),
    *("put_payload", "erase_payloads"),
)
"""The names of all calls to AWS, as `Faults.on` takes them."""

ABLE = {
    Fault.ANSWER_LOST: CONDITIONAL_WRITES,
    Fault.SWALLOWED: MESSAGES,
    Fault.STALE: STALE_READS,
    Fault.LAGGING: INDEX_READS,
    Fault.LEFT_OUT: BATCH_READS,
    Fault.CONFLICT: TASK_WRITES,
    Fault.THROTTLED: TABLE_CALLS,
}
"""The calls that a fault can hit. A fault that is not listed can hit every call."""


class Hit(NamedTuple):
    """A call that failed."""

    number: int
    """Its position among all calls, counted from 1."""
    name: str
    fault: Fault


class Faults:
    """Counts the calls of one or several processes and makes the chosen ones fail.

    `calls` lists the names of all calls so far, in order; `happened` lists the calls that failed;
    `count` is the number of faults of each kind. `stopped` is True after `stop`.
    """

    def __init__(self) -> None:
        """Start without faults: every call works."""
        self.calls: list[str] = []
        self.count: dict[Fault, int] = {}
        self.happened: list[Hit] = []
        self.stopped = False
        self._at: dict[int, Fault] = {}
        self._named: list[tuple[str, int, Fault]] = []
        self._before_each: Callable[[str], None] = lambda _: None
        self._on_hit: Callable[[Hit], None] = lambda _: None

    def at(self, number: int, fault: Fault) -> "Faults":
        """Make the n-th of all calls fail, counted from 1. Raises ValueError if `number` < 1."""
        _check_number(number)
        self._at[number] = fault
        return self

    def on(self, name: str, fault: Fault, *, nth: int | None = None) -> "Faults":
        """Make the n-th call of that name from now on fail.

        Without `nth`, every call of that name fails. Raises ValueError if no call has that name, if
        the fault cannot hit that call, or if `nth` is less than 1.
        """
        if name not in CALLS:
            raise ValueError(f"no call is named {name!r}; there are {', '.join(CALLS)}")
        able = ABLE.get(fault, CALLS)
        if name not in able:
            raise ValueError(f"{fault.name} cannot hit {name}; it hits {', '.join(able)}")
        if nth is not None:
            _check_number(nth)
        already = self.calls.count(name)
        self._named.append((name, 0 if nth is None else already + nth, fault))
        return self

    def before_each(self, hook: Callable[[str], None]) -> "Faults":
        """Run `hook` before every call, with the name of the call."""
        self._before_each = hook
        return self

    def on_hit(self, hook: Callable[[Hit], None]) -> "Faults":
        """Run `hook` for each call that is about to fail."""
        self._on_hit = hook
        return self

    def stop(self) -> None:
        """Inject no further faults."""
        self.stopped = True

    def around(
        self,
        name: str,
        call: Callable[[], T],
        *,
        tables: MemoryDynamoDB | None = None,
        swallowed: Callable[[], None] = lambda: None,
    ) -> T:
        """Make the call, or make it fail with the fault that `choose` returns.

        `tables` are those that the call reads or writes. The faults of tables happen in them, and
        the adapter answers as on AWS. `swallowed` is called if a message is accepted and lost.
        Raises Crash, TryAgain or CallRefused, depending on the fault.
        """
        self._before_each(name)
        self.calls.append(name)
        fault = None if self.stopped else self.choose(name)
        if fault is None or name not in ABLE.get(fault, CALLS):
            return call()
        self.count[fault] = self.count.get(fault, 0) + 1
        self.happened.append(hit := Hit(len(self.calls), name, fault))
        self._on_hit(hit)
        if fault is Fault.CRASH_BEFORE:
            raise Crash(name)
        if fault is Fault.NOT_DONE:
            raise Throttled(f"{name}: throttled")
        if fault is Fault.REFUSED:
            raise CallRefused(f"{name}: AccessDenied", "AccessDenied")
        if fault is Fault.SWALLOWED:
            swallowed()
            return None  # type: ignore[return-value]  # calls that send messages return None
        with _of_tables(fault, tables):
            answer = call()
        if fault is Fault.CRASH_AFTER:
            raise Crash(name)
        if fault is Fault.UNKNOWN:
            raise TryAgain(f"{name}: timed out")
        return answer

    def choose(self, name: str) -> Fault | None:
        """The fault of the call that was just counted, which has that name; None if it works."""
        for wanted, number, fault in self._named:
            if wanted == name and number in (0, self.calls.count(name)):
                return fault
        return self._at.get(len(self.calls))


def _of_tables(fault: Fault, tables: MemoryDynamoDB | None) -> AbstractContextManager[None]:
    if tables is None:
        return nullcontext()
    in_tables: Mapping[Fault, Callable[[], AbstractContextManager[None]]] = {
        Fault.ANSWER_LOST: tables.lost_answer,
        Fault.STALE: partial(tables.stale_reads, TABLES.tasks),
        Fault.LAGGING: partial(tables.lagging_indexes, TABLES.tasks),
        Fault.LEFT_OUT: partial(tables.short_batches, 1),
        Fault.CONFLICT: partial(tables.conflict, TABLES.tasks),
        Fault.THROTTLED: tables.throttled,
    }
    return in_tables.get(fault, nullcontext)()


def _check_number(number: int) -> None:
    if number < 1:
        raise ValueError(f"calls are counted from 1, so there is no call {number}")


class _OverTables(Protocol):
    """A store over tables in memory."""

    tables: MemoryDynamoDB


Inner = TypeVar("Inner", bound=_OverTables)


class _Faulty(Generic[Inner]):
    """A store over tables, with faults."""

    def __init__(self, inner: Inner, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def _around(self, name: str, call: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        made = partial(call, *args, **named)
        return self._faults.around(name, made, tables=self._inner.tables)


class FaultyStore(_Faulty[MemoryStore]):
    """TaskStore and OrderStore that inject faults into a MemoryStore.

    `look` is called after every write, `on_load` with the id of each task that was read.
    """

    def __init__(
        self,
        inner: MemoryStore,
        faults: Faults,
        look: Callable[[], None],
        on_load: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(inner, faults)
        self._look = look
        self._on_load = on_load

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        return self._write("create", self._inner.create, order, task)

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        name = "load" if latest else "load_eventually"
        found = self._around(name, self._inner.load, task_id, now, latest=latest)
        self._on_load(task_id)
        return found

    def save(
        self,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        return self._write(
            "save",
            self._inner.save,
            task,
            seen=seen,
            history=history,
            inputs=inputs,
            search=search,
        )

    def inputs(self, task: Task, names: Collection[str]) -> Mapping[str, Json]:
        return self._around("inputs", self._inner.inputs, task, names)

    def add_history(self, task_id: str, row: HistoryRow) -> None:
        self._around("add_history", self._inner.add_history, task_id, row)

    def history(self, task_id: str) -> list[HistoryRow]:
        return self._around("history", self._inner.history, task_id)

    def erase_order(self, order_id: str, *, created_at: int, erased_at: int) -> None:
        self._around(
            "erase_order",
            self._inner.erase_order,
            order_id,
            created_at=created_at,
            erased_at=erased_at,
        )

    def erase_history(self, task_id: str) -> None:
        self._around("erase_history", self._inner.erase_history, task_id)

    def clear_owed(self, task: Task) -> Saved | Superseded:
        return self._write("clear_owed", self._inner.clear_owed, task)

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        return self._write("rearm", self._inner.rearm, task, due_at)

    def trouble(self, task_id: str, member_of: tuple[str, int], now: int) -> int:
        return self._around("trouble", self._inner.trouble, task_id, member_of, now)

    def postpone(self, task_id: str, due_at: int) -> None:
        self._around("postpone", self._inner.postpone, task_id, due_at)

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        return self._read("due", self._inner.due, lane, until)

    def parked(
        self, target: str, priority: str, shard: int, *, after: int
    ) -> Iterator[ParkedEntry]:
        return self._read("parked", self._inner.parked, target, priority, shard, after=after)

    def waiting(self, limit: str, most: int) -> Sequence[ParkedEntry]:
        return self._around("parked", self._inner.waiting, limit, most)

    def members(
        self, group: str, shard: int, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        read = partial(self._inner.members, since=since, newest_first=newest_first)
        return self._read("members", read, group, shard)

    def order(self, order_id: str) -> OrderRow | None:
        return self._around("order", self._inner.order, order_id)

    def _read(
        self, name: str, read: Callable[P, Iterator[T]], *args: P.args, **named: P.kwargs
    ) -> Iterator[T]:
        return iter(self._around(name, lambda: list(read(*args, **named))))

    def _write(self, name: str, write: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        def written() -> T:
            answer = write(*args, **named)
            self._look()
            return answer

        return self._around(name, written)


class FaultyPlans(_Faulty[MemoryPlans]):
    """PlanStore that injects faults into a MemoryPlans."""

    def put_plan(self, plan: Plan) -> None:
        self._around("put_plan", self._inner.put_plan, plan)

    def plan(self, plan_hash: str) -> Plan | None:
        return self._around("plan", self._inner.plan, plan_hash)


class FaultySearchSecret(_Faulty[MemorySearchSecret]):
    """The secret of search keys, with faults of a MemorySearchSecret."""

    def __call__(self) -> bytes:
        return self._around("search_secret", self._inner)


class FaultyLeases(_Faulty[MemoryLeases]):
    """LeaseStore that injects faults into a MemoryLeases.

    A write whose answer was lost returns False, as if another write had come first.
    """

    def read(self) -> Leases:
        return self._around("read_leases", self._inner.read)

    def write(self, leases: Leases, *, seen: int) -> bool:
        return self._around("write_leases", self._inner.write, leases, seen=seen)


class FaultyWakes(_Faulty[MemoryWakes]):
    """WakeStore that injects faults into a MemoryWakes.

    ANSWER_LOST does not apply: the real adapter recognises its own write when it repeats it.
    """

    def read(self) -> Mapping[str, Wake]:
        return self._around("read_wakes", self._inner.read)

    def write(self, target: str, wake: Wake, *, before: Wake | None) -> bool:
        return self._around("write_wake", self._inner.write, target, wake, before=before)


class FaultyOrderLimits(_Faulty[MemoryOrderLimits]):
    """LimitStore that injects faults into a MemoryOrderLimits.

    ANSWER_LOST does not apply: the real adapter recognises its own write when it repeats it.
    """

    def read(self, limit: str) -> LimitRow:
        return self._around("read_limit", self._inner.read, limit)

    def write(self, limit: str, before: LimitRow, after: LimitRow) -> bool:
        return self._around("write_limit", self._inner.write, limit, before, after)


class FaultyPayloads:
    """PayloadStore that injects faults into a MemoryPayloads. Reading goes on once it has begun."""

    def __init__(self, inner: MemoryPayloads, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def put(self, key: str, body: BinaryIO, size: int) -> None:
        self._faults.around("put_payload", partial(self._inner.put, key, body, size))

    def open(self, key: str) -> PayloadObject:
        return self._faults.around("open_payload", partial(self._inner.open, key))

    def erase(self, order_id: str) -> None:
        self._faults.around("erase_payloads", partial(self._inner.erase, order_id))


class FaultyGroups(_Faulty[MemoryGroups]):
    """GroupStore that injects faults into a MemoryGroups.

    ANSWER_LOST does not apply: the real adapter recognises its own write when it repeats it.
    """

    def groups(self) -> list[Group]:
        return self._around("read_groups", self._inner.groups)

    def open(self, group: Group) -> Group | None:
        return self._around("open_group", self._inner.open, group)

    def change(self, group: Group, *, seen: int) -> bool:
        return self._around("change_group", self._inner.change, group, seen=seen)

    def remove(self, group: Group) -> bool:
        return self._around("remove_group", self._inner.remove, group)


class FaultyHolds(_Faulty[MemoryHolds]):
    """The reads of a HoldStore, with faults. A write works."""

    def holds(self) -> Sequence[Hold]:
        return self._around("read_holds", self._inner.holds)

    def hold(self, hold: Hold) -> bool:
        return self._inner.hold(hold)

    def stored(self, *, latest: bool = True) -> Sequence[Hold]:
        return self._around("read_holds", self._inner.stored, latest=latest)

    def release(self, agent: str, kind: str) -> bool:
        return self._inner.release(agent, kind)

    def change(self, before: Hold, after: Hold) -> bool:
        return self._inner.change(before, after)


class FaultyBulkRuns(_Faulty[MemoryBulkRuns]):
    """The part of a BulkRunStore that supervisors use, with faults.

    ANSWER_LOST does not apply: the real adapter recognises its own write when it repeats it.
    """

    def begin(self, run: Run, orders: Sequence[PlannedOrder]) -> None:
        self._inner.begin(run, orders)

    def ask(self, run_id: str, request: RunRequest, *, seen: int) -> bool:
        return self._inner.ask(run_id, request, seen=seen)

    def open_runs(self) -> list[ListedRun]:
        return self._around("read_bulk_list", self._inner.open_runs)

    def load(self, run_id: str, starter: str) -> BulkRecord | None:
        return self._around("read_bulk", self._inner.load, run_id, starter)

    def orders(self, run: Run, first: int, most: int) -> list[PlannedOrder]:
        return self._around("read_bulk_plan", self._inner.orders, run, first, most)

    def request(self, run: ListedRun) -> RunRequest | None:
        return self._around("read_bulk_request", self._inner.request, run)

    def save(self, record: BulkRecord, notes: Sequence[OrderNote] = ()) -> BulkRecord | None:
        return self._around("write_bulk", self._inner.save, record, notes)

    def close(self, run: ListedRun) -> None:
        self._around("close_bulk", self._inner.close, run)


class FaultySchedules(_Faulty[MemorySchedules]):
    """ScheduleStore that injects faults into a MemorySchedules. What a person writes works.

    A write whose answer was lost returns False, as if another write had come first.
    """

    def pauses(self) -> Sequence[Pause]:
        return self._around("read_pauses", self._inner.pauses)

    def pause(self, pause: Pause) -> None:
        self._inner.pause(pause)

    def resume(self, target: str) -> None:
        self._inner.resume(target)

    def read(self, schedule: str) -> ScheduleRecord:
        return self._around("read_schedule", self._inner.read, schedule)

    def write(self, record: ScheduleRecord, *, now: int) -> bool:
        return self._around("write_schedule", self._inner.write, record, now=now)

    def mark(self, record: ScheduleRecord) -> None:
        self._around("mark_schedule", self._inner.mark, record)

    def unmark(self, schedule: str, version: int) -> None:
        self._around("unmark_schedule", self._inner.unmark, schedule, version)


class FaultyOutbox:
    """Outbox that injects faults into another Outbox.

    `on_accepted` is called with each request that a queue accepted, even if it is lost later, and
    `on_command` with each command of a bulk run.
    """

    def __init__(
        self,
        inner: Outbox,
        faults: Faults,
        on_accepted: Callable[[AgentRequest], None] = lambda _: None,
        on_command: Callable[[Command], None] = lambda _: None,
    ) -> None:
        self._inner = inner
        self._faults = faults
        self._on_accepted = on_accepted
        self._on_command = on_command

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        def accepted() -> None:
            for _, _, request in requests:
                self._on_accepted(request)

        def send() -> None:
            # A request for an agent without a queue counts as accepted as well: its step fails
            # with UnknownAgent and not with a timeout.
            accepted()
            self._inner.send_requests(requests)

        self._faults.around("send_requests", send, swallowed=accepted)

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        self._faults.around("send_start", partial(self._inner.send_start, task_id, delay=delay))

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        self._faults.around("send_inspect", partial(self._inner.send_inspect, task_id, delay=delay))

    def send_command(self, command: Command) -> None:
        self._faults.around("send_command", partial(self._inner.send_command, command))

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        self._faults.around("send_inspects", partial(self._inner.send_inspects, inspects))

    def send_commands(self, commands: Sequence[tuple[Command, int]]) -> None:
        def accepted() -> None:
            for command, _ in commands:
                self._on_command(command)

        def send() -> None:
            accepted()
            self._inner.send_commands(commands)

        self._faults.around("send_commands", send, swallowed=accepted)

    def send_status(self, queue_url: str, body: str) -> bool:
        return self._faults.around("send_status", partial(self._inner.send_status, queue_url, body))

    def publish(self, alert: Alert) -> None:
        self._faults.around("publish", partial(self._inner.publish, alert))

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        self._faults.around("reject", partial(self._inner.reject, queue, body, problems))

    def reject_command(self, body: str, problems: Sequence[Problem]) -> None:
        self._faults.around("reject", partial(self._inner.reject_command, body, problems))


class FaultyBoard(_Faulty[MemoryAgentBoard]):
    """AgentBoard that injects faults into a MemoryAgentBoard."""

    def agents(self) -> Agents:
        return self._around("read_board", self._inner.agents)

    def order_holds(self) -> Sequence[Hold]:
        return self._inner.order_holds()  # read together with `agents`

    def marks(self) -> Mapping[str, ReadMark]:
        return self._inner.marks()  # read together with `agents`

    def depth(self, key: str) -> QueueDepth | None:
        return self._around("read_depth", self._inner.depth, key)

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        def note() -> None:
            self._inner.note_read(agent, priority, sent_at, lock)

        with suppress(TryAgain):  # as the real one, which writes the mark at a later read
            self._around("note_read", note)


class FaultyCallNotes(_Faulty[MemoryCallNotes]):
    """CallNotes that injects faults into other CallNotes."""

    def begin(self, key: str, claim: int) -> Begun:
        return self._around("note_call", self._inner.begin, key, claim)

    def close(self, key: str, claim: int, *, begun: bool) -> bool:
        return self._around("close_key", self._inner.close, key, claim, begun=begun)
