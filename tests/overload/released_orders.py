"""Simulates the end of a hold for which very many orders wait, beside orders of another agent.

The queues and the clock are simulated; the decisions, the waking by the supervisor and that by the
command `release` are real. The scheduler has SERVERS instances, each of which reads one message at
a time: 180 messages a second, as with the defaults of the template. It knows a hold, or its end,
seconds late. A supervisor makes a pass each minute, and visits what waits every ten seconds while
it wakes orders. Calls to services are quick and succeed.
"""

from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count, pairwise
from random import Random
from typing import TypeAlias

from roundsman.definition.plan import Plan, plan_of
from roundsman.definition.workflow import Step, Workflow
from roundsman.engine.due import ParkedFor, parked_for, shard_of, without_owed
from roundsman.engine.machine import decide
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.events import (
    Agents,
    Claimant,
    Decision,
    Event,
    Inspect,
    Outcome,
    Replied,
    SendRequest,
    Start,
    StartTask,
)
from roundsman.model.holds import (
    ENDED,
    EVERY_WORKFLOW,
    OPERATOR,
    Hold,
    agents_of,
    on_orders,
    with_holds,
)
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.priority import Priority
from roundsman.model.situations import EVERY_ORDER
from roundsman.model.states import TaskState
from roundsman.model.task import PERFORM, Task, idempotency_key
from roundsman.model.wakes import KNOWN_AFTER
from roundsman.ports import ParkedEntry
from roundsman.supervisor.parked import ParkedOrders, wake_first
from roundsman.supervisor.supervisor import VisitTimes
from roundsman.supervisor.wakes import WakePorts, Wakes
from roundsman_testing.memory import MemoryHolds, MemoryLeases, MemoryStore, MemoryWakes
from roundsman_testing.recording import RecordingOutbox

T0 = 1_800_000_000_000
"""When the hold is released (epoch ms)."""

PARKED_OVER = 60 * MINUTE
SHARDS = 16
SERVERS, TAKES = 18, 100
"""The scheduler's instances, and the ms that each takes for a message."""
CALL_TAKES = 200
"""The ms from a request to its reply."""
VIEW_IS_OLD = 5 * SECOND
HEALTHY_EVERY = 200
"""The ms from one healthy order to the next, on average. They come at random."""
VISITED_EVERY = 10 * SECOND
PASS_AT = 59 * SECOND
"""The ms after the release at which the first pass comes, nearly as late as it can be."""


def story(agent: str) -> Plan:
    step = Step(name="a", agent=agent, complete_within=timedelta(seconds=60))
    return plan_of(Workflow(name=agent, steps=(step,), complete_within=timedelta(days=3)))


AGENTS = ("held", "healthy")
HELD, HEALTHY = map(story, AGENTS)


def plan_for(name: str) -> Plan:
    return HEALTHY if name.startswith("healthy") else HELD


def priority_of(name: str) -> Priority:
    """Every fiftieth order that waits is urgent."""
    waits = plan_for(name) is HELD
    return Priority.URGENT if waits and int(name[4:]) % 50 == 0 else Priority.NORMAL


@dataclass(frozen=True)
class Release:
    """The parameters of one simulation."""

    parked: int
    everything: bool = False
    """Whether all orders were held, not the agent of those that wait; no healthy order comes."""
    lost: int = 0
    """One Inspect in this many is lost; 0 for none."""
    held_again_after: int | None = None
    """The ms after the release at which a new hold of a day begins; the run ends 2 min later."""


@dataclass
class Found:
    """The results of a simulation. Times are ms after the release."""

    done: dict[str, int] = field(default_factory=dict)
    """When each order that had waited was completed, in the order of their ends."""
    healthy: list[int] = field(default_factory=list)
    """The time in ms that each healthy order took."""
    messages: int = 0
    longest_wait: int = 0
    """The longest time in ms for which a message waited for the scheduler."""

    def figures(self) -> str:
        """The figures in a sentence."""
        times = sorted(self.done.values())
        return (
            f"{len(times)} orders went on after {times[0] / SECOND:.1f} s to "
            f"{times[-1] / MINUTE:.1f} min, at most {self.most_in_ten_seconds / 10:.0f} a second; "
            f"p99 of {len(self.healthy)} healthy orders: {self.p99} ms; the scheduler read "
            f"{self.messages} messages, and none waited longer than {self.longest_wait} ms"
        )

    @property
    def p99(self) -> int:
        return sorted(self.healthy)[len(self.healthy) * 99 // 100] if self.healthy else 0

    @property
    def most_in_ten_seconds(self) -> int:
        return max(Counter(at // (10 * SECOND) for at in self.done.values()).values())

    def overtook(self, orders: Sequence[str]) -> int:
        """By how many ms at most an order was done before one that stands before it in `orders`."""
        times = [self.done[order] for order in orders if order in self.done]
        return max(0, *(earlier - later for earlier, later in pairwise(times)))


def simulated(release: Release) -> Found:
    """Simulate until all has ended that waited, or until two minutes after a new hold."""
    return _Stack(release).run()


class _Parked(MemoryStore):
    """The index of what is parked; of a store of tasks, waking an agent's orders needs no more."""

    def __init__(self, entries: Iterable[tuple[ParkedEntry, Priority]], target: str) -> None:
        super().__init__()
        self._target = target
        self._lanes: dict[tuple[str, int], list[ParkedEntry]] = {}
        for entry, priority in entries:
            self._lanes.setdefault((priority, entry.shard), []).append(entry)
        self._gone = set[str]()

    def remove(self, task_id: str) -> None:
        self._gone.add(task_id)

    def parked(
        self, target: str, priority: str, shard: int, *, after: int
    ) -> Iterator[ParkedEntry]:
        lane = self._lanes.get((priority, shard), ()) if target == self._target else ()
        begin = bisect_right(lane, after, key=lambda entry: entry.since)
        return (lane[at] for at in range(begin, len(lane)) if lane[at].task_id not in self._gone)


class _Post(RecordingOutbox):
    """Sends Inspects to the scheduler of the simulation, but for those that are lost."""

    def __init__(self, stack: "_Stack", lost: int) -> None:
        super().__init__()
        self._stack, self._lost, self._sent = stack, lost, 0

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        for task_id, delay in inspects:
            self._sent += 1
            if not self._lost or self._sent % self._lost:
                self._stack.at(self._stack.now + delay, _Inspected(task_id))


@dataclass(frozen=True, slots=True)
class _Started:
    task_id: str


@dataclass(frozen=True, slots=True)
class _Inspected:
    task_id: str


@dataclass(frozen=True, slots=True)
class _Answered:
    task_id: str


_Message: TypeAlias = _Started | _Inspected | _Answered


class _Stack:
    def __init__(self, release: Release) -> None:
        self._release, self._found = release, Found()
        self.now = T0
        self._numbers = count()
        self._drawn = Random(1)  # noqa: S311  # a simulation, not cryptography
        self._agenda: list[tuple[int, int, _Message | Callable[[], None]]] = []
        self._waiting: deque[tuple[int, _Message]] = deque()
        self._free = SERVERS
        self._tasks: dict[str, Task] = {}
        self._began: dict[str, int] = {}
        self._target = EVERY_ORDER if release.everything else AGENTS[0]
        self._holds = MemoryHolds(lambda: self.now)
        self._views: list[tuple[int, list[Hold]]] = []
        self._hold(T0 - PARKED_OVER - MINUTE, T0 + 10 * DAY)
        apart = PARKED_OVER / max(1, release.parked)
        for number in range(release.parked):
            self._began[f"ord-{number}"] = T0 - PARKED_OVER + round(number * apart)
        entries = (
            (ParkedEntry(name, at, shard_of(name, SHARDS)), priority_of(name))
            for name, at in self._began.items()
        )
        self._index, self._post = _Parked(entries, self._target), _Post(self, release.lost)
        ports = WakePorts(
            holds=self._holds,
            wakes=MemoryWakes(),
            tasks=self._index,
            leases=MemoryLeases(),
            outbox=self._post,
            clock=lambda: self.now,
        )
        self._wakes = Wakes(ports, shards=SHARDS, look=lambda name, _: self._look(name))
        self._over = False

    def run(self) -> Found:
        again = self._release.held_again_after
        self._release_now()
        if not self._release.everything:
            self.at(T0, self._send_healthy)
        self.at(T0 + PASS_AT, self._visit)
        if again is not None:
            self.at(T0 + again, lambda: self._hold(self.now, self.now + DAY))
            self.at(T0 + again + 2 * MINUTE, self._end)
        elif not self._release.parked:
            self.at(T0 + 3 * MINUTE, self._end)
        while not self._over:
            self.now, _, what = heappop(self._agenda)
            if isinstance(what, _Message):
                self._waiting.append((self.now, what))
                self._read()
            else:
                what()
        return self._found

    def at(self, instant: int, what: _Message | Callable[[], None]) -> None:
        heappush(self._agenda, (instant, next(self._numbers), what))

    def _end(self) -> None:
        self._over = True

    # ---- holds and their end -----------------------------------------------------------------

    def _hold(self, since: int, until: int) -> None:
        agent, workflow = ("", EVERY_WORKFLOW) if self._release.everything else (AGENTS[0], "")
        self._holds.hold(Hold(agent, OPERATOR, since, until, "a", "amy", workflow=workflow))
        self._views.append((since, list(self._holds.stored_now())))

    def _release_now(self) -> None:
        (hold,) = self._holds.stored_now()
        self._holds.change(hold, replace(hold, until=ENDED))
        self._views.append((self.now, list(self._holds.stored_now())))
        parked = ParkedOrders(self._index, lambda: self.now, SHARDS)
        wake_first(parked, self._post, self._target, (), self.now + KNOWN_AFTER)

    def _visit(self) -> None:
        found = self._wakes.visit(
            VisitTimes(self.now + MINUTE, self.now + VISITED_EVERY, last=False)
        )
        assert found.problem is None
        next_pass = self.now + MINUTE - (self.now - T0 - PASS_AT) % MINUTE
        if found.going:
            next_pass = min(next_pass, self.now + VISITED_EVERY)
        elif self._release.parked and self._release.held_again_after is None:
            self._over = len(self._found.done) == self._release.parked
        self.at(next_pass, self._visit)

    def _look(self, name: str) -> None:
        """Look at a task as a supervisor does, and send a Start if it can go on."""
        decision = self._decide(name, Inspect())
        if any(isinstance(action, StartTask) for action in decision.actions):
            self.at(self.now, _Started(name))

    # ---- the scheduler and the agents --------------------------------------------------------

    def _send_healthy(self) -> None:
        name = f"healthy-{next(self._numbers)}"
        self._began[name] = self.now
        self.at(self.now, _Started(name))
        self.at(self.now + round(self._drawn.expovariate(1 / HEALTHY_EVERY)), self._send_healthy)

    def _read(self) -> None:
        if self._free and self._waiting:
            self._free -= 1
            came, message = self._waiting.popleft()
            self._found.messages += 1
            self._found.longest_wait = max(self._found.longest_wait, self.now - came)
            self.at(self.now + TAKES, lambda: self._handled(message))

    def _handled(self, message: _Message) -> None:
        self._handle(message)
        self._free += 1
        self._read()

    def _handle(self, message: _Message) -> None:
        name = message.task_id
        if name in self._found.done:
            return
        match message:
            case _Answered():
                task = self._task(name)
                key = idempotency_key(name, "a", PERFORM, task.step("a"))
                lock = task.step("a").locked_by or ""
                reply = Replied(self._claimant(), "a", PERFORM, lock, key, Outcome.SUCCEEDED)
                self._decide(name, reply)
            case _Inspected():  # a scheduler starts at once what may begin
                self._decide(name, Inspect())
                self._decide(name, Start(self._claimant()))
            case _Started():
                self._decide(name, Start(self._claimant()))

    def _claimant(self) -> Claimant:
        return Claimant("s", f"{next(self._numbers):x}")

    def _task(self, name: str) -> Task:
        """The task; one that was parked before the simulation begins gets its record now."""
        if name not in self._tasks:
            plan, began = plan_for(name), self._began[name]
            options = ProcessingOptions(priority=priority_of(name))
            task = new_task(plan, name, options, began, shards=SHARDS)
            if began < T0:
                agents = self._agents(task, began)
                start = Start(self._claimant())
                task = decide(plan, task, start, began, order={}, agents=agents, jitter=0.5).task
                assert parked_for(task) == ParkedFor(self._target, began)
            self._tasks[name] = without_owed(task, began)
        return self._tasks[name]

    def _agents(self, task: Task, now: int) -> Agents:
        """What a scheduler knows of the agents: the holds of some seconds ago."""
        known = [holds for at, holds in self._views if at <= now - VIEW_IS_OLD][-1]
        views = with_holds({}, known, now)
        return agents_of(AGENTS, task, views, on_orders(known), now)

    def _decide(self, name: str, event: Event) -> Decision:
        before = self._task(name)
        agents, plan = self._agents(before, self.now), plan_for(name)
        decision = decide(plan, before, event, self.now, order={}, agents=agents, jitter=0.5)
        self._tasks[name] = without_owed(decision.task, self.now)
        if any(isinstance(action, SendRequest) for action in decision.actions):
            self.at(self.now + CALL_TAKES, _Answered(name))
        if parked_for(decision.task) is None:
            self._index.remove(name)
        if decision.task.ended:
            assert decision.task.state is TaskState.COMPLETED
            del self._tasks[name]
            self._ended(name)
        return decision

    def _ended(self, name: str) -> None:
        began = self._began[name]
        if began < T0:
            self._found.done[name] = self.now - T0
        else:
            self._found.healthy.append(self.now - began)
