"""Calculates the settings and the resources for a rate of orders, and the rate of each limit.

The number of concurrent instances is the number of messages per second times the seconds for one
message (Little's law). These seconds are the measured processor times plus the assumed waits in the
price table.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from benchmarks.scale.lanes import BIRTH, ENTERED, LEFT, let_through
from benchmarks.scale.quotas import Quotas, load_quotas
from roundsman.model.instants import SECOND
from roundsman.model.queue_lag import MARK_INTERVAL
from roundsman.supervisor.shard_leases import shards_at_once
from roundsman_console.facts.cost.figures import Figures, load_figures
from roundsman_console.facts.cost.model import (
    DEFAULT_MEMORY,
    SUPERVISOR_MEMORY,
    Wanted,
    bill_of,
    message_ms,
)
from roundsman_console.facts.cost.prices import Prices, load_prices

AGENTS = 4
SCHEDULER_QUEUES = 5  # its own queue, and a reply queue for each agent
SERVICE_MS = 100.0  # the duration of a call of a remote service in the example
STEPS = 4
HEADROOM = 2  # multiple of the need, for bursts and to catch up after an outage
LANE_IS_FULL_AT = 0.5  # share of a partition; the rest is for recoveries, holds and bursts
TABLE_UNITS = 7  # write units of TasksTable for an order: 2 for its creation, 5 for decisions
INDEX_UNITS = BIRTH + LEFT + ENTERED
ORDER_UNITS = 2
ROUND_SHARDS = (16, 32, 64, 128)
SHARED_SHARDS = 64  # enough for sixteen supervisors to share; see roundsman.supervisor.shard_leases
TIMEOUT = 90  # seconds; the default of a supervisor, with which at most two overlap
RESERVED = 5  # seconds at the end of a supervisor's invocation, in which it begins nothing
REQUESTS = 3  # of an overdue step: its task is read and written, and a Start is sent
Known: TypeAlias = Literal["simulated", "counted", "promised by AWS"]
"""How a limit is known: also by the simulation (`benchmarks.scale.simulated`); only from counts of
an order's requests or units and a quota; or because a quota of AWS is all there is to it."""


@dataclass(frozen=True, slots=True)
class Profile:
    """The settings of a deployment."""

    rate: float
    """The total number of orders per second."""
    stacks: int = 1
    batch: float = 1
    """Messages per invocation."""
    memory: int = DEFAULT_MEMORY
    """MB."""
    supervisor_memory: int = SUPERVISOR_MEMORY
    """MB."""
    supervisor_timeout: int = TIMEOUT
    """Seconds."""

    @property
    def each(self) -> float:
        """The number of orders per second of one stack."""
        return self.rate / self.stacks


@dataclass(frozen=True, slots=True)
class Functions:
    """The settings of the functions of one role."""

    instances: int
    """At once: of submission, of each of the scheduler's queues, or of each agent."""
    memory: int
    """MB."""
    batch: int
    """The most messages of an invocation. So many come together once all instances are busy."""


AS_IT_COMES = {
    "submission": Functions(10, DEFAULT_MEMORY, 10),
    "scheduler": Functions(10, DEFAULT_MEMORY, 10),
    "agent": Functions(10, DEFAULT_MEMORY, 1),
}
AT_MOST = {
    "submission": Functions(1000, DEFAULT_MEMORY, 10),
    "scheduler": Functions(1000, DEFAULT_MEMORY, 10),
    "agent": Functions(1000, DEFAULT_MEMORY, 5),
}
SHARDS, MOST_SHARDS = 16, 128
"""The default of `DueShards`, and its largest value."""

PROFILES = (
    Profile(1),
    Profile(10),
    Profile(100, batch=5, supervisor_memory=1769, supervisor_timeout=900),
    Profile(300, batch=5, supervisor_memory=1769, supervisor_timeout=900),
    Profile(1_000, batch=5, supervisor_memory=1769, supervisor_timeout=900),
    Profile(3_000, batch=5, supervisor_memory=1769, supervisor_timeout=900),
    Profile(10_000, 4, batch=5, supervisor_memory=1769, supervisor_timeout=900),
)


@dataclass(frozen=True)
class Measured:
    """The measured figures, the prices, and the quotas."""

    figures: Figures
    prices: Prices
    quotas: Quotas

    def seconds(self, role: str, memory: int, batch: float) -> float:
        """Return the duration in s of one message in a function of this role.

        For an agent, it includes the call of the remote service.
        """
        wanted = Wanted(1, batch=batch, memory=memory, service_ms=SERVICE_MS)
        return message_ms(role, wanted, self.figures, self.prices) / SECOND

    def overdue_step_ms(self, memory: int) -> float:
        """Return the ms in which a supervisor recovers an overdue step.

        It decides as a scheduler does, so it takes as much of a processor.
        """
        assumed = self.prices.assumed
        return REQUESTS * self._own_ms(memory) + 2 * assumed.dynamodb_ms + assumed.sqs_ms

    def sending_ms(self, memory: int) -> float:
        """Return the ms in which a supervisor sends ten `Inspect` commands ahead."""
        return self._own_ms(memory) + self.prices.assumed.sqs_ms

    def _own_ms(self, memory: int) -> float:
        """Return a supervisor's own time for one request, in ms."""
        share = min(1.0, memory / self.prices.assumed.processor_mb)
        return self.figures.times.alone["scheduler"] / REQUESTS / share


def load_measured() -> Measured:
    """Return what is recorded and noted now."""
    return Measured(load_figures(), load_prices(), load_quotas())


@dataclass(frozen=True)
class Needs:
    """The resources that one stack needs."""

    instances: Mapping[str, float]
    """Concurrent instances by role, for each of the scheduler's queues and for each agent."""
    shards: int
    """Shards of the due index."""
    table_writes: float
    """Write units of TasksTable per second."""
    index_writes: float
    """Write units of the due index per second."""
    order_writes: float
    """Write units of OrdersTable per second."""
    in_flight: float
    """In-flight messages of one queue."""
    usd: float
    """The cost per month of all stacks together."""

    @property
    def at_once(self) -> float:
        """The number of concurrent instances of all functions."""
        each = self.instances
        return each["submission"] + SCHEDULER_QUEUES * each["scheduler"] + AGENTS * each["agent"]


def needs_of(profile: Profile, measured: Measured) -> Needs:
    """Return the resources that a stack of this profile needs."""
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
        order_writes=ORDER_UNITS * rate,
        in_flight=max(instances.values()) * profile.batch,
        usd=profile.stacks * bill_of(wanted, measured.figures, measured.prices).usd(),
    )


def shards_for(rate: float, quotas: Quotas) -> int:
    """Return the number of shards with which no open lane uses more than half of a partition.

    In 99 of 100 draws, no partition of the warm index is full either by the lanes that share it.
    """
    writes = quotas["partition_writes"]
    partitions = warm(TABLE_UNITS * rate, quotas) // writes

    def bear(shards: int) -> bool:
        lane = (BIRTH + LEFT) * rate / shards
        return lane <= LANE_IS_FULL_AT * writes and rate <= let_through(shards, partitions, writes)

    return next(filter(bear, ROUND_SHARDS), ROUND_SHARDS[-1])


def warm(units: float, quotas: Quotas) -> int:
    """Return the write units a second that a table or index is to take: HEADROOM times the need.

    What a new one takes is the least.
    """
    return max(quotas["new_table_writes"], int(HEADROOM * units))


def setting(need: float, allowed: Sequence[int]) -> int | None:
    """Return the smallest allowed value with headroom for `need`; None if there is none."""
    return next((value for value in allowed if value >= need * HEADROOM), None)


def seconds_to_recover(overdue: int, step_ms: float, timeout: int, shards: int) -> float:
    """Return the seconds until supervisors have recovered this number of overdue steps.

    One begins each minute and works for its `timeout` in s, as long as there are shards for it.
    They work without a break.
    """
    together = shards // shards_at_once(shards)
    left, now, ends = overdue * step_ms / SECOND, 0, list[int]()
    while True:
        ends = [end for end in ends if end > now]
        if now % 60 == 0 and len(ends) < together:
            ends.append(now + timeout - RESERVED)
        if left <= len(ends):
            return now + left / len(ends)
        left, now = left - len(ends), now + 1


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit, as orders per second of one stack."""

    id: str
    """As in the simulated figures."""
    name: str
    as_it_comes: float
    """With the default settings."""
    at_most: float
    """With the largest settings; infinite if AWS raises the quota."""
    turn: str
    """How to raise the limit."""
    known: Known


def limits(measured: Measured) -> list[Limit]:
    """Return all limits, the lowest first."""
    quotas = measured.quotas

    def full(role: str, of: Mapping[str, Functions]) -> float:
        """The rate at which all instances of a role are busy, with full batches."""
        settings = of[role]
        seconds = measured.seconds(role, settings.memory, settings.batch)
        return settings.instances / seconds

    def both(role: str) -> tuple[float, float]:
        return full(role, AS_IT_COMES), full(role, AT_MOST)

    alone, table = quotas["new_table_writes"], quotas["table_writes"]
    one = quotas["partition_writes"]
    most_due = let_through(MOST_SHARDS, table // one, one)
    small, large = (measured.seconds("agent", *each) for each in ((256, 1), (512, 5)))
    all_of = needs_of(Profile(1), measured).at_once
    marked = MARK_INTERVAL / SECOND * quotas["partition_writes"] / AGENTS
    open_for = 2.0  # seconds for which a healthy order is open
    looked_ahead = 60 * SECOND / (open_for * measured.sending_ms(256) / 10)
    found = [
        Limit(
            "agents", "each agent's instances, its service taking 100 ms", *both("agent"),
            "`<Agent>Concurrency`, to 1000; more memory", "simulated",
        ),
        Limit(
            "scheduler", "the scheduler's instances, for each of its queues", *both("scheduler"),
            "`SchedulerConcurrency`, to 1000; more memory", "simulated",
        ),
        Limit(
            "submission", "submission's instances", *both("submission"),
            "`SubmissionConcurrency`, to 1000", "simulated",
        ),
        Limit(
            "account", "Lambda's instances in the account",
            quotas["concurrency"] / all_of, float("inf"),
            "ask AWS: Concurrent executions", "promised by AWS",
        ),
        Limit(
            "tasks", "a new TasksTable", alone / TABLE_UNITS, table / TABLE_UNITS,
            "pre-warm it, or double the traffic each half hour; then ask for the table's quota",
            "simulated",
        ),
        Limit(
            "due", "a new due index, in 99 of 100 draws of its lanes' partitions",
            let_through(SHARDS, alone // one, one), most_due,
            "pre-warm it with its table; then `DueShards`", "simulated",
        ),
        Limit(
            "orders", "a new OrdersTable", alone / ORDER_UNITS, table / ORDER_UNITS,
            "pre-warm it; then ask for the table's quota", "simulated",
        ),
        Limit(
            "lanes", "a due index warm for 40,000 units, in as many draws",
            let_through(SHARDS, table // one, one), most_due,
            "`DueShards`, 16 to 128; may be raised at any time", "simulated",
        ),
        Limit(
            "marks", "the row of the agents' marks, written by each instance every 5 s",
            marked / small, marked / large, "a second stack", "counted",
        ),
        Limit(
            "ahead", "a minute of look-ahead, orders open for 2 s",
            looked_ahead, looked_ahead * 16,
            "`SupervisorMemory`, `SupervisorTimeoutSeconds`, `DueShards`", "counted",
        ),
        Limit(
            "in flight", "a request queue's messages in flight",
            quotas["in_flight"] / small, quotas["in_flight"] / small,
            "ask AWS; a service that takes ten seconds meets it at a hundredth", "promised by AWS",
        ),
    ]  # fmt: skip
    return sorted(found, key=lambda limit: limit.as_it_comes)
