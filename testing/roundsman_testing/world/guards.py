"""The guards of a world's agents: holds, circuit breakers and rate limits, as on AWS.

Each agent has one instance, with one guard over the world's tables. Powertools' circuit breaker
asks the machine for the time and counts in globals of the process; while a world runs, it has the
time of the agent's visit, and the counts of this world.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from aws_lambda_powertools.utilities.circuit_breaker import CircuitState

from roundsman.aws.dynamodb import call_notes
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.guard import breaker, circuit_events, guard, rate_limit, tenant_rate
from roundsman.aws.guard.guard import AgentGuard, guard_of
from roundsman.aws.settings import AgentSettings
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.holds import Hold
from roundsman.model.instants import SECOND, milliseconds
from roundsman.ports import Clock
from roundsman.wire.alert import Alert
from roundsman_testing.faults import Faults
from roundsman_testing.memory import TABLES, MemoryHolds
from roundsman_testing.powertools import CLOCKED, Datetime, counts, replaced, set_counts

T = TypeVar("T")

LOGGED = (breaker, call_notes, circuit_events, guard, rate_limit, tenant_rate)
"""The modules that log and count metrics, which a world does not: its trace says what happened."""

NOT_LIMITED = "RateFailed"
"""The metric of calls that are allowed because the row of the rate limit cannot be written."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """When the circuit of an agent opens, and its rate limit: parameters of its block.

    The defaults are those of the template.
    """

    failures: int = 5
    """Calls in a row that must fail."""
    recovers_after: timedelta = timedelta(seconds=30)
    """The time until one call tries the service again, in whole seconds."""
    calls_per_second: float | None = None
    """The most calls a second; None for no limit."""
    tenant_calls_per_second: float | None = None
    """The most calls a second for each tenant; None for no limit."""

    def __post_init__(self) -> None:
        """Raises ValueError if a value makes no sense."""
        if self.failures < 1:
            raise ValueError(f"failures must be 1 or more, not {self.failures}")
        if self.recovers_after < timedelta(seconds=1) or self.recovers_after.microseconds:
            raise ValueError(
                f"recovers_after must be whole seconds, and one at least, not {self.recovers_after}"
            )
        for name in ("calls_per_second", "tenant_calls_per_second"):
            rate = getattr(self, name)
            if rate is not None and rate <= 0:
                raise ValueError(f"{name} must be more than 0, or None for no limit, not {rate:g}")


class AgentsHolds(DynamoHolds):
    """The holds as an agent's guard has them. What it reads before each call meets faults."""

    def __init__(
        self, inner: MemoryHolds, faults: Faults, clock: Clock, on_unread: Callable[[int], None]
    ) -> None:
        super().__init__(inner.tables.client, control_table=TABLES.control, clock=clock)
        self._tables = inner.tables
        self._faults = faults
        self._on_unread = on_unread

    def stored(self, *, latest: bool = True) -> list[Hold]:
        """All stored holds. The read before a call is not `latest`."""
        stored = super().stored
        if latest:
            return stored()
        try:
            return self._faults.around(
                "read_holds", lambda: stored(latest=False), tables=self._tables
            )
        except (TryAgain, CallRefused):
            self._on_unread(self._clock())
            raise


class WorldGuards:
    """The guard of each agent.

    `publish` is called with the alerts of circuits, `on_unread` with the instant (epoch ms) at
    which an agent could not read the holds, and `on_unlimited` before a call to which a rate limit
    could not be applied.
    """

    def __init__(
        self,
        circuits: Mapping[str, Circuit],
        holds: MemoryHolds,
        faults: Faults,
        publish: Callable[[Alert], None],
        *,
        on_unread: Callable[[int], None],
        on_unlimited: Callable[[], None],
    ) -> None:
        self._on_unread = on_unread
        self._on_unlimited = on_unlimited
        self._circuits = circuits
        self._holds = holds
        self._faults = faults
        self._publish = publish
        self._guards: dict[str, AgentGuard] = {}
        self._visits: list[Visit] = []
        self._counts: Sequence[dict[str, object]] = [{} for _ in counts()]

    def of(self, agent: str, clock: Clock, sleep: Callable[[float], None]) -> "VisitGuard":
        """The guard of an agent during one visit, with the visit's clock."""
        guard = self._guards.get(agent)
        if guard is None:
            guard = self._guards[agent] = self._made(agent)
        return VisitGuard(guard, Visit(clock, sleep), self)

    def open(self, agent: str, until: int) -> None:
        """Open the circuit of an agent until this instant (epoch ms), as failed calls do."""
        circuit = self._circuits.get(agent, Circuit())
        opened_at = until // SECOND - milliseconds(circuit.recovers_after) // SECOND
        self._holds.tables.client.put_item(
            TableName=TABLES.control,
            Item={
                "ControlId": {"S": f"breaker#{agent}"},
                "State": {"S": CircuitState.OPEN.value},
                "FailureCount": {"N": str(circuit.failures)},
                "OpenedAt": {"N": str(opened_at)},
            },
        )

    def close(self, agent: str) -> None:
        """Close the circuit of an agent, as a call that succeeds does."""
        key = {"ControlId": {"S": f"breaker#{agent}"}}
        self._holds.tables.client.delete_item(TableName=TABLES.control, Key=key)
        self.died(agent)

    def died(self, agent: str) -> None:
        """Forget the instance of an agent: the next one counts from zero."""
        self._guards.pop(agent, None)
        for kept in self._counts:
            kept.pop(f"breaker#{agent}", None)

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Let Powertools have the time of visits, and the counts of this world."""
        before = _copies(counts())
        set_counts(_copies(self._counts))
        self._counts = counts()
        try:
            silent = {"logger": SilentLogger, "count": self._note_metric}
            with replaced(CLOCKED, dt=Datetime(self._clock)), replaced(LOGGED, **silent):
                yield
        finally:
            self._counts = _copies(counts())
            set_counts(before)

    @contextmanager
    def at(self, visit: "Visit") -> Iterator[None]:
        """Let the guards have the time of a visit. They are `in_use`."""
        self._visits.append(visit)
        try:
            yield
        finally:
            self._visits.pop()

    def _clock(self) -> int:
        return self._visits[-1].clock()

    def _sleep(self, milliseconds_: int) -> None:
        self._visits[-1].sleep(milliseconds_ / SECOND)

    def _note_metric(self, name: str, *_: object) -> None:
        if name == NOT_LIMITED:
            self._on_unlimited()

    def _made(self, agent: str) -> AgentGuard:
        circuit = self._circuits.get(agent, Circuit())
        settings = AgentSettings(
            control_table=TABLES.control,
            reply_queue_url="",  # a guard sends no message
            rejected_queue_url="",
            alert_topic_arn="",
            breaker_failures=circuit.failures,
            breaker_recovery=milliseconds(circuit.recovers_after),
            calls_per_second=circuit.calls_per_second,
            tenant_calls_per_second=circuit.tenant_calls_per_second,
        )
        return guard_of(
            agent,
            self._holds.tables.client,
            settings,
            publish=self._publish,
            clock=self._clock,
            sleep=self._sleep,
            holds=AgentsHolds(self._holds, self._faults, self._clock, self._on_unread),
        )


def _copies(kept: Sequence[Mapping[str, object]]) -> Sequence[dict[str, object]]:
    return [dict(each) for each in kept]


@dataclass(frozen=True, slots=True)
class Visit:
    """The time of one visit of an agent: its clock (epoch ms), and how it waits (s)."""

    clock: Clock
    sleep: Callable[[float], None]


@dataclass(frozen=True, slots=True)
class VisitGuard:
    """The Guard of one visit."""

    guard: AgentGuard
    visit: Visit
    guards: WorldGuards

    def call(
        self,
        function: Callable[[], T],
        *,
        ends_at: int,
        order: str = "",
        tenant: str | None = None,
        asks: bool = False,
        follows: bool = False,
    ) -> T:
        """Call the function at its turn. Raises CallHeld as `Guard.call` does."""
        with self.guards.at(self.visit):
            return self.guard.call(
                function,
                ends_at=ends_at,
                order=order,
                tenant=tenant,
                asks=asks,
                follows=follows,
            )

    def publish_alerts(self) -> None:
        """Publish the alerts that the calls so far have caused."""
        with self.guards.at(self.visit):
            self.guard.publish_alerts()


class SilentLogger:
    """Replaces the logger of the functions."""

    def warning(self, *_: object, **__: object) -> None:
        """Log nothing."""

    info = warning
