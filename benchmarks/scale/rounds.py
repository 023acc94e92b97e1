"""Simulates the passes of the supervisor, to find how late lost steps are recovered.

The leases, the selection of shards and the look-ahead are the real code, with the in-memory store.
The duration of a request comes from a measured pass. A timer invokes a supervisor each minute. It
runs until it has finished or its timeout is near. The next supervisor shares the work if there are
free shards.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import cast

from benchmarks.scale.arrivals import lot, poisson
from roundsman.engine.agent_holds import RESUME_SPREAD
from roundsman.engine.due import START_WITHIN, shard_of
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.leases import Leases
from roundsman.ports import DueEntry, Outbox
from roundsman.scheduler.lookahead import LookAhead
from roundsman.supervisor.shard_leases import ShardPass
from roundsman.testing.memory import MemoryLeases

MARGIN = 5 * SECOND  # reserved at the end of an invocation
PAGE = 250
AT_ONCE = 10
HELD_AGAIN = 30 * SECOND
"""BreakerRecoverySeconds. A held step is checked again within this time plus RESUME_SPREAD."""
TURN = SECOND  # how long one supervisor runs before the simulation switches to another one


@dataclass(frozen=True, slots=True)
class Settings:
    """The parameters of a supervisor, and the durations of its requests."""

    shards: int
    timeout: int
    """The timeout of an invocation, in ms."""
    own_ms: float
    """The supervisor's own time for a request, in ms."""
    dynamodb_ms: float
    """The wait for a DynamoDB request, in ms."""
    sqs_ms: float
    """The wait for an SQS request, in ms."""
    held_again: int = HELD_AGAIN
    """A held step is checked again within this time in ms plus RESUME_SPREAD."""

    def takes(self, *, dynamodb: int = 0, sqs: int = 0) -> float:
        """Return the time in ms of these numbers of sequential requests."""
        own = (dynamodb + sqs) * self.own_ms
        return own + dynamodb * self.dynamodb_ms + sqs * self.sqs_ms


@dataclass(frozen=True, slots=True)
class Lost:
    """A lost step, which is overdue from `due_at` (ms) and which only a supervisor recovers."""

    task_id: str
    due_at: int


@dataclass(frozen=True, slots=True)
class Held:
    """A task that waits for its service until `gone_at` (ms); its own messages continue it."""

    task_id: str
    due_at: int
    gone_at: int


@dataclass
class Recovered:
    """The results of a simulation; times are in ms."""

    late: dict[int, list[int]] = field(default_factory=dict)
    """How late each lost step was recovered, by the time at which it was due."""
    left: int = 0
    """The number of lost steps that were not recovered."""
    last_at: int = 0
    """When the last lost step was recovered."""
    looked_at: int = 0
    """The number of overdue tasks that were read."""
    ahead: int = 0
    """The number of `Inspect` commands that were sent ahead."""
    passes: int = 0
    most_at_once: int = 0
    """The highest number of concurrent supervisors."""

    def between(self, since: int, until: int) -> list[int]:
        """Return the sorted delays of the lost steps that were due in this time."""
        found = [each for at, lates in self.late.items() if since <= at < until for each in lates]
        return sorted(found)


class _Costed:
    """A LeaseStore whose requests use simulated time."""

    def __init__(self, store: MemoryLeases, stage: "Stage") -> None:
        self._store, self._stage = store, stage

    def read(self) -> Leases:
        self._stage.spend(dynamodb=1)
        return self._store.read()

    def write(self, leases: Leases, *, seen: int) -> bool:
        self._stage.spend(dynamodb=1)
        return self._store.write(leases, seen=seen)


class _Post:
    """The part of an Outbox that a look-ahead uses.

    A request uses simulated time, and a lost step is recovered when its `Inspect` is handled.
    """

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage

    def send_inspects(self, inspects: Iterable[tuple[str, int]]) -> None:
        self._stage.spend(sqs=1)
        for task_id, delay in inspects:
            whole = -(-delay // SECOND) * SECOND  # SQS delays by whole seconds
            self._stage.inspected(task_id, round(self._stage.now + whole))


class Stage:
    """The simulation: the open lanes of the due index, and the supervisors that visit them."""

    def __init__(
        self,
        settings: Settings,
        entries: Iterable[Lost | Held],
        *,
        healthy: float = 0.0,
        lasts: float = 2.0,
        seed: int = 1,
    ) -> None:
        """Create the lanes with these entries.

        In addition, `healthy` orders arrive per second, and each is open for `lasts` seconds.
        """
        self.settings = settings
        self.now = 0.0
        self.found = Recovered()
        self._drawn = lot(seed)
        self._open_ones = healthy * lasts / settings.shards
        self._lasts = round(lasts * SECOND)
        self._leases = MemoryLeases()
        self._numbers = count()
        self._lanes: list[list[tuple[int, int, Lost | Held]]] = [[] for _ in range(settings.shards)]
        self._lost: dict[str, Lost] = {}
        for entry in entries:
            self._put(entry, entry.due_at)
            if isinstance(entry, Lost):
                self._lost[entry.task_id] = entry
        self.found.left = len(self._lost)

    def run(self, minutes: int) -> Recovered:
        """Simulate this number of minutes; a supervisor starts each minute."""
        idle: list[tuple[str, LookAhead]] = []
        going: list[tuple[float, int, Iterator[None], tuple[str, LookAhead]]] = []
        turns = count()
        for tick in range(minutes):
            self._go_on(going, idle, tick * MINUTE, turns)
            self.now = float(tick * MINUTE)
            one = idle.pop() if idle else self._new(f"supervisor-{tick}")
            heapq.heappush(going, (self.now, next(turns), self._pass(*one), one))
            self.found.most_at_once = max(self.found.most_at_once, len(going))
        self._go_on(going, idle, minutes * MINUTE, turns)
        return self.found

    def _go_on(
        self,
        going: list[tuple[float, int, Iterator[None], tuple[str, LookAhead]]],
        idle: list[tuple[str, LookAhead]],
        until: int,
        turns: "count[int]",
    ) -> None:
        """Run the supervisors up to the time `until`, always the one with the earliest time."""
        while going and going[0][0] < until:
            self.now, _, one_pass, one = heapq.heappop(going)
            if next(one_pass, self) is self:
                idle.append(one)
            else:
                heapq.heappush(going, (self.now, next(turns), one_pass, one))

    def spend(self, *, dynamodb: int = 0, sqs: int = 0) -> None:
        """Advance the time of the current supervisor by these requests."""
        self.now += self.settings.takes(dynamodb=dynamodb, sqs=sqs)

    def inspected(self, task_id: str, at: int) -> None:
        """Record the recovery of a lost step by an inspection of its task at `at` (ms)."""
        lost = self._lost.pop(task_id, None)
        if lost is not None:
            self.found.late.setdefault(lost.due_at, []).append(max(0, at - lost.due_at))
            self.found.left -= 1
            self.found.last_at = max(self.found.last_at, at)

    def _clock(self) -> int:
        return round(self.now)

    def _new(self, name: str) -> tuple[str, LookAhead]:
        return name, LookAhead(cast("Outbox", _Post(self)), interval=MINUTE, clock=self._clock)

    def _put(self, entry: Lost | Held, due_at: int) -> None:
        lane = self._lanes[shard_of(entry.task_id, self.settings.shards)]
        heapq.heappush(lane, (due_at, next(self._numbers), entry))

    def _pass(self, name: str, ahead: LookAhead) -> Iterator[None]:
        self.found.passes += 1
        stop_at = self.now + self.settings.timeout - MARGIN
        until = ahead.until(self._clock())
        way = ShardPass(
            _Costed(self._leases, self),
            owner=name,
            clock=self._clock,
            shards=self.settings.shards,
            lot=self._drawn.random(),
        )
        while way.left and self.now < stop_at and (shards := way.next_shards()):
            for shard in shards:
                began_at = self._clock()
                turn_ends = self.now + TURN
                for _ in self._visit(shard, until, stop_at, way, ahead):
                    if self.now >= turn_ends:
                        yield
                        turn_ends = self.now + TURN
                if self.now < stop_at and way.still_held(shard):
                    way.visited(shard, began_at)
        way.close()

    def _visit(
        self, shard: int, until: int, stop_at: float, way: ShardPass, ahead: LookAhead
    ) -> Iterator[None]:
        """Handle the overdue entries one by one, then send those that are due soon in batches."""

        def go_on() -> bool:
            return self.now < stop_at and way.still_held(shard)

        lane, again = self._lanes[shard], list[DueEntry]()
        read = 0
        while lane and lane[0][0] <= self.now:
            if not go_on():
                return
            _, _, entry = heapq.heappop(lane)
            if self._is_gone(entry):
                continue
            if read % PAGE == 0:
                self.spend(dynamodb=1)
            read += 1
            again += self._looked_at(entry)
            yield
        self.spend(dynamodb=1)
        coming = [
            DueEntry(entry.task_id, due_at)
            for due_at, _, entry in sorted(each for each in lane if each[0] <= until)
            if not self._is_gone(entry)
        ]
        coming += self._healthy(shard)
        self.spend(dynamodb=len(coming) // PAGE)
        known = {entry.task_id for entry in coming}
        again = [each for each in again if each.task_id not in known and each.due_at <= until]
        for batch in _in_turns([*coming, *again]):
            if not go_on():
                return
            self.found.ahead += ahead.send(batch, go_on)
            yield

    def _looked_at(self, entry: Lost | Held) -> list[DueEntry]:
        self.found.looked_at += 1
        if isinstance(entry, Lost):
            self.spend(dynamodb=2, sqs=1)  # read the task, write it with its history, send Start
            self.inspected(entry.task_id, self._clock())
            return []
        self.spend(dynamodb=2)  # read the task, and write the time of its next check
        due_at = round(self.now + self._drawn.random() * (self.settings.held_again + RESUME_SPREAD))
        self._put(entry, due_at)
        return [DueEntry(entry.task_id, due_at)]

    def _healthy(self, shard: int) -> list[DueEntry]:
        """Return healthy orders that are open now and end long before they are due."""
        number = poisson(self._open_ones, self._drawn)
        now, first = self._clock(), next(self._numbers)
        due_at = now + START_WITHIN - self._lasts // 2
        return [DueEntry(f"well-{shard}-{first}-{each}", due_at) for each in range(number)]

    def _is_gone(self, entry: Lost | Held) -> bool:
        if isinstance(entry, Lost):
            return entry.task_id not in self._lost
        return entry.gone_at <= self.now


def _in_turns(entries: list[DueEntry]) -> Iterator[list[DueEntry]]:
    """Yield batches of about 1 s of work, so that other supervisors can run in between."""
    for start in range(0, len(entries), 10 * AT_ONCE):
        yield entries[start : start + 10 * AT_ONCE]
