"""An agent's guard: what is asked before each call of its service, and in which order.

1. Has somebody put the agent on hold? The scheduler then sends nothing more, but requests were in
   the queue already.
2. Is the circuit open? Asked before the rate, so that no call waits for a turn it cannot take.
3. Is it this call's turn? Where a rate is set.
4. The call, through the breaker, which learns from it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from roundsman.agents.guard import HeldBack
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.guard.breaker import Breaker
from roundsman.aws.guard.circuit_events import CircuitEvents
from roundsman.aws.guard.rate_limit import LONGEST_WAIT, Rate
from roundsman.aws.observability import count, logger, where
from roundsman.aws.settings import AgentSettings
from roundsman.model.holds import OPERATOR, Hold, in_force, why_held
from roundsman.model.instants import SECOND
from roundsman.ports import Clock
from roundsman.wire.alert import Alert

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

T = TypeVar("T")

KEEP_HOLDS_FOR = 5 * SECOND


class OperatorsHold:
    """Whether a person holds the agent, as known at most `keep_for` ms ago.

    Where that cannot be read, what was known last goes on: a hold until its own end.
    """

    def __init__(
        self, agent: str, holds: DynamoHolds, *, clock: Clock, keep_for: int = KEEP_HOLDS_FOR
    ) -> None:
        self._agent = agent
        self._holds = holds
        self._clock = clock
        self._keep_for = keep_for
        self._read_at: int | None = None
        self._known: list[Hold] = []

    def check(self) -> None:
        """Raise HeldBack while somebody holds the agent."""
        now = self._clock()
        if self._read_at is None or now - self._read_at >= self._keep_for:
            self._read_at = now
            self._read()
        for hold in in_force(self._known, now):
            if (hold.agent, hold.kind) == (self._agent, OPERATOR):
                raise HeldBack(f"{self._agent} is {why_held(hold)}", until=hold.until)

    def _read(self) -> None:
        try:
            self._known = self._holds.stored()
        except Exception as error:  # noqa: BLE001  # what guards against an outage must not be one
            count("HoldsFailed")
            logger().warning("the holds could not be read", extra=where(error))


class AgentGuard:
    """Guard of one agent's service, for all its instances together."""

    def __init__(
        self, *, hold: OperatorsHold, breaker: Breaker, rate: Rate | None, news: CircuitEvents
    ) -> None:
        self._hold = hold
        self._breaker = breaker
        self._rate = rate
        self._news = news
        self._has_asked = False

    def call(self, function: Callable[[], T], *, ends_at: int, asks: bool = False) -> T:
        """Call the function, where it may be called, at its turn. Raises HeldBack as Guard says."""
        self._hold.check()
        self._breaker.check()
        if self._rate is not None:
            # Who had to ask first needs two turns. Where calls queue, the second is always further
            # off than others may wait, and each attempt would be over once it has asked.
            longest = 2 * LONGEST_WAIT if self._has_asked else LONGEST_WAIT
            self._rate.wait(ends_at=ends_at, longest=longest)
        self._has_asked = asks
        return self._breaker.call(function, ends_at=ends_at, asks=asks)

    def tell(self) -> None:
        """Publish what the calls so far gave cause to tell, once nothing waits for it."""
        self._news.tell()


def guard_of(
    agent: str,
    client: "DynamoDBClient",
    settings: AgentSettings,
    *,
    publish: Callable[[Alert], None],
    clock: Clock,
    sleep: Callable[[int], None],
) -> AgentGuard:
    """The guard of an agent's function. `client` should fail fast: it is asked before each call."""
    table = settings.control_table
    holds = DynamoHolds(client, control_table=table, clock=clock)
    news = CircuitEvents(
        agent,
        holds=holds,
        publish=publish,
        failures=settings.breaker_failures,
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
    rate = None
    if settings.calls_per_second is not None:
        rate = Rate(
            agent,
            client,
            control_table=table,
            calls_per_second=settings.calls_per_second,
            clock=clock,
            sleep=sleep,
        )
    hold = OperatorsHold(agent, holds, clock=clock)
    return AgentGuard(hold=hold, breaker=breaker, rate=rate, news=news)
