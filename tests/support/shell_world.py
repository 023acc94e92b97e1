"""The shells over stores in memory, with a clock to set and faults at any call.

Each shell is made with its own `Faults`, as each process fails by itself; what they share is the
world's stores and its outbox. Faults are in wrappers around the ports: nothing is patched.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, due, lane_key
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Agents, AgentView, Outcome
from roundsman.model.instants import SECOND
from roundsman.model.json import Json, parse_json
from roundsman.model.priority import Priority
from roundsman.model.task import StepError, Task, idempotency_key
from roundsman.ports import Clock, Outbox
from roundsman.submission.submission import Submission, Submitted, ValidOrder
from roundsman.supervisor.supervisor import Supervisor, SupervisorConfig
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import Reply
from roundsman_testing.faults import (
    Faults,
    FaultyGroups,
    FaultyLeases,
    FaultyOutbox,
    FaultyPlans,
    FaultySchedules,
    FaultyStore,
)
from roundsman_testing.memory import (
    MemoryAgentBoard,
    MemoryGroups,
    MemoryHolds,
    MemoryLeases,
    MemoryOrderLimits,
    MemoryPlans,
    MemorySchedules,
    MemorySearchSecret,
    MemoryStore,
)
from roundsman_testing.recording import RecordingOutbox, SentCommand, SentRequest, SentStatus
from tests.support.machine_world import REPLY_TO, T0
from tests.support.one_by_one import OneByOne

ORDER_ID = "ord-1"
ORDER: Json = {"orderId": ORDER_ID, "total": "39.80"}
SHARDS = 4
AGENTS = ("worker", "other")


class LittleKnownBoard(MemoryAgentBoard):
    """Of no queue is known how far it was read, so that every time-out counts."""

    def agents(self) -> Agents:
        """By agent and priority."""
        unknown = {f"{agent}/{p}": AgentView() for agent in AGENTS for p in Priority}
        return {**unknown, **super().agents()}


@dataclass
class Shells:
    """The stores, the outbox and the clock that all shells of a test share.

    `unwatched` collects every moment at which an open task had no due entry early enough.
    """

    plan: Plan
    options: ProcessingOptions = field(default_factory=lambda: ProcessingOptions(reply_to=REPLY_TO))
    now: int = T0
    jitter: float = 0.5
    order_retention: int | None = None
    store: MemoryStore = field(default_factory=MemoryStore)
    plans: MemoryPlans = field(default_factory=MemoryPlans)
    leases: MemoryLeases = field(default_factory=MemoryLeases)
    groups: MemoryGroups = field(default_factory=MemoryGroups)
    outbox: RecordingOutbox = field(default_factory=RecordingOutbox)
    troubles: list[str] = field(default_factory=list)
    unwatched: list[str] = field(default_factory=list)
    holds: MemoryHolds = field(init=False)
    board: MemoryAgentBoard = field(init=False)
    _written: dict[str, Task] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.store.on_write = lambda task: self._written.update({task.task_id: task})
        self.holds = MemoryHolds(self.clock)
        self.board = LittleKnownBoard(self.clock, self.holds)

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
            search_secret=MemorySearchSecret(tables=self.store.tables),
            schedules=lambda: FaultySchedules(MemorySchedules(tables=self.store.tables), faults),
            order_retention=self.order_retention,
        )

    def scheduler(
        self, faults: Faults | None = None, *, to: Outbox | None = None, instance: str = "s1"
    ) -> OneByOne:
        faults = faults or Faults()
        store = FaultyStore(self.store, faults, self.look)
        return OneByOne(
            tasks=store,
            orders=store,
            plans=FaultyPlans(self.plans, faults),
            board=self.board,
            groups=FaultyGroups(self.groups, faults),
            outbox=FaultyOutbox(to or self.outbox, faults),
            clock=self.clock,
            jitter=lambda: self.jitter,
            instance=instance,
            search_secret=MemorySearchSecret(tables=self.store.tables),
            limits=lambda: MemoryOrderLimits(tables=self.store.tables),
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
            groups=FaultyGroups(self.groups, faults),
            outbox=FaultyOutbox(to or self.outbox, faults),
            clock=clock or self.clock,
            jitter=jitter or (lambda: self.jitter),
            config=SupervisorConfig(
                FaultyLeases(self.leases, faults), instance, SHARDS, interval * SECOND
            ),
            limits=lambda: MemoryOrderLimits(tables=self.store.tables),
            on_trouble=lambda task_id, problem: self.troubles.append(task_id),
        )

    def new_order(
        self,
        order_id: str = ORDER_ID,
        *,
        content_hash: str = "hash",
        options: ProcessingOptions | None = None,
    ) -> ValidOrder:
        return ValidOrder(
            order_id=order_id,
            content={"orderId": order_id, "total": "39.80"},
            content_hash=content_hash,
            plan=self.plan,
            options=options or self.options,
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
        return self.store.stored(task_id) or self.store.removed[task_id]

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

    def standing_in(self, kind: str) -> list[str]:
        """The tasks in the failure groups whose first alerts were of that kind, by the index."""
        attributes = [sent.attributes for sent in self.outbox.sent if isinstance(sent, Alert)]
        groups = {found["group"] for found in attributes if found["kind"] == kind}
        found = [
            member.task_id
            for group in groups
            for shard in range(SHARDS)
            for member in self.store.members(group, shard)
        ]
        return sorted(found)

    def look(self) -> None:
        """Note each open task that was written with a due entry too late for what it asks for.

        What a record asks for comes no earlier while time passes.
        """
        for task in self._written.values():
            in_lane = task.lane == lane_key(Lane.OPEN, task.shard)
            needs_watch = not task.ended or bool(task.owed)
            if needs_watch and not in_lane:
                self.unwatched.append(f"{task.task_id} v{task.version} left its lane")
            if needs_watch and in_lane and task.due_at > due(task, self.now):
                self.unwatched.append(f"{task.task_id} v{task.version} is looked at too late")
        self._written.clear()


def as_object(text: str) -> dict[str, Json]:
    value = parse_json(text)
    assert isinstance(value, dict)
    return value
