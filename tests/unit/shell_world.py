"""The shells over stores in memory, with a clock to set and faults at any call.

Each shell is made with its own `Faults`, as each process fails by itself; what they share is the
world's stores and its outbox. Faults are in wrappers around the ports: nothing is patched.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

from roundsman.alerts import Alert
from roundsman.birth import Wishes
from roundsman.commands import Command
from roundsman.due import Lane, due, lane_key
from roundsman.errors import CallRefused, Problem, TryAgain
from roundsman.events import HistoryRow, Outcome
from roundsman.leases import Leases
from roundsman.memory import (
    MemoryAgentBoard,
    MemoryLeases,
    MemoryPlans,
    MemoryStore,
    RecordingOutbox,
    SentCommand,
    SentRequest,
    SentStatus,
)
from roundsman.messages import AgentRequest, Reply
from roundsman.plan import Plan
from roundsman.ports import (
    Clock,
    Created,
    DueEntry,
    Exists,
    OrderRow,
    Outbox,
    Saved,
    Superseded,
)
from roundsman.scheduling import Scheduler
from roundsman.submission import NewOrder, Submission, Submitted
from roundsman.supervision import Beat, Supervisor
from roundsman.task import StepError, Task, idempotency_key
from roundsman.values import SECOND, Json, parse_json
from tests.unit.machine_world import REPLY_TO, T0

T = TypeVar("T")

ORDER_ID = "ord-1"
ORDER: Json = {"orderId": ORDER_ID, "total": "39.80"}
SHARDS = 4


class Crash(BaseException):
    """The process is gone; no handler of exceptions sees it."""


class Fault(StrEnum):
    """What may go wrong with one call."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call"
    NOT_DONE = "the call fails for now, without effect"
    UNKNOWN = "the call has its effect, and then fails"
    REFUSED = "the call fails for good"
    ANSWER_LOST = "a write has its effect, is repeated, and fails its own condition"
    SWALLOWED = "a message is accepted and lost"


LOST_RACE: Saved | Superseded = Superseded()
MESSAGES = ("send_requests", "send_start", "send_inspect", "send_inspects", "reply")
CONDITIONAL_WRITES = ("create", "save", "clear_owed", "rearm")


class Faults:
    """Counts the calls of one process (or of several), and lets the chosen ones fail."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.stopped = False
        self._at: dict[int, Fault] = {}
        self._named: list[tuple[str, int, Fault]] = []
        self._before_each: Callable[[str], None] = lambda _: None

    def at(self, number: int, fault: Fault) -> "Faults":
        """Let the n-th call of all fail, counted from 1."""
        self._at[number] = fault
        return self

    def on(self, name: str, fault: Fault, *, nth: int | None = None) -> "Faults":
        """Let the n-th call of that name fail from now on; without a number, each of them."""
        already = self.calls.count(name)
        self._named.append((name, 0 if nth is None else already + nth, fault))
        return self

    def before_each(self, hook: Callable[[str], None]) -> "Faults":
        """Run this before every call, with the call's name."""
        self._before_each = hook
        return self

    def stop(self) -> None:
        """From now on all is well."""
        self.stopped = True

    def around(
        self, name: str, call: Callable[[], T], *, lost: T | None = None, ignored: T | None = None
    ) -> T:
        """Make the call, or let it fail. `lost` is what a lost answer turns into."""
        self._before_each(name)
        self.calls.append(name)
        fault = None if self.stopped else self._fault(name)
        if fault is Fault.CRASH_BEFORE:
            raise Crash(name)
        if fault is Fault.NOT_DONE:
            raise TryAgain(f"{name}: throttled")
        if fault is Fault.REFUSED:
            raise CallRefused(f"{name}: AccessDenied", "AccessDenied")
        if fault is Fault.SWALLOWED and name in MESSAGES:
            return ignored  # type: ignore[return-value]  # these return nothing
        answer = call()
        if fault is Fault.CRASH_AFTER:
            raise Crash(name)
        if fault is Fault.UNKNOWN:
            raise TryAgain(f"{name}: timed out")
        if fault is Fault.ANSWER_LOST and lost is not None:
            return lost
        return answer

    def _fault(self, name: str) -> Fault | None:
        for wanted, number, fault in self._named:
            if wanted == name and number in (0, self.calls.count(name)):
                return fault
        return self._at.get(len(self.calls))


class FaultyStore:
    """TaskStore and OrderStore over the memory's; `look` is called after every write."""

    def __init__(self, inner: MemoryStore, faults: Faults, look: Callable[[], None]) -> None:
        self._inner = inner
        self._faults = faults
        self._look = look

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        def write() -> Created | Exists:
            return self._inner.create(order, task)

        return self._write("create", write, _exists(order, task))

    def load(self, task_id: str, now: int) -> Task | None:
        return self._faults.around("load", lambda: self._inner.load(task_id, now))

    def save(
        self, task: Task, *, seen: int, history: Sequence[HistoryRow] = ()
    ) -> Saved | Superseded:
        def write() -> Saved | Superseded:
            return self._inner.save(task, seen=seen, history=history)

        return self._write("save", write, LOST_RACE)

    def add_history(self, task_id: str, row: HistoryRow) -> None:
        self._faults.around("add_history", lambda: self._inner.add_history(task_id, row))

    def clear_owed(self, task: Task) -> Saved | Superseded:
        return self._write("clear_owed", lambda: self._inner.clear_owed(task), LOST_RACE)

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        return self._write("rearm", lambda: self._inner.rearm(task, due_at), LOST_RACE)

    def trouble(self, task_id: str) -> int:
        return self._faults.around("trouble", lambda: self._inner.trouble(task_id))

    def postpone(self, task_id: str, due_at: int) -> None:
        self._faults.around("postpone", lambda: self._inner.postpone(task_id, due_at))

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        return iter(self._faults.around("due", lambda: list(self._inner.due(lane, until))))

    def order(self, order_id: str) -> OrderRow | None:
        return self._faults.around("order", lambda: self._inner.order(order_id))

    def _write(self, name: str, write: Callable[[], T], lost: T) -> T:
        def written() -> T:
            answer = write()
            self._look()
            return answer

        return self._faults.around(name, written, lost=lost)


class FaultyPlans:
    """PlanStore over the memory's."""

    def __init__(self, inner: MemoryPlans, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def put_plan(self, plan: Plan) -> None:
        self._faults.around("put_plan", lambda: self._inner.put_plan(plan))

    def plan(self, plan_hash: str) -> Plan | None:
        return self._faults.around("plan", lambda: self._inner.plan(plan_hash))


class FaultyLeases:
    """LeaseStore over the memory's; a lost answer says that another write came first."""

    def __init__(self, inner: MemoryLeases, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def read(self) -> Leases:
        return self._faults.around("read_leases", self._inner.read)

    def write(self, leases: Leases, *, seen: int) -> bool:
        def write() -> bool:
            return self._inner.write(leases, seen=seen)

        return self._faults.around("write_leases", write, lost=False)


class FaultyOutbox:
    """Outbox over another one."""

    def __init__(self, inner: Outbox, faults: Faults) -> None:
        self._inner = inner
        self._faults = faults

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        self._faults.around("send_requests", lambda: self._inner.send_requests(requests))

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        self._faults.around("send_start", lambda: self._inner.send_start(task_id, delay=delay))

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        self._faults.around("send_inspect", lambda: self._inner.send_inspect(task_id, delay=delay))

    def send_command(self, command: Command) -> None:
        self._faults.around("send_command", lambda: self._inner.send_command(command))

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        self._faults.around("send_inspects", lambda: self._inner.send_inspects(inspects))

    def send_status(self, queue_url: str, body: str) -> bool:
        return self._faults.around("send_status", lambda: self._inner.send_status(queue_url, body))

    def publish(self, alert: Alert) -> None:
        self._faults.around("publish", lambda: self._inner.publish(alert))

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        self._faults.around("reject", lambda: self._inner.reject(queue, body, problems))


@dataclass
class Shells:
    """The stores, the outbox and the clock that all shells of a test share.

    `unwatched` collects every moment at which an open task had no due entry early enough.
    """

    plan: Plan
    wishes: Wishes = field(default_factory=lambda: Wishes(reply_to=REPLY_TO))
    now: int = T0
    jitter: float = 0.5
    store: MemoryStore = field(default_factory=MemoryStore)
    plans: MemoryPlans = field(default_factory=MemoryPlans)
    leases: MemoryLeases = field(default_factory=MemoryLeases)
    outbox: RecordingOutbox = field(default_factory=RecordingOutbox)
    troubles: list[str] = field(default_factory=list)
    unwatched: list[str] = field(default_factory=list)
    board: MemoryAgentBoard = field(init=False)

    def __post_init__(self) -> None:
        self.board = MemoryAgentBoard(self.clock)

    def clock(self) -> int:
        return self.now

    def wait(self, seconds: float) -> "Shells":
        self.now += round(seconds * SECOND)
        return self

    # --- the shells --------------------------------------------------------------------------

    def submission(self, faults: Faults | None = None, to: Outbox | None = None) -> Submission:
        faults = faults or Faults()
        return Submission(
            tasks=FaultyStore(self.store, faults, self.look),
            plans=FaultyPlans(self.plans, faults),
            outbox=FaultyOutbox(to or self.outbox, faults),
            clock=self.clock,
            shards=SHARDS,
        )

    def scheduler(
        self, faults: Faults | None = None, *, to: Outbox | None = None, instance: str = "s1"
    ) -> Scheduler:
        faults = faults or Faults()
        store = FaultyStore(self.store, faults, self.look)
        return Scheduler(
            tasks=store,
            orders=store,
            plans=FaultyPlans(self.plans, faults),
            board=self.board,
            outbox=FaultyOutbox(to or self.outbox, faults),
            clock=self.clock,
            jitter=lambda: self.jitter,
            instance=instance,
        )

    def supervisor(
        self,
        faults: Faults | None = None,
        *,
        to: Outbox | None = None,
        jitter: Callable[[], float] | None = None,
        instance: str = "u1",
        interval: int = 60,
        clock: Clock | None = None,
    ) -> Supervisor:
        faults = faults or Faults()
        return Supervisor(
            tasks=FaultyStore(self.store, faults, self.look),
            plans=FaultyPlans(self.plans, faults),
            board=self.board,
            outbox=FaultyOutbox(to or self.outbox, faults),
            clock=clock or self.clock,
            jitter=jitter or (lambda: self.jitter),
            beat=Beat(FaultyLeases(self.leases, faults), instance, SHARDS, interval * SECOND),
            on_trouble=lambda task_id, problem: self.troubles.append(task_id),
        )

    def new_order(
        self, order_id: str = ORDER_ID, *, content_hash: str = "hash", wishes: Wishes | None = None
    ) -> NewOrder:
        return NewOrder(
            order_id=order_id,
            content={"orderId": order_id, "total": "39.80"},
            content_hash=content_hash,
            plan=self.plan,
            wishes=wishes or self.wishes,
        )

    def submit(self, order_id: str = ORDER_ID, faults: Faults | None = None) -> Submitted:
        return self.submission(faults).submit(self.new_order(order_id))

    def start(self, message: str = "m-start", faults: Faults | None = None) -> None:
        command = Command(kind="start", task_id=ORDER_ID)
        self.scheduler(faults).command(command, message)

    def inspect(self, message: str = "m-inspect", faults: Faults | None = None) -> None:
        command = Command(kind="inspect", task_id=ORDER_ID)
        self.scheduler(faults).command(command, message)

    def reply(
        self,
        step: str,
        outcome: Outcome = Outcome.SUCCEEDED,
        *,
        message: str | None = None,
        faults: Faults | None = None,
    ) -> None:
        """The agent's answer to the step's current claim."""
        reply = self.reply_to(step, outcome)
        self.scheduler(faults).reply(reply, message or f"m-{step}-{reply.lock}")

    def reply_to(self, step: str, outcome: Outcome = Outcome.SUCCEEDED) -> Reply:
        record = self.task().step(step)
        return Reply(
            task_id=ORDER_ID,
            step=step,
            operation="perform",
            lock=record.locked_by or "nobody",
            idempotency_key=idempotency_key(ORDER_ID, step, "perform", record),
            outcome=outcome,
            agent="worker",
            finished_at=self.now,
            result={"done": step} if outcome is Outcome.SUCCEEDED else None,
            error=None if outcome is Outcome.SUCCEEDED else StepError("Unavailable", "503"),
        )

    def make_pass(self, faults: Faults | None = None) -> None:
        self.supervisor(faults).make_pass(stop_at=self.now + 60 * SECOND)

    # --- looking -----------------------------------------------------------------------------

    def task(self, task_id: str = ORDER_ID) -> Task:
        """The record as it is stored, also past its retention; or as it was when removed."""
        stored = (task for task in self.store.tasks() if task.task_id == task_id)
        return next(stored, None) or self.store.removed[task_id]

    def open_entry(self, task_id: str = ORDER_ID) -> int | None:
        """The due instant of a task in its open lane."""
        task = self.task(task_id)
        return task.due_at if task.lane == lane_key(Lane.OPEN, task.shard) else None

    def requests(self) -> list[tuple[str, str]]:
        """Step and lock token of each request that was sent."""
        sent = [sent.request for sent in self.outbox.sent if isinstance(sent, SentRequest)]
        return [(request.step, request.lock) for request in sent]

    def requested(self) -> list[str]:
        return [step for step, _ in self.requests()]

    def commands(self) -> list[tuple[str, str, int]]:
        found = [sent for sent in self.outbox.sent if isinstance(sent, SentCommand)]
        return [(sent.kind, sent.task_id, sent.delay) for sent in found]

    def starts(self) -> list[str]:
        """The tasks that were sent a Start at once."""
        found = self.commands()
        return [task_id for kind, task_id, delay in found if kind == "start" and delay == 0]

    def inspects(self) -> list[tuple[str, int]]:
        """The tasks that were sent an Inspect, and the delay of each in ms."""
        return [(task_id, delay) for kind, task_id, delay in self.commands() if kind == "inspect"]

    def statuses(self) -> list[str]:
        return [str(found["status"]) for found in self.status_bodies()]

    def status_bodies(self) -> list[dict[str, Json]]:
        bodies = [sent.body for sent in self.outbox.sent if isinstance(sent, SentStatus)]
        return [as_object(body) for body in bodies]

    def alerts(self) -> list[str]:
        """The kinds of the alerts."""
        return [sent.attributes["kind"] for sent in self.outbox.sent if isinstance(sent, Alert)]

    def look(self) -> None:
        """Note each open task whose due entry is too late for what its record asks for."""
        for task in self.store.tasks():
            in_lane = task.lane == lane_key(Lane.OPEN, task.shard)
            needs_watch = not task.ended or bool(task.owed)
            if needs_watch and not in_lane:
                self.unwatched.append(f"{task.task_id} v{task.version} left its lane")
            if needs_watch and in_lane and task.due_at > due(task, self.now):
                self.unwatched.append(f"{task.task_id} v{task.version} is looked at too late")


def _exists(order: OrderRow, task: Task) -> Created | Exists:
    return Exists(order, task)


def as_object(text: str) -> dict[str, Json]:
    value = parse_json(text)
    assert isinstance(value, dict)
    return value
