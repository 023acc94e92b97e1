"""Hot partitions: orders that come at a rate, and what becomes of their writes to the due index.

An order is put into its open lane at its birth (in a transaction, which counts twice), and at its
end it is taken from there and put into its done lane. Where the index's partition has no units
left, DynamoDB refuses the write to the table, and nothing is stored of it. The functions' client
tries twice more within seconds; then the message comes again after its visibility timeout, until
it has come MaxReceiveCount times and goes to the dead-letter queue. So nothing is lost, but it is
late, and what is refused comes on top of what is new.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf

from benchmarks.scale.arrivals import lot, poisson
from benchmarks.scale.partitions import Partitions, on_their_own
from roundsman.engine.due import Lane, lane_key, shard_of

TICK = 0.1  # seconds
BIRTH, LEFT, ENTERED = 2, 1, 1  # units of the index: counted, see docs/explanation/cost.md
CLIENT_TRIES = 3
CLIENT_WAITS = (5, 10)  # ticks before the client's second and third try, on average
VISIBILITY = 600  # ticks until a message comes again
DELIVERIES = 5
BEARABLE = 0.001  # of the writes may be refused: the client's own tries make up for them
LASTS = 20  # ticks from birth to end: an order of four quick steps

Write = tuple[int, int, bool, int]
"""The tick it was first asked for, its shard, whether it is a birth, how often it was tried."""


@dataclass
class Hot:
    """What became of the orders and their writes.

    Of `orders` some are `stored`, some `waiting` to be tried again, and `dead` in the dead-letter
    queue; of those that are stored some have `ended`. `delays` are those of the writes that were
    made, in ticks.
    """

    orders: int = 0
    tries: int = 0
    refused: int = 0
    stored: int = 0
    ended: int = 0
    dead: int = 0
    waiting: int = 0
    delays: Counter[int] = field(default_factory=Counter)

    @property
    def refused_share(self) -> float:
        return self.refused / self.tries if self.tries else 0.0

    def delay(self, share: float) -> float:
        """The delay in seconds that this share did not exceed; what still waits has no end."""
        left = share * (sum(self.delays.values()) + self.waiting + self.dead)
        for ticks, count in sorted(self.delays.items()):
            left -= count
            if left <= 0:
                return ticks * TICK
        return inf


def lanes(shards: int) -> list[str]:
    """The keys of the index that healthy orders write."""
    return [lane_key(lane, shard) for lane in (Lane.OPEN, Lane.DONE) for shard in range(shards)]


def simulated(
    rate: float, shards: int, seconds: int, partitions: Partitions, *, seed: int = 1
) -> Hot:
    """Let orders come at `rate` a second for so long, into so many shards."""
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
                _again(found, agenda, write, tick, count - made)
    found.waiting = sum(
        count for writes in agenda.values() for write, count in writes.items() if write[2]
    )
    return found


def _made(write: Write, count: int, partitions: Partitions) -> int:
    """How many of these writes find the units they need in each lane they touch."""
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


def _again(
    found: Hot, agenda: dict[int, Counter[Write]], write: Write, tick: int, count: int
) -> None:
    """Tried again by the client, then by redelivery; at last it is a dead letter."""
    first, shard, birth, tried = write
    tried += 1
    if tried == CLIENT_TRIES * DELIVERIES:
        found.dead += count if birth else 0  # of an end, the supervisor starts the task anew
        return
    wait = VISIBILITY if tried % CLIENT_TRIES == 0 else CLIENT_WAITS[tried % CLIENT_TRIES - 1]
    agenda.setdefault(tick + wait, Counter())[first, shard, birth, tried] += count


def largest_rate(shards: int, limit: float, rates: Iterable[float], *, seconds: int = 45) -> float:
    """The last of these rising rates at which at most one write in a thousand is refused, each key
    on a partition of its own.
    """
    best = 0.0
    for rate in rates:
        partitions = Partitions(on_their_own(lanes(shards)), limit)
        if simulated(rate, shards, seconds, partitions).refused_share > BEARABLE:
            break
        best = rate
    return best
