"""The supervisor's rounds in simulated time: how late what was lost is brought back.

The leases, their rounds and the look-ahead are the real ones, over the store in memory. What a
request takes comes from a measured pass. A timer invokes a supervisor each minute; it runs until
it is through or its timeout is near, and the next one helps it, as far as there are shards to take.
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
from roundsman.supervisor.shard_pass import ShardPass
from roundsman.testing.memory import MemoryLeases

MARGIN = 5 * SECOND  # kept back at the end of an invocation
PAGE = 250
AT_ONCE = 10
HELD_AGAIN = 30 * SECOND  # BreakerRecoverySeconds; a held step looks again up to RAMP later
TURN = SECOND  # how long one of several supervisors goes on before the others are looked at


@dataclass(frozen=True, slots=True)
class Settings:
    """A supervisor's parameters, what its requests take in ms, and when a held step looks again."""

    shards: int
    timeout: int
    own_ms: float
    dynamodb_ms: float
    sqs_ms: float
    held_again: int = HELD_AGAIN

    def takes(self, *, dynamodb: int = 0, sqs: int = 0) -> float:
        """ms that so many requests take, one after the other."""
        own = (dynamodb + sqs) * self.own_ms
        return own + dynamodb * self.dynamodb_ms + sqs * self.sqs_ms


@dataclass(frozen=True, slots=True)
class Lost:
    """A step that is overdue from `due_at` and that nothing but a supervisor brings back."""

    task_id: str
    due_at: int


@dataclass(frozen=True, slots=True)
class Held:
    """A task that waits for its service until `gone_at`; its own messages carry it."""

    task_id: str
    due_at: int
    gone_at: int


@dataclass
class Recovered:
    """How late each lost step was brought back, in ms, by when it was due; and what it took."""

    late: dict[int, list[int]] = field(default_factory=dict)
    left: int = 0
    last_at: int = 0
    looked_at: int = 0
    ahead: int = 0
    passes: int = 0
    most_at_once: int = 0

    def between(self, since: int, until: int) -> list[int]:
        """Of those due in this time, how late each was, in rising order."""
        found = [each for at, lates in self.late.items() if since <= at < until for each in lates]
        return sorted(found)


class _Costed:
    """A LeaseStore whose requests take time."""

    def __init__(self, store: MemoryLeases, stage: "Stage") -> None:
        self._store, self._stage = store, stage

    def read(self) -> Leases:
        self._stage.spend(dynamodb=1)
        return self._store.read()

    def write(self, leases: Leases, *, seen: int) -> bool:
        self._stage.spend(dynamodb=1)
        return self._store.write(leases, seen=seen)


class _Post:
    """As much of an Outbox as a look-ahead uses: a request takes time, and what was lost and is
    looked at when it is due goes on then.
    """

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage

    def send_inspects(self, inspects: Iterable[tuple[str, int]]) -> None:
        self._stage.spend(sqs=1)
        for task_id, delay in inspects:
            self._stage.inspected(task_id, round(self._stage.now + delay))


class Stage:
    """The open lanes of the index, and supervisors that make their rounds through them."""

    def __init__(
        self,
        settings: Settings,
        entries: Iterable[Lost | Held],
        *,
        healthy: float = 0.0,
        lasts: float = 2.0,
        seed: int = 1,
    ) -> None:
        """`healthy` orders a second come besides, each open for `lasts` seconds."""
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
        """A supervisor each minute, as many at once as there come to be."""
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
        """Each in its turn, the one that is furthest behind first."""
        while going and going[0][0] < until:
            self.now, _, one_pass, one = heapq.heappop(going)
            if next(one_pass, self) is self:
                idle.append(one)
            else:
                heapq.heappush(going, (self.now, next(turns), one_pass, one))

    def spend(self, *, dynamodb: int = 0, sqs: int = 0) -> None:
        """Time goes by for the supervisor whose turn it is."""
        self.now += self.settings.takes(dynamodb=dynamodb, sqs=sqs)

    def inspected(self, task_id: str, at: int) -> None:
        """A lost step's task is looked at then, and goes on."""
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
        """What is overdue, one by one; then what will be, in tens."""

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
            self.spend(dynamodb=2, sqs=1)  # read, written with its history, started
            self.inspected(entry.task_id, self._clock())
            return []
        self.spend(dynamodb=2)  # read, and its entry moved to when it looks again
        due_at = round(self.now + self._drawn.random() * (self.settings.held_again + RESUME_SPREAD))
        self._put(entry, due_at)
        return [DueEntry(entry.task_id, due_at)]

    def _healthy(self, shard: int) -> list[DueEntry]:
        """Orders that are open just now and will be over long before they are due."""
        number = poisson(self._open_ones, self._drawn)
        now, first = self._clock(), next(self._numbers)
        due_at = now + START_WITHIN - self._lasts // 2
        return [DueEntry(f"well-{shard}-{first}-{each}", due_at) for each in range(number)]

    def _is_gone(self, entry: Lost | Held) -> bool:
        if isinstance(entry, Lost):
            return entry.task_id not in self._lost
        return entry.gone_at <= self.now


def _in_turns(entries: list[DueEntry]) -> Iterator[list[DueEntry]]:
    """A second's worth at a time, so that others get their turn."""
    for start in range(0, len(entries), 10 * AT_ONCE):
        yield entries[start : start + 10 * AT_ONCE]
