"""Simulates a stack under a rate of orders: its instances, its tables' partitions, throttling.

The plan (`benchmarks.scale.plan`) divides averages. This follows each message of each order:

- Orders come at random (a Poisson process). An order has the messages of `hops`, each in a queue.
- A free instance takes the messages that wait, at most its batch, and handles them in turn.
- A write takes units of its partitions, all or none. A partition gets as many each second as the
  quota says, and keeps those of one second at most.
- A write that finds too few is throttled. botocore tries a decision's write TRIES times, and a
  submission's once: to botocore a transaction that was cancelled is no throttling. Then the message
  is hidden as long as SQS and the functions hide it (`roundsman.model.redelivery`).

An id is random, and so are its shard and its row's partition. The seed also decides which lanes of
the due index share a partition (`benchmarks.scale.lanes`).
"""

import heapq
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from random import Random
from statistics import quantiles

from benchmarks.scale.lanes import BIRTH, ENTERED, LEFT, places
from benchmarks.scale.plan import ORDER_UNITS, STEPS, TABLE_UNITS
from benchmarks.speed.latency import PICK_UP
from roundsman.aws.clients import TRIES, longest_pause
from roundsman.model.instants import SECOND
from roundsman.model.redelivery import hidden_for

DECISIONS = STEPS + 1
CREATION_UNITS = TABLE_UNITS - DECISIONS
"""Write units of TasksTable of a submission; each decision takes one."""
TRIES_OF = {"submission": 1, "scheduler": TRIES}
"""How often botocore tries a write that is throttled: a submission is a transaction."""
VISIBILITY = 60 * SECOND
"""ms: the default of the queues of submission and of the scheduler."""
AT_FIRST = 0.1
"""The share of a second's units that a partition has at first, so that a short run shows what too
high a rate does to a partition that has nothing left."""
MOST_ORDERS = 250_000
"""A run has at most so many, which takes some 40 s and 200 MB."""
ORDERS, TASKS, DUE = "OrdersTable", "TasksTable", "the due index"


@dataclass(frozen=True, slots=True)
class Stack:
    """What bounds a stack."""

    instances: Mapping[str, int]
    """The concurrency by role: of submission, of each of the scheduler's queues, of each agent."""
    message_ms: Mapping[str, Sequence[float]]
    """The ms of one message by role: of one that comes alone, of each of two that come together,
    and so on. It has as many as an invocation takes at most."""
    shards: int
    partitions: Mapping[str, int]
    """The number of partitions of ORDERS, TASKS and DUE."""
    partition_writes: int
    """Write units of one partition a second."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run showed from the warm-up until the last order came."""

    came: int
    completed: int
    """Orders that ended in this time, whenever they came."""
    left: int
    """Orders that had not ended when the run did."""
    seconds: float
    median_ms: float
    """From arrival to end; of the orders that came in this time, however late they ended."""
    p99_ms: float
    longest_ms: float
    throttled: float
    """The share of all tries to write that were throttled."""
    fullest: str
    """The queue's instances or the partition that was used most."""
    used: float
    """The share of it that was used."""

    @property
    def carried(self) -> bool:
        """Whether orders end as fast as they come, and hardly any is throttled.

        An order has six writes, so one order in a thousand has to wait for units at most.
        """
        return self.completed > 0.99 * self.came and self.throttled < 0.001 / 6


@dataclass(slots=True)
class Partition:
    """The write units of a partition."""

    name: str
    rate: float
    """Units a second."""
    left: float
    at: float = 0.0
    taken: float = 0.0

    def has(self, units: float, now: float) -> bool:
        """Whether there are as many units at `now` (ms)."""
        self.left = min(self.rate, self.left + (now - self.at) / SECOND * self.rate)
        self.at = now
        return self.left >= units

    def take(self, units: float) -> None:
        """Take units that it has."""
        self.left -= units
        self.taken += units


@dataclass(slots=True, eq=False)
class Order:
    """An order on its way."""

    came: float
    place: float
    """Where its rows are, from 0 to 1."""
    shard: int
    hop: int = 0
    """The number of its messages that were handled."""
    receives: int = 0
    """How often the present one was received."""


@dataclass(slots=True)
class Pool:
    """The messages of one queue that wait, and the instances that take them."""

    name: str
    role: str
    free: int
    instances: int
    waiting: deque[Order] = field(default_factory=deque)
    busy_ms: float = 0.0


@dataclass(slots=True)
class Invocation:
    """A batch of messages that an instance handles one after the other."""

    pool: Pool
    batch: Sequence[Order]
    began: float
    place: int = 0
    """Of the message that is being handled."""
    tries: int = 0
    """How often its write was tried."""
    throttled: list[Order] = field(default_factory=list)


class Simulation:
    """One run of a stack. The same seed gives the same run."""

    def __init__(self, stack: Stack, seed: int = 0) -> None:
        """Begin with idle instances and empty queues."""
        self._stack, self._random = stack, Random(seed)  # noqa: S311  # no secret
        self._now, self._turn = 0.0, count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._pools = [
            Pool(name, role, stack.instances[role], stack.instances[role]) for name, role in hops()
        ]
        self._tables = {name: self._partitions(name) for name in stack.partitions}
        self._open, self._done = (
            [self._tables[DUE][place] for place in drawn]
            for drawn in places(stack.shards, stack.partitions[DUE], seed)
        )
        self._tries = self._refused = 0
        self._came: list[float] = []
        self._ends: list[tuple[float, float]] = []

    def run(self, rate: float, seconds: float, warm_up: float = 0.0, then: float = 0.0) -> Outcome:
        """Simulate `rate` orders a second for `seconds`, and `then` seconds in which none comes.

        The first `warm_up` seconds do not count. Raises ValueError for more than MOST_ORDERS, and
        if hardly any order ended.
        """
        if rate * seconds > MOST_ORDERS:
            raise ValueError(f"{rate} orders a second for {seconds} s are more than {MOST_ORDERS}")
        begin, end = warm_up * SECOND, seconds * SECOND
        self._come(rate, end)
        self._go_on_until(end)
        completed = sum(done >= begin for _, done in self._ends)
        name, used = max(self._used(end), key=lambda one: one[1])
        throttled = self._refused / self._tries
        self._go_on_until(end + then * SECOND)
        took = [done - came for came, done in self._ends if came >= begin]
        if len(took) < 2:
            raise ValueError(f"{len(took)} orders were completed; simulate for longer")
        hundredths = quantiles(took, n=100)
        return Outcome(
            came=sum(came >= begin for came in self._came),
            completed=completed,
            left=len(self._came) - len(self._ends),
            seconds=seconds - warm_up,
            median_ms=hundredths[49],
            p99_ms=hundredths[98],
            longest_ms=max(took),
            throttled=throttled,
            fullest=name,
            used=used,
        )

    def _go_on_until(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self._now, _, happens = heapq.heappop(self._events)
            happens()

    def _used(self, end: float) -> list[tuple[str, float]]:
        full = self._stack.partition_writes * (AT_FIRST + end / SECOND)
        partitions = [each for table in self._tables.values() for each in table]
        return [
            *((pool.name, pool.busy_ms / (pool.instances * end)) for pool in self._pools),
            *((f"a partition of {each.name}", each.taken / full) for each in partitions),
        ]

    def _partitions(self, name: str) -> list[Partition]:
        rate = self._stack.partition_writes
        return [Partition(name, rate, AT_FIRST * rate) for _ in range(self._stack.partitions[name])]

    def _at(self, when: float, happens: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when, next(self._turn), happens))

    def _come(self, rate: float, until: float) -> None:
        draw = self._random

        def one_comes() -> None:
            order = Order(self._now, draw.random(), draw.randrange(self._stack.shards))
            self._came.append(self._now)
            self._send(order, PICK_UP)
            again = self._now + draw.expovariate(rate) * SECOND
            if again < until:
                self._at(again, one_comes)

        self._at(0.0, one_comes)

    def _send(self, order: Order, delay: float) -> None:
        """The message of the order's hop can be received after `delay` ms."""
        pool = self._pools[order.hop]

        def can_be_received() -> None:
            pool.waiting.append(order)
            self._receive(pool)

        self._at(self._now + delay, can_be_received)

    def _receive(self, pool: Pool) -> None:
        """A free instance takes what waits."""
        if not pool.free or not pool.waiting:
            return
        pool.free -= 1
        most = len(self._stack.message_ms[pool.role])
        batch = [pool.waiting.popleft() for _ in range(min(most, len(pool.waiting)))]
        for order in batch:
            order.receives += 1
        self._handle(Invocation(pool, batch, self._now))

    def _handle(self, now_at: Invocation) -> None:
        """Try the write of the present message; its instance is busy until the next try or message.

        A message whose write was throttled for the last time takes as long as one that succeeds.
        """
        order, pool = now_at.batch[now_at.place], now_at.pool
        now_at.tries += 1
        if not self._writes(order):
            if now_at.tries < TRIES_OF[pool.role]:
                pause = self._random.random() * longest_pause(now_at.tries)
                self._at(self._now + pause, lambda: self._handle(now_at))
                return
            now_at.throttled.append(order)
        takes = self._stack.message_ms[pool.role][len(now_at.batch) - 1]
        now_at.place, now_at.tries = now_at.place + 1, 0
        goes_on = self._handle if now_at.place < len(now_at.batch) else self._finish
        self._at(self._now + takes, lambda: goes_on(now_at))

    def _finish(self, done: Invocation) -> None:
        """Send what the batch caused, hide what was throttled, and take what waits."""
        for order in done.batch:
            if order in done.throttled:
                self._hide(order, done.began)
            else:
                self._next_hop(order)
        done.pool.busy_ms += self._now - done.began
        done.pool.free += 1
        self._receive(done.pool)

    def _next_hop(self, order: Order) -> None:
        order.hop, order.receives = order.hop + 1, 0
        if order.hop < len(self._pools):
            self._send(order, PICK_UP)
        else:
            self._ends.append((order.came, self._now))

    def _hide(self, order: Order, received: float) -> None:
        """A throttled message comes again when its queue's time is over, or later."""
        hidden = hidden_for(VISIBILITY, order.receives, self._random.random())
        self._send(order, received + VISIBILITY - self._now if hidden is None else hidden)

    def _writes(self, order: Order) -> bool:
        """Whether the write of the order's message was taken. A message of an agent writes none."""
        wanted = self._units(order)
        if not wanted:
            return True
        self._tries += 1
        if not all(partition.has(units, self._now) for partition, units in wanted):
            self._refused += 1
            return False
        for partition, units in wanted:
            partition.take(units)
        return True

    def _units(self, order: Order) -> Sequence[tuple[Partition, float]]:
        task = self._row(TASKS, order)
        if order.hop == 0:
            born = self._open[order.shard]
            return ((self._row(ORDERS, order), ORDER_UNITS), (task, CREATION_UNITS), (born, BIRTH))
        if self._pools[order.hop].role != "scheduler":
            return ()
        if order.hop < len(self._pools) - 1:
            return ((task, 1),)
        left, entered = self._open[order.shard], self._done[order.shard]
        if left is entered:
            return ((task, 1), (left, LEFT + ENTERED))
        return ((task, 1), (left, LEFT), (entered, ENTERED))

    def _row(self, table: str, order: Order) -> Partition:
        partitions = self._tables[table]
        return partitions[int(order.place * len(partitions))]


def hops() -> list[tuple[str, str]]:
    """The messages of an order in turn: the instances that handle it, and their role."""
    found = [("submission's instances", "submission"), ("the scheduler's instances", "scheduler")]
    for number in range(1, STEPS + 1):
        found.append((f"the instances of agent {number}", "agent"))
        found.append((f"the scheduler's instances for agent {number}", "scheduler"))
    return found


def most_carried(stack: Stack, low: float, high: float, seconds: float, seed: int = 0) -> float:
    """The highest rate (orders a second) that the stack carries, to 2%, between two rates.

    Each run takes `seconds` s. Raises ValueError if it does not carry `low`.
    """

    def carries(rate: float) -> bool:
        return Simulation(stack, seed).run(rate, seconds, seconds / 2).carried

    if not carries(low):
        raise ValueError(f"the stack does not carry {low:g} orders a second")
    while high / low > 1.02:
        middle = (low * high) ** 0.5
        low, high = (middle, high) if carries(middle) else (low, middle)
    return low
