"""Simulates hot partitions: orders arrive at a rate and write to the due index.

A new order is put into its open lane, in a transaction, which uses twice the units. At its end, it
is removed from the open lane and put into its done lane. If the index's partition has no units
left, DynamoDB throttles the write to the table and stores nothing. The functions' client retries
twice within seconds. Then the message is redelivered after its visibility timeout, for three hours,
which no simulation lasts. So no order is lost, but orders are late, and the retries add to the load
of new orders.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from benchmarks.scale.arrivals import lot, poisson
from benchmarks.scale.partitions import Partitions, on_their_own
from roundsman.engine.due import Lane, lane_key, shard_of

TICK = 0.1  # seconds
BIRTH, LEFT, ENTERED = 2, 1, 1  # units of the index, as counted; see docs/explanation/cost.md
CLIENT_TRIES = 3
CLIENT_WAITS = (5, 10)  # ticks before the client's second and third try, on average
VISIBILITY = 600  # ticks until a message is redelivered
BEARABLE = 0.001  # the share of writes that may be throttled; the client's retries handle it
LASTS = 20  # ticks from the creation to the end of an order with four quick steps

Write = tuple[int, int, bool, int]
"""The tick of the first try, the shard, whether it creates the order, and the number of tries."""


@dataclass
class Hot:
    """The results of a simulation; each order is `stored` or `waiting`."""

    orders: int = 0
    tries: int = 0
    """The number of tried writes."""
    refused: int = 0
    """The number of throttled tries."""
    stored: int = 0
    ended: int = 0
    """The number of stored orders whose end was written too."""
    waiting: int = 0
    """The number of new orders that wait for a retry."""
    delays: Counter[int] = field(default_factory=Counter)
    """The number of successful writes, by their delay in ticks."""

    @property
    def refused_share(self) -> float:
        return self.refused / self.tries if self.tries else 0.0

    def delay(self, share: float) -> float:
        """Return the delay in s that this share of writes did not exceed.

        Writes that still wait have an infinite delay.
        """
        left = share * (sum(self.delays.values()) + self.waiting)
        for ticks, count in sorted(self.delays.items()):
            left -= count
            if left <= 0:
                return ticks * TICK
        return inf


def lanes(shards: int) -> list[str]:
    """Return the keys of the index that healthy orders write."""
    return [lane_key(lane, shard) for lane in (Lane.OPEN, Lane.DONE) for shard in range(shards)]


def simulated(
    rate: float, shards: int, seconds: int, partitions: Partitions, *, seed: int = 1
) -> Hot:
    """Simulate `rate` orders per second for `seconds` with this number of shards."""
    drawn = lot(seed)
    agenda: dict[int, Counter[Write]] = {}
    found = Hot()
    for tick in range(round(seconds / TICK)):
        partitions.tick(TICK)
        asked = agenda.pop(tick, Counter[Write]())
        for _ in range(poisson(rate * TICK, drawn)):
            asked[tick, shard_of(f"ord-{found.orders:07d}", shards), True, 0] += 1
            found.orders += 1
        groups = list(asked.items())
        drawn.shuffle(groups)
        for write, count in groups:
            made = _made(write, count, partitions)
            _note(found, write, tick, made, count)
            if made and write[2]:
                later = agenda.setdefault(tick + LASTS, Counter())
                later[tick + LASTS, write[1], False, 0] += made
            if count > made:
                _again(agenda, write, tick, count - made)
    found.waiting = sum(
        count for writes in agenda.values() for write, count in writes.items() if write[2]
    )
    return found


def _made(write: Write, count: int, partitions: Partitions) -> int:
    """Return how many of these writes succeed: each lane that they write has enough units."""
    _, shard, birth, _ = write
    into = partitions.of(lane_key(Lane.OPEN, shard))
    done = partitions.of(lane_key(Lane.DONE, shard))
    made = 0
    while made < count:
        if birth:
            if not into.take(BIRTH):
                break
        elif into is done:
            if not into.take(LEFT + ENTERED):
                break
        elif not (into.has(LEFT) and done.has(ENTERED)):
            break
        else:
            into.take(LEFT)
            done.take(ENTERED)
        made += 1
    return made


def _note(found: Hot, write: Write, tick: int, made: int, count: int) -> None:
    found.tries += count
    found.refused += count - made
    found.delays[tick - write[0]] += made
    if write[2]:
        found.stored += made
    else:
        found.ended += made


def _again(agenda: dict[int, Counter[Write]], write: Write, tick: int, count: int) -> None:
    """Schedule a retry by the client or a redelivery."""
    first, shard, birth, tried = write
    tried += 1
    wait = VISIBILITY if tried % CLIENT_TRIES == 0 else CLIENT_WAITS[tried % CLIENT_TRIES - 1]
    agenda.setdefault(tick + wait, Counter())[first, shard, birth, tried] += count


def largest_rate(shards: int, limit: float, rates: Iterable[float], *, seconds: int = 45) -> float:
    """Return the largest of these rising rates at which at most 0.1% of the writes are throttled.

    Each key is on a separate partition. Returns 0 if the first rate is too high.
    """
    best = 0.0
    for rate in rates:
        partitions = Partitions(on_their_own(lanes(shards)), limit)
        if simulated(rate, shards, seconds, partitions).refused_share > BEARABLE:
            break
        best = rate
    return best
