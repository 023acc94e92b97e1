"""The real scheduler and supervisor, run on one canonical record, and cut where a story wants it.

Nothing of the engine is modelled here: a message goes through `Scheduler`, a pass through
`Supervisor`, and both write to a `MemoryStore`. A process is cut by an exception after any call
that has an effect; one that has read and not yet written is run again from what it had read.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from roundsman.engine import agent_holds, claims, machine, overdue, time_credit
from roundsman.engine.newly_owed import PARTLY_UNDONE, STATUSES
from roundsman.errors import InvalidMessage, Problem, RoundsmanError, TryAgain
from roundsman.model.events import (
    Agents,
    AgentView,
    HistoryRow,
    HoldView,
    OperatorEvent,
    Outcome,
    Signalled,
)
from roundsman.model.failure import RETRIED, Group
from roundsman.model.holds import Hold
from roundsman.model.instants import MINUTE, SECOND, iso
from roundsman.model.json import Json, parse_json
from roundsman.model.queue_lag import ReadMark
from roundsman.model.scheduler_queues import COMMANDS, QueueDepth
from roundsman.model.task import LATE_ANSWER, REJECTION, StepError, StepRecord, StepToAdd, Task
from roundsman.ports import NO_INPUTS, DueEntry, OrderRow, Saved, Superseded
from roundsman.scheduler.arrived import Arrived
from roundsman.supervisor.supervisor import Supervisor, SupervisorConfig
from roundsman.wire.alert import Alert
from roundsman.wire.commands import INSPECT, START, Command, command_of
from roundsman.wire.messages import NEEDS_ERROR, AgentRequest, Reply
from roundsman_testing.memory import (
    MemoryGroups,
    MemoryLeases,
    MemoryOrderLimits,
    MemoryPlans,
    MemorySearchSecret,
    MemoryStore,
)
from roundsman_testing.recording import RecordingOutbox
from tests.exploration.answers import ANSWERS
from tests.exploration.canonical import INSTANCE, T0, VERSION, Records, moved
from tests.exploration.state import Batch, Mail, Read
from tests.support.one_by_one import OneByOne

TASK_ID = "ord-1"
ORDER: Json = {"orderId": TASK_ID, "items": [1, 2]}
JITTER = 0.5
REMIND_EVERY = 30 * SECOND
POLL_EVERY, POLL_WITHIN = 30 * SECOND, MINUTE
HELD_FOR_NOW = 5 * MINUTE
"""How long an agent that is held says that it will be. It may come back at any time, or never."""

NAMES_OF_ENDS = frozenset({"task_archived", PARTLY_UNDONE, *STATUSES.values()})


class Ran(NamedTuple):
    """What became of a run. `effects` are the calls that changed or reported something, in order.

    `names` are the record's nonces: as they were before, and as they are called in `record`.
    `reports` are the kinds of message that reported the task's present end; `ends_anew`: it came
    to that end here.
    `now` is the instant by the clock of `requests`. `claims` are the locks that were given, each
    with its step. `comes_again`: the message could not be handled and is in its queue still.
    """

    record: int
    now: int
    names: Mapping[str, str]
    requests: tuple[AgentRequest, ...]
    effects: tuple[str, ...]
    reports: frozenset[str]
    ends_anew: bool
    decisions: int
    starts: bool
    claims: tuple[tuple[str, str], ...]
    comes_again: bool


class World(NamedTuple):
    """What a process finds besides the record: the agents that are held, whether its plan, and
    whether replies wait in their queue; None where that cannot be read.

    `behind`: commands wait that nobody has read, and the last one that was read had waited long.
    `old_entry`: the index shows that the task is due, whatever its record says. `stale`: an
    eventually consistent read finds what the process is given as read, and no other read does.
    """

    held: frozenset[str] = frozenset()
    has_plan: bool = True
    replies_wait: bool | None = None
    behind: bool = False
    old_entry: bool = False
    stale: bool = False


WELL = World()


class Cut(BaseException):
    """The process is gone; no handler of exceptions sees it."""


class Lost(BaseException):
    """What was read is out of date: the first write on it is refused."""


class Defect(Exception):
    """The engine itself says that something cannot be."""


@dataclass(frozen=True)
class Fault:
    """The n-th effect, from 1: the process dies after it; or the call fails for now."""

    after: int = 0
    fails: int = 0


NO_FAULT = Fault()


class Shells:
    """Runs; equal ones are made once."""

    def __init__(
        self, records: Records, commands: Mapping[str, OperatorEvent], *, credits: bool = True
    ) -> None:
        """Without `credits`, no task gets back time for which its messages waited."""
        self._records = records
        self._credits = credits
        self._commands = commands
        self._plans = MemoryPlans()
        self._plans.put_plan(records.plan)
        self._agents = sorted({a for step in records.plan.steps.values() for a in step.agents})
        self._ran: dict[tuple[int, Mail | Batch, Fault, Read | None, World], Ran] = {}
        self._outdated: dict[tuple[int, Read], bool] = {}

    def run(
        self,
        record: int,
        job: Mail | Batch,
        fault: Fault = NO_FAULT,
        read: Read | None = None,
        world: World = WELL,
    ) -> Ran:
        """What the record is after the job. Raises Defect where the engine is at a loss."""
        key = record, job, fault, read, world
        found = self._ran.get(key)
        if found is None:
            found = self._ran[key] = self._make(record, job, fault, read, world)
        return found

    def outdated(self, record: int, read: Read) -> bool:
        """Whether the store would refuse what was decided on that reading."""
        key = record, read
        found = self._outdated.get(key)
        if found is None:
            desk = self._desk(record, NO_FAULT, read)
            desk.probes = True
            try:
                self.handle(desk, read.job)
                found = True  # there is nothing that it would write
            except Lost:
                found = True
            except Cut:
                found = False
            self._outdated[key] = found
        return found

    def _desk(self, record: int, fault: Fault, read: Read | None) -> "Desk":
        now = T0 + (read.age if read else 0)
        version = VERSION + (read.behind if read else 0)
        stored = replace(moved(self._records.tasks[record], now - T0), version=version)
        desk = Desk(stored, now, fault, self._records.tasks[read.record] if read else None)
        desk.committed = read is not None and read.committed
        return desk

    def _make(
        self, record: int, job: Mail | Batch, fault: Fault, read: Read | None, world: World
    ) -> Ran:
        desk = self._desk(record, fault, read)
        desk.world = world
        before = desk.tasks()[0]
        comes_again = False
        with suppress(Cut):
            comes_again = not self.handle(desk, job, world)
        stored = desk.tasks()[0]
        number, names = self._records.canonical(stored, desk.now)
        saves = desk.effects.count("save")
        decisions = max(stored.version - VERSION - (read.behind if read else 0), saves)
        return Ran(
            number,
            desk.now,
            names,
            tuple(desk.outbox.requests),
            tuple(desk.effects),
            frozenset(desk.outbox.reports),
            desk.ends_anew,
            decisions,
            desk.outbox.starts,
            _claims(before, stored),
            comes_again,
        )

    def handle(self, desk: "Desk", job: Mail | Batch, world: World = WELL) -> bool:
        """Let the process at that desk do the job; whether it is done.

        Raises Defect where the engine is at a loss.
        """
        try:
            with nullcontext() if self._credits else no_time_is_given_back():
                self._do(desk, job, world)
        except TryAgain:
            return False
        except RoundsmanError as problem:
            raise Defect(f"{type(problem).__name__}: {problem}") from problem
        return True

    def _do(self, desk: "Desk", job: Mail | Batch, world: World) -> None:
        if isinstance(job, Batch):
            self._together(desk, job, world)
        elif job.kind == "pass":
            self._supervisor(desk, world).make_pass(stop_at=desk.now + MINUTE)
        elif job.kind == "reply":
            self._scheduler(desk, world).reply(_reply(job), job.name)
        else:
            # One that is refused becomes a rejected message, and is acknowledged.
            is_signal = isinstance(self._commands.get(job.step), Signalled)
            with suppress(InvalidMessage) if is_signal else nullcontext():
                self._scheduler(desk, world).command(self._command(job), job.name)

    def _together(self, desk: "Desk", batch: Batch, world: World) -> None:
        mails = (batch.first, batch.second)
        arrived = [Arrived(_reply(mail), mail.name) for mail in mails]
        for result in self._scheduler(desk, world).handle(arrived):
            if isinstance(result, Exception):
                raise result

    def _command(self, job: Mail) -> Command:
        if job.kind in (START, INSPECT):
            return Command(job.kind, TASK_ID)
        return command_of(TASK_ID, self._commands[job.step])

    def _board(self, desk: "Desk", world: World) -> "Board":
        return Board(self._agents, desk.clock(), world)

    def _scheduler(self, desk: "Desk", world: World) -> OneByOne:
        return OneByOne(
            tasks=desk,
            orders=desk,
            plans=self._plans if world.has_plan else NO_PLANS,
            board=self._board(desk, world),
            groups=desk.groups,
            outbox=desk.outbox,
            clock=desk.clock,
            jitter=lambda: JITTER,
            instance=INSTANCE,
            search_secret=MemorySearchSecret(),
            limits=MemoryOrderLimits,
        )

    def _supervisor(self, desk: "Desk", world: World) -> Supervisor:
        def defect(_: str, problem: Exception) -> None:
            raise Defect(f"{type(problem).__name__}: {problem}") from problem

        return Supervisor(
            tasks=desk,
            plans=self._plans if world.has_plan else NO_PLANS,
            board=self._board(desk, world),
            groups=desk.groups,
            outbox=desk.outbox,
            clock=desk.clock,
            jitter=lambda: JITTER,
            config=SupervisorConfig(MemoryLeases(), INSTANCE, shards=1, interval=MINUTE),
            limits=MemoryOrderLimits,
            on_trouble=defect,
        )


NO_PLANS = MemoryPlans()


@contextmanager
def no_time_is_given_back() -> Iterator[None]:
    """Let the engine give back no time: the complete-by of a task does not move."""
    modules = (agent_holds, claims, machine, overdue, time_credit)
    for module in modules:
        module.credit = lambda *_: None  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in modules:
            module.credit = CREDIT  # type: ignore[attr-defined]


CREDIT = time_credit.credit


class Board:
    """The agents' board as one process sees it: of no queue is known how far it was read."""

    def __init__(self, agents: Sequence[str], now: int, world: World) -> None:
        until = now + HELD_FOR_NOW
        self._now = now
        self._behind = world.behind
        self._replies_wait = world.replies_wait
        self._views = {
            f"{agent}/normal": AgentView(
                agent_hold=HoldView(until, "held for now") if agent in world.held else None
            )
            for agent in agents
        }

    def agents(self) -> Agents:
        """By agent and priority."""
        return self._views

    def order_holds(self) -> Sequence[Hold]:
        """No order is on hold."""
        return ()

    def marks(self) -> Mapping[str, ReadMark]:
        """Of commands, where they wait."""
        return {COMMANDS: ReadMark(self._now - MINUTE, self._now)} if self._behind else {}

    def depth(self, key: str) -> QueueDepth | None:
        """What waits; None where it cannot be read. Where replies cannot be, timeouts count."""
        if key == COMMANDS:
            return QueueDepth(1, 0) if self._behind else None
        if self._replies_wait is None:
            return None
        return QueueDepth(int(self._replies_wait), 0)

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        """Nothing is late, and so no mark is stored."""


class Desk(MemoryStore):
    """The store with one record, seen by one process; counts what has an effect."""

    def __init__(
        self, stored: Task, now: int, fault: Fault = NO_FAULT, read: Task | None = None
    ) -> None:
        super().__init__()
        self.now = now
        self.effects: list[str] = []
        self.outbox = Mailbox(self)
        self.groups = Groups(self)
        self.world = WELL
        self.probes = False
        self.committed = False
        self.ends_anew = False
        self._fault = fault
        self._read: Task | None = None
        self._wrote = False
        self.create(OrderRow(TASK_ID, ORDER, "hash", T0), stored)
        self._read = read

    def clock(self) -> int:
        """A process that has read before decides by the time of that reading."""
        return T0 if self._read is not None and not self._wrote else self.now

    @property
    def in_hand(self) -> Task:
        """The record that the process acts on."""
        return self.tasks()[0] if self._read is None or self._wrote else self._read

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        if self.world.stale and latest:
            self._wrote = True  # it goes on with what is stored
        if self._read is not None and not self._wrote:
            return self._read
        return super().load(task_id, now, latest=latest)

    def inputs(self, task: Task, names: Collection[str]) -> dict[str, Json]:
        """Nothing: the steps of these explorations are added without an input."""
        return dict.fromkeys(names)

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        return iter([DueEntry(TASK_ID, T0)]) if self.world.old_entry else super().due(lane, until)

    def save(
        self,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        if self.committed:
            self._remember(task)
            return Saved()
        saved = self._write(
            "save", lambda: super(Desk, self).save(task, seen=seen, inputs=inputs, search=search)
        )
        if isinstance(saved, Saved):
            self.ends_anew |= any(o.seq > seen and o.name in NAMES_OF_ENDS for o in task.owed)
        self._after(saved)
        return saved

    def _remember(self, task: Task) -> None:
        """The decision was stored already; what it owed is what is still owed under that name."""
        self.committed, self._wrote = False, True
        own = {(owed.kind, owed.name): owed for owed in task.owed}
        stored = self.tasks()[0]
        same = tuple(own.get((owed.kind, owed.name), owed) for owed in stored.owed)
        super().save(replace(stored, owed=same), seen=stored.version)

    def clear_owed(self, task: Task) -> Saved | Superseded:
        cleared = self._write("clear_owed", lambda: super(Desk, self).clear_owed(task))
        self._after(cleared)
        return cleared

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        moved_on = self._write("rearm", lambda: super(Desk, self).rearm(task, due_at))
        self._after(moved_on)
        return moved_on

    def effect(self, name: str) -> None:
        """Something was reported or sent; the process may die of it."""
        self.effects.append(name)
        if len(self.effects) == self._fault.after:
            raise Cut

    def check(self) -> None:
        """Raises TryAgain where the next effect is to fail."""
        if len(self.effects) + 1 == self._fault.fails:
            self._fault = NO_FAULT
            raise TryAgain("throttled")

    def _write(self, name: str, write: Callable[[], Saved | Superseded]) -> Saved | Superseded:
        if self.probes:
            raise Lost if isinstance(write(), Superseded) else Cut
        self._wrote = True
        found = write()
        if isinstance(found, Saved):
            self.effects.append(name)
        return found

    def _after(self, found: Saved | Superseded) -> None:
        if isinstance(found, Saved) and len(self.effects) == self._fault.after:
            raise Cut


class Groups(MemoryGroups):
    """The failure groups as one process finds them: none is open. To open one settles an alert."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self._desk = desk

    def open(self, group: Group) -> Group | None:
        if group.undone:
            return super().open(group)  # nothing is owed for it, and nothing waits for it
        self._desk.check()
        found = super().open(group)
        name = "unexpected_error" if group.how == RETRIED else "task_archived"
        alerts = [owed for owed in self._desk.in_hand.owed if owed.kind == "alert"]
        owed_at = [owed.at for owed in alerts if owed.name != LATE_ANSWER]
        self._desk.outbox.note("alert", name, iso(max(owed_at, default=0)))
        return found


class Mailbox(RecordingOutbox):
    """The outbox of one process. Starts and Inspects are not kept: they may come at any time."""

    def __init__(self, desk: Desk) -> None:
        super().__init__()
        self.requests: list[AgentRequest] = []
        self.reports: list[str] = []
        self.starts = False
        self._desk = desk

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        for _, _, request in requests:
            self._desk.check()
            self.requests.append(request)
            self._desk.effect("request")

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        self.starts = True

    def send_status(self, queue_url: str, body: str) -> bool:
        self._desk.check()
        document = parse_json(body)
        assert isinstance(document, Mapping)
        self.note("status", str(document["status"]), str(document["at"]))
        return True

    def reject_command(self, body: str, problems: Sequence[Problem]) -> None:
        self._desk.check()
        self._desk.effect(REJECTION)

    def publish(self, alert: Alert) -> None:
        """What is owed is that the group is open; what follows is no state of the task."""

    def note(self, kind: str, name: str, at: str) -> None:
        """Whether it is of the present end: what was owed of an earlier one has its own time."""
        owed = [o for o in self._desk.tasks()[0].owed if (o.kind, o.name) == (kind, name)]
        if name in NAMES_OF_ENDS and owed and iso(owed[-1].at) == at:
            self.reports.append(kind)
        self._desk.effect(kind)


def _claims(before: Task, after: Task) -> tuple[tuple[str, str], ...]:
    """The locks of the claims that were made, each with its step."""

    def claim(record: StepRecord) -> tuple[object, ...]:
        """What differs where a lock is given again: to undo, or after an attempt not counted."""
        return record.locked_by, record.process_state, record.granted

    return tuple(
        (name, record.locked_by)
        for name, record in after.steps.items()
        if record.under_way and record.locked_by and claim(record) != claim(before.step(name))
    )


def _reply(job: Mail) -> Reply:
    answer = ANSWERS[job.outcome]
    failed = answer.outcome in NEEDS_ERROR
    return Reply(
        task_id=TASK_ID,
        step=job.step,
        operation=job.operation,
        lock=job.lock,
        idempotency_key=job.key,
        outcome=answer.outcome,
        agent="worker",
        finished_at=T0,
        result=answer.result,
        error=StepError(answer.error, "", answer.unexpected) if failed else None,
        until=job.until if answer.outcome is Outcome.WAITING else None,
        remind_every=REMIND_EVERY if answer.reminds else None,
        again_in=POLL_EVERY if answer.outcome is Outcome.POLLING else None,
        within=POLL_WITHIN if answer.outcome is Outcome.POLLING else None,
        outcome_unknown=answer.outcome_unknown,
        effect=answer.effect,
        callback=answer.callback,
        then=tuple(map(StepToAdd, answer.adds)),
        end=answer.ends,
    )
