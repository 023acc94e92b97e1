"""What follows when an agent's circuit opens or closes: a hold, an alert, a metric.

The breaker's own row tells the agent's instances; the scheduler looks at holds, and so claims
nothing for an agent whose circuit is open. The hold is written while the call is under way, since
each moment without it costs requests that can only be given back. Alerts are sent after the reply:
they take longer, and the step must not be late for them.
"""

from collections.abc import Callable

from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.guard.breaker import TRIED_FOR, Breaker
from roundsman.aws.observability import count, logger, where
from roundsman.model.holds import BREAKER, Hold
from roundsman.model.instants import SECOND
from roundsman.ports import Clock
from roundsman.wire.alert import Alert, breaker_closed_alert, breaker_opened_alert

RENEWED_EVERY = 5 * SECOND  # by one instance; as often as the scheduler reads the holds
BY = "the circuit breaker"
KEPT = 10  # alerts that could not be published


class CircuitEvents:
    """BreakerNews that keeps the agent's hold and tells the operators. Nothing in it raises.

    Of several instances that open the circuit at once, the first to write the hold alerts.
    """

    def __init__(
        self,
        agent: str,
        *,
        holds: DynamoHolds,
        publish: Callable[[Alert], None],
        failures: int,
        recover_after: int,
        clock: Clock,
    ) -> None:
        self._agent = agent
        self._holds = holds
        self._publish = publish
        self._why = Breaker.why_open(failures)
        self._recover_after = recover_after
        self._clock = clock
        self._renewed_at: int | None = None
        self._alerts: list[Alert] = []

    def opened(self, opened_at: int) -> None:
        """Hold the agent and alert, unless another instance was first."""
        count("BreakersOpened")
        logger().warning("circuit opened", extra={"agent": self._agent, "reason": self._why})
        # Not `opened_at`: in whole seconds, it would make several instances' holds look as one.
        since, until = self._clock(), opened_at + self._recover_after
        try:
            first = self._holds.hold(self._hold(since, until, self._why))
        except Exception as error:  # noqa: BLE001  # the agents themselves hold back without it
            self._log_failure(error)
            first = True  # not known; better told twice than never
        if first:
            self._alerts.append(
                breaker_opened_alert(self._agent, self._why, opened_at=since, until=until)
            )

    def tried(self) -> None:
        """Keep the others away for as long as it may take."""
        self._renew(self._clock() + TRIED_FOR, "one call is trying whether it is back")

    def reopened(self, opened_at: int) -> None:
        """Hold the agent for as long again; the operators know already."""
        count("BreakersReopened")
        logger().warning("circuit opened again", extra={"agent": self._agent})
        self._renew(opened_at + self._recover_after, Breaker.why_open(0))

    def closed(self) -> None:
        """Release the agent and tell."""
        count("BreakersClosed")
        logger().info("circuit closed", extra={"agent": self._agent})
        since: int | None = None
        try:
            earlier = self._earlier()
            since = earlier.since if earlier else None
            self._holds.release(self._agent, BREAKER)
        except Exception as error:  # noqa: BLE001  # it ends by itself
            self._log_failure(error)
        self._alerts.append(breaker_closed_alert(self._agent, since=since, now=self._clock()))

    def held(self, until: int, why: str) -> None:
        """Write the hold where it is missing, or the scheduler would go on sending."""
        now = self._clock()
        if self._renewed_at is None or now - self._renewed_at >= RENEWED_EVERY:
            self._renew(until, why)

    def tell(self) -> None:
        """Publish what there is to tell. What cannot be published is logged, and told next time.

        The next time is this instance's next request; the newest KEPT are kept until then.
        """
        alerts, self._alerts = self._alerts[-KEPT:], []
        for alert in alerts:
            try:
                self._publish(alert)
            except Exception as error:  # noqa: BLE001  # the call that it is about is over
                count("AlertsFailed")
                told = {"kind": alert.attributes["kind"], "agent": self._agent}
                logger().error("alert not published", extra={**told, **where(error)})
                self._alerts.append(alert)

    def _renew(self, until: int, why: str) -> None:
        """Hold the agent until then, as since the circuit first opened, if it is not yet."""
        self._renewed_at = self._clock()
        try:
            earlier = self._earlier()
            if earlier is None or earlier.until < until:
                since = earlier.since if earlier else self._renewed_at
                self._holds.hold(self._hold(since, until, why))
        except Exception as error:  # noqa: BLE001  # the agents themselves hold back without it
            self._log_failure(error)

    def _earlier(self) -> Hold | None:
        """The breaker's hold as it is stored, also where it has ended meanwhile."""
        for hold in self._holds.stored():
            if (hold.agent, hold.kind, hold.unreadable) == (self._agent, BREAKER, False):
                return hold
        return None

    def _hold(self, since: int, until: int, reason: str) -> Hold:
        return Hold(self._agent, BREAKER, since, until, reason, BY)

    def _log_failure(self, error: Exception) -> None:
        count("HoldsFailed")
        logger().warning("the agent's hold could not be kept", extra=where(error))
