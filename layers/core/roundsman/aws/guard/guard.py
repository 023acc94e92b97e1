"""The guard of an agent's service. For each call it does the following, in this order:

1. It checks whether an operator holds the agent. The scheduler then sends no more requests, but
   there may be some in the queue already.
2. It checks whether the circuit is open. This comes before the rate limit, so that no call waits
   for a turn that it cannot take.
3. It waits for the turn of the order's tenant and then for that of the call, if there are limits.
4. It makes the call through the circuit breaker, which counts the result.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, TypeVar

from roundsman.agents.guard import CallHeld
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.guard.breaker import Breaker
from roundsman.aws.guard.circuit_events import CircuitEvents
from roundsman.aws.guard.rate_limit import LONGEST_WAIT, RateLimit
from roundsman.aws.observability import count, logger, where
from roundsman.aws.settings import AgentSettings
from roundsman.model.holds import OPERATOR, Hold, describe_hold, in_force
from roundsman.model.instants import SECOND
from roundsman.ports import Clock
from roundsman.wire.alert import Alert

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from roundsman.aws.guard.tenant_rate import TenantRates

T = TypeVar("T")

KEEP_HOLDS_FOR = 5 * SECOND


@dataclass(eq=False)
class OperatorsHold:
    """Checks whether an operator holds the agent; the data is at most KEEP_HOLDS_FOR ms old.

    The read is eventually consistent, so the data may be a second older.
    If the holds cannot be read, the last known ones stay in force, each until its own end.
    """

    agent: str
    holds: DynamoHolds
    _: KW_ONLY
    clock: Clock
    _read_at: int | None = field(default=None, init=False)
    _known: list[Hold] = field(default_factory=list, init=False)

    def check(self, order: str) -> None:
        """Raise CallHeld while an operator holds the agent, unless the hold lets the order pass."""
        now = self.clock()
        if self._read_at is None or now - self._read_at >= KEEP_HOLDS_FOR:
            self._read_at = now
            self._read()
        for hold in in_force(self._known, now):
            its_own = (hold.agent, hold.kind) == (self.agent, OPERATOR)
            if its_own and order not in hold.passes:
                raise CallHeld(f"{self.agent} is {describe_hold(hold)}", until=hold.until)

    def _read(self) -> None:
        try:
            self._known = self.holds.stored(latest=False)
        except Exception as error:  # noqa: BLE001  # the guard must not cause an outage
            count("HoldsFailed")
            logger().warning("the holds could not be read", extra=where(error))


@dataclass(kw_only=True, eq=False)
class AgentGuard:
    """The Guard of one agent's service, for all instances together."""

    hold: OperatorsHold
    breaker: Breaker
    rate: RateLimit | None
    news: CircuitEvents
    tenants: "TenantRates | None" = None

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
        self.hold.check(order)
        self.breaker.check()
        # An attempt with a probe needs several turns. In a backlog of calls, the second turn is
        # always later than LONGEST_WAIT, so each attempt would end after its first call.
        longest = 2 * LONGEST_WAIT if follows else LONGEST_WAIT
        if self.tenants is not None and tenant is not None:
            self.tenants.wait(tenant, order, ends_at=ends_at, longest=longest)
        if self.rate is not None:
            self.rate.wait(ends_at=ends_at, longest=longest)
        return self.breaker.call(function, ends_at=ends_at, asks=asks)

    def publish_alerts(self) -> None:
        """Publish the alerts that the calls so far have caused, when no step waits."""
        self.news.publish_alerts()


def guard_of(
    agent: str,
    client: "DynamoDBClient",
    settings: AgentSettings,
    *,
    publish: Callable[[Alert], None],
    clock: Clock,
    sleep: Callable[[int], None],
    holds: DynamoHolds | None = None,
) -> AgentGuard:
    """Create the guard of an agent's function.

    `client` should have short timeouts: it is used before each call to the service. `holds` are
    those in the control table, read by `client`, if none are given.
    """
    table = settings.control_table
    holds = holds or DynamoHolds(client, control_table=table, clock=clock)
    news = CircuitEvents(
        agent,
        holds=holds,
        publish=publish,
        recover_after=settings.breaker_recovery,
        clock=clock,
    )
    breaker = Breaker(
        agent,
        client,
        control_table=table,
        failures=settings.breaker_failures,
        recover_after=settings.breaker_recovery,
        clock=clock,
        news=news,
    )
    rate = tenants = None
    if settings.tenant_calls_per_second is not None:
        from roundsman.aws.guard.tenant_rate import TenantRates  # late: few agents have such a rate

        tenants = TenantRates(
            agent,
            client,
            control_table=table,
            calls_per_second=settings.tenant_calls_per_second,
            clock=clock,
            sleep=sleep,
        )
    if settings.calls_per_second is not None:
        rate = RateLimit(
            agent,
            client,
            control_table=table,
            calls_per_second=settings.calls_per_second,
            clock=clock,
            sleep=sleep,
        )
    hold = OperatorsHold(agent, holds, clock=clock)
    return AgentGuard(hold=hold, breaker=breaker, rate=rate, news=news, tenants=tenants)
