"""What to set for a rate of orders, what it takes, and where each limit lies. Pure arithmetic.

Instances at once are messages a second times the seconds that one takes (Little's law), by the
processor times that were measured and the assumed waits of the price table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.scale.hot import BIRTH, ENTERED, LEFT
from benchmarks.scale.quotas import Quotas
from roundsman.model.instants import SECOND
from roundsman.model.queue_lag import MARK_INTERVAL
from roundsman_console.cost.figures import Figures
from roundsman_console.cost.model import Wanted, bill_of, message_ms
from roundsman_console.cost.prices import Prices

AGENTS = 4
SCHEDULER_QUEUES = 5  # its own, and a reply queue for each agent
SERVICE_MS = 100.0  # what a remote service takes, of the example
STEPS = 4
HEADROOM = 2  # times what is needed: for bursts, and to catch up after an outage
LANE_IS_FULL_AT = 0.5  # of a partition: recoveries, holds and bursts take the rest
TABLE_UNITS = 7  # of TasksTable itself for an order: its birth twice, and five decisions
INDEX_UNITS = BIRTH + LEFT + ENTERED
ORDER_UNITS = 2
ROUND_SHARDS = (16, 32, 64, 128)
SHARED_SHARDS = (
    64  # so many that sixteen supervisors can share them: see roundsman.supervisor.shard_pass
)
TIMEOUT = 90  # seconds: a supervisor's as it comes, no more than one and a half at once


@dataclass(frozen=True, slots=True)
class Profile:
    """How a deployment for `rate` orders a second in all is cut: stacks, and memory in MB."""

    rate: float
    stacks: int = 1
    batch: float = 1
    memory: int = 256
    supervisor_memory: int = 256
    supervisor_timeout: int = TIMEOUT

    @property
    def each(self) -> float:
        """Orders a second of one stack."""
        return self.rate / self.stacks


PROFILES = (
    Profile(1),
    Profile(10),
    Profile(100, batch=5, supervisor_memory=1769, supervisor_timeout=900),
    Profile(300, batch=5, memory=512, supervisor_memory=1769, supervisor_timeout=900),
    Profile(1_000, batch=5, memory=512, supervisor_memory=1769, supervisor_timeout=900),
    Profile(3_000, batch=5, memory=512, supervisor_memory=1769, supervisor_timeout=900),
    Profile(10_000, 4, batch=5, memory=512, supervisor_memory=1769, supervisor_timeout=900),
)


@dataclass(frozen=True)
class Measured:
    """What was measured and what is assumed: figures, prices, quotas."""

    figures: Figures
    prices: Prices
    quotas: Quotas

    def seconds(self, role: str, memory: int, batch: float) -> float:
        """What one message takes in a function of that role; an agent's with its service."""
        wanted = Wanted(1, batch=batch, memory=memory, service_ms=SERVICE_MS)
        return message_ms(role, wanted, self.figures, self.prices) / SECOND


@dataclass(frozen=True)
class Needs:
    """Of one stack: instances at once by role (each of the scheduler's queues, each agent), shards
    of the due index, write units a second, messages in flight of one queue.
    """

    instances: Mapping[str, float]
    shards: int
    table_writes: float
    index_writes: float
    in_flight: float
    usd: float

    @property
    def at_once(self) -> float:
        """Instances of all functions together."""
        each = self.instances
        return each["submission"] + SCHEDULER_QUEUES * each["scheduler"] + AGENTS * each["agent"]


def needs_of(profile: Profile, measured: Measured) -> Needs:
    """What a stack of this profile needs; `usd` is a month of all its stacks together."""
    rate = profile.each
    instances = {
        role: rate * measured.seconds(role, profile.memory, profile.batch)
        for role in ("submission", "scheduler", "agent")
    }
    wanted = Wanted(
        rate * measured.prices.assumed.month_seconds,
        steps=STEPS,
        batch=profile.batch,
        memory=profile.memory,
        service_ms=SERVICE_MS,
    )
    return Needs(
        instances=instances,
        shards=max(
            shards_for(rate, measured.quotas),
            SHARED_SHARDS if profile.supervisor_timeout > TIMEOUT else 0,
        ),
        table_writes=TABLE_UNITS * rate,
        index_writes=INDEX_UNITS * rate,
        in_flight=max(instances.values()) * profile.batch,
        usd=profile.stacks * bill_of(wanted, measured.figures, measured.prices).usd(),
    )


def shards_for(rate: float, quotas: Quotas) -> int:
    """So many that no open lane takes more than half of what a partition can."""
    bearable = LANE_IS_FULL_AT * quotas["partition_writes"] / (BIRTH + LEFT)
    return next((each for each in ROUND_SHARDS if rate / each <= bearable), ROUND_SHARDS[-1])


def setting(need: float, allowed: Sequence[int]) -> int | None:
    """The value of the template's list that leaves headroom; None where the list ends before."""
    return next((value for value in allowed if value >= need * HEADROOM), None)


@dataclass(frozen=True, slots=True)
class Limit:
    """Orders a second of one stack at which a limit is met: as it comes, and at its most."""

    name: str
    as_it_comes: float
    at_most: float
    turn: str


def limits(measured: Measured, concurrency: int, largest: int, send_ms: float) -> list[Limit]:
    """All of them, the nearest first. `send_ms` is what ten Inspects ahead take a supervisor."""
    quotas, seconds = measured.quotas, measured.seconds
    small = {role: seconds(role, 256, 1) for role in ("submission", "scheduler", "agent")}
    large = {role: seconds(role, 512, 5) for role in small}
    alone, table = quotas["new_table_writes"], quotas["table_writes"]
    lane = quotas["partition_writes"] / (BIRTH + LEFT)
    all_of = [
        each["submission"] + SCHEDULER_QUEUES * each["scheduler"] + AGENTS * each["agent"]
        for each in (small, large)
    ]
    marked = MARK_INTERVAL / SECOND * quotas["partition_writes"] / AGENTS
    open_for = 2.0  # seconds that a healthy order is open
    looked_ahead = 60 * SECOND / (open_for * send_ms / 10)
    found = [
        Limit(
            "each agent's instances, its service taking 100 ms",
            concurrency / small["agent"], largest / large["agent"],
            "`<Agent>Concurrency`, to 1000; more memory",
        ),
        Limit(
            "the scheduler's instances, for each of its queues",
            concurrency / small["scheduler"], largest / large["scheduler"],
            "`SchedulerConcurrency`, to 1000; more memory",
        ),
        Limit(
            "submission's instances",
            concurrency / small["submission"], largest / large["submission"],
            "`SubmissionConcurrency`, to 1000",
        ),
        Limit(
            "Lambda's instances in the account",
            quotas["concurrency"] / all_of[0], float("inf"),
            "ask AWS: Concurrent executions",
        ),
        Limit(
            "a new TasksTable", alone / TABLE_UNITS, table / TABLE_UNITS,
            "pre-warm it, or double the traffic each half hour; then ask for the table's quota",
        ),
        Limit(
            "a new due index, its keys spread evenly", alone / INDEX_UNITS, table / INDEX_UNITS,
            "pre-warm it with its table; then ask for the table's quota",
        ),
        Limit(
            "a new OrdersTable", alone / ORDER_UNITS, table / ORDER_UNITS,
            "pre-warm it; then ask for the table's quota",
        ),
        Limit(
            "the open lanes of the due index", 16 * lane, 128 * lane,
            "`DueShards`, 16 to 128; may be raised at any time",
        ),
        Limit(
            "the row of the agents' marks, written by each instance every 5 s",
            marked / small["agent"], marked / large["agent"],
            "a second stack",
        ),
        Limit(
            "a minute of look-ahead, orders open for 2 s",
            looked_ahead, looked_ahead * 16,
            "`SupervisorMemory`, `SupervisorTimeoutSeconds`, `DueShards`",
        ),
        Limit(
            "a request queue's messages in flight",
            quotas["in_flight"] / small["agent"], quotas["in_flight"] / small["agent"],
            "ask AWS; a service that takes ten seconds meets it at a hundredth",
        ),
    ]  # fmt: skip
    return sorted(found, key=lambda limit: limit.as_it_comes)
