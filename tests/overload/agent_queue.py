"""Simulates overload: an agent's queue has a backlog that exceeds the time limit of its steps.

Orders of one step arrive all at once, or steadily at twice the capacity of the agent's instances.
The queue and the clock are simulated; the decisions, requests, read marks and the agent are real.
An instance reads one request at a time, writes its read mark, and calls a service that takes the
same time for each call. The scheduler sees read marks that are seconds old. The supervisor runs a
pass every minute, and sends the tasks that become due before its next pass to the scheduler.
"""

import random
from collections import deque
from dataclasses import dataclass, field, replace
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count

from roundsman.agents.agent import Agent, NoReply
from roundsman.agents.request import StepRequest
from roundsman.definition.plan import plan_of
from roundsman.definition.workflow import Compensation, Retry, Step, Undo, Workflow
from roundsman.engine.due import due, without_owed
from roundsman.engine.machine import decide
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.engine.requests import request_for
from roundsman.errors import TransientError
from roundsman.model.events import Agents, Claimant, Event, Inspect, InspectAt, SendRequest, Start
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import ReadMark, ReadMarkWriter, view_of_mark
from roundsman.model.states import TaskState
from roundsman.model.task import PERFORM, Task
from roundsman.wire.messages import AgentRequest, Reply

T0 = 1_800_000_000_000
STEP, AGENT = "a", "worker"
BOARD_IS_OLD = 5 * SECOND  # the maximum age of read marks when the scheduler decides
LOOKS_EVERY, LOOKS_AHEAD = MINUTE, 2 * MINUTE  # the supervisor
ON_ITS_WAY = 200  # ms; the delivery time of a message
SILENT = 20  # ms that an instance spends on a request that it does not attempt
UNDO_TAKES = 200  # ms
BETWEEN = 50  # ms between two reads of an instance
BURST_WITHIN = 2 * SECOND
STEADY = 2  # multiples of the capacity of the instances
FUNCTION_LASTS = 15 * MINUTE
ORDERS_LAST = timedelta(days=4)


@dataclass(frozen=True)
class Cell:
    """The parameters of one simulated queue."""

    within: int
    """The step's time limit (`complete_within`) in s."""
    share: float
    """The duration of a call, as a share of `within`."""
    backlog: float
    """The work ahead of the last order when it arrives, in multiples of `within`."""
    instances: int
    fenced: bool = True
    """`fences_late_performs` of the compensation."""
    steady: bool = False
    """Whether orders arrive at twice the capacity of the instances; otherwise all at once."""
    max_attempts: int = 1
    dying: int = 0
    """The number of first orders that kill their agent once, during the call."""

    @property
    def service_time(self) -> int:
        """The duration of a call, in ms."""
        return round(self.within * SECOND * self.share)

    @property
    def orders(self) -> int:
        ahead = round(self.backlog * self.instances / self.share)
        return ahead * (2 if self.steady else 1)

    @property
    def apart(self) -> float:
        """The time between two orders, in ms."""
        if self.steady:
            return self.service_time / self.instances / STEADY
        return BURST_WITHIN / self.orders


@dataclass(slots=True)
class Found:
    """The results of a cell."""

    orders: int = 0
    completed: int = 0
    counted: int = 0
    """The number of attempts that were counted as failed."""
    requests: int = 0
    """The number of `perform` requests."""
    undos: int = 0
    """The number of `undo` requests."""
    took: float = 0.0
    """The total time, in multiples of the time that the work itself needs."""
    recovered: list[int] = field(default_factory=list)
    """For each order that killed its agent, the time in ms until its next request."""

    @property
    def failed(self) -> int:
        return self.orders - self.completed

    @property
    def requests_an_order(self) -> float:
        return self.requests / self.orders


def simulated(cell: Cell) -> Found:
    """Simulate a cell until each of its orders has ended."""
    return _Queue(cell).run()


@dataclass
class _Hand:
    """An instance of the agent with its own clock."""

    now: int = T0
    """Epoch ms; it advances while the instance works."""
    notebook: ReadMarkWriter = field(default_factory=ReadMarkWriter)

    def clock(self) -> int:
        return self.now


class _Queue:
    def __init__(self, cell: Cell) -> None:
        self._cell = cell
        self._drawn = random.Random(1)  # noqa: S311 - a simulation, not cryptography
        compensation = Compensation(fences_late_performs=cell.fenced)
        self._step = Step(
            name=STEP,
            agent=AGENT,
            complete_within=timedelta(seconds=cell.within),
            retry=Retry(max_attempts=cell.max_attempts),
            compensation=compensation,
        )
        workflow = Workflow(
            name="overload", steps=(self._step,), complete_within=ORDERS_LAST, on_failure=Undo()
        )
        self._plan = plan_of(workflow)
        self._numbers = count()
        self._agenda: list[tuple[int, int, str, object]] = []
        self._tasks: dict[str, Task] = {}
        self._open: set[str] = set()
        self._waiting: deque[tuple[str, AgentRequest]] = deque()
        self._idle: deque[_Hand] = deque(_Hand() for _ in range(cell.instances))
        self._marks: deque[tuple[int, ReadMark]] = deque()
        self._inspected: set[tuple[str, int]] = set()
        self._died: dict[str, int] = {}
        self._lives = {f"ord-{number}" for number in range(cell.dying, cell.orders)}
        self._found = Found(orders=cell.orders)

    def run(self) -> Found:
        cell, found = self._cell, self._found
        for number in range(cell.orders):
            name, born = f"ord-{number}", T0 + round(number * cell.apart)
            self._tasks[name] = new_task(self._plan, name, ProcessingOptions(), born, shards=1)
            self._open.add(name)
            self._at(born, "start", name)
        self._at(T0 + self._drawn.randrange(LOOKS_EVERY), "pass", None)
        now = T0
        while self._open:
            now, _, kind, subject = heappop(self._agenda)
            self._happen(kind, subject, now)
        ends = [task.state for task in self._tasks.values()]
        found.completed = ends.count(TaskState.COMPLETED)
        found.took = (now - T0) / (cell.orders * cell.service_time / cell.instances)
        return found

    def _at(self, instant: int, kind: str, subject: object) -> None:
        heappush(self._agenda, (instant, next(self._numbers), kind, subject))

    def _happen(self, kind: str, subject: object, now: int) -> None:
        match kind, subject:
            case "start", str(name):
                self._apply(name, Start(self._claimant()), now)
            case "inspect", str(name):
                self._apply(name, Inspect(), now)
            case "reply", Reply() as reply:
                self._apply(reply.task_id, reply.event(self._claimant()), now)
            case "read", _Hand() as hand:
                self._read(hand, now)
            case _:
                self._look(now)

    # ---- the scheduler and the supervisor -------------------------------------------------------

    def _claimant(self) -> Claimant:
        return Claimant("s", f"{next(self._numbers):x}")

    def _agents(self, now: int) -> Agents:
        while len(self._marks) > 1 and self._marks[1][0] <= now - BOARD_IS_OLD:
            self._marks.popleft()
        if not self._marks or self._marks[0][0] > now - BOARD_IS_OLD:
            return {}
        return {f"{AGENT}/normal": view_of_mark(self._marks[0][1], now)}

    def _apply(self, name: str, event: Event, now: int) -> None:
        before = self._tasks[name]
        if before.ended:
            return
        agents, jitter = self._agents(now), self._drawn.random()
        decision = decide(self._plan, before, event, now, order={}, agents=agents, jitter=jitter)
        if isinstance(event, Inspect):
            start = Start(self._claimant())
            later = decide(
                self._plan, decision.task, start, now, order={}, agents=agents, jitter=jitter
            )
            decision = decision.then(later)
        task = decision.task
        failures = task.step(STEP).failure_count - before.step(STEP).failure_count
        self._found.counted += max(0, failures)
        if task.owed:
            task = without_owed(task, now)
        if isinstance(event, Inspect) and not task.ended:
            task = replace(task, due_at=due(task, now))
        self._tasks[name] = task
        if task.ended:
            self._open.discard(name)
        for command in dict.fromkeys(decision.actions):
            if isinstance(command, SendRequest) and task.step(STEP).under_way:
                self._send(name, now)
            elif isinstance(command, InspectAt):
                self._at(command.at + SECOND, "inspect", name)

    def _send(self, name: str, now: int) -> None:
        request = request_for(self._plan, self._tasks[name], STEP, {}, now)
        self._found.requests += request.operation == PERFORM
        self._found.undos += request.operation != PERFORM
        if name in self._died:
            self._found.recovered.append(now - self._died.pop(name))
        self._waiting.append((name, request))
        if self._idle:
            hand = self._idle.popleft()
            self._at(now + ON_ITS_WAY, "read", hand)

    def _look(self, now: int) -> None:
        for name in sorted(self._open):
            at = self._tasks[name].due_at
            if at <= now:
                self._apply(name, Inspect(), now)
            elif at <= now + LOOKS_AHEAD and (name, at) not in self._inspected:
                self._inspected.add((name, at))
                self._at(at + SECOND, "inspect", name)
        self._at(now + LOOKS_EVERY, "pass", None)

    # ---- the agent ------------------------------------------------------------------------------

    def _read(self, hand: _Hand, now: int) -> None:
        if not self._waiting:
            self._idle.append(hand)
            return
        name, request = self._waiting.popleft()
        if mark := hand.notebook.read(request.sent_at, now):
            self._marks.append((now, mark))
            hand.notebook.written(mark)
        hand.now = now
        if name not in self._lives:
            self._lives.add(name)  # the next call succeeds
            self._died[name] = now
            self._at(now + self._cell.service_time, "read", hand)
            return
        answer = self._agent(hand).answer(
            request, clock=hand.clock, function_ends_at=now + FUNCTION_LASTS
        )
        if not isinstance(answer, NoReply):
            self._at(hand.now + ON_ITS_WAY, "reply", answer)
        hand.now = max(hand.now, now + SILENT)
        self._at(hand.now + BETWEEN, "read", hand)

    def _agent(self, hand: _Hand) -> Agent:
        """Return a real agent whose calls advance the clock of the instance."""
        agent, takes = Agent(AGENT), self._cell.service_time

        @agent.performs(self._step)
        def perform(asked: StepRequest) -> None:
            left = round(asked.time_left() / timedelta(milliseconds=1))
            hand.now += min(takes, left)
            if left < takes:
                raise TransientError("not answered in time")

        @agent.compensates(self._step)
        def compensate(_: StepRequest) -> None:
            hand.now += UNDO_TAKES

        return agent
