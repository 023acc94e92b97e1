"""Writes the hold, the alert and the metric when an agent's circuit opens or closes.

The agent's instances read the breaker's own row. The scheduler reads the holds, so it claims no
step for an agent whose circuit is open. The hold is written during the call, because until then the
scheduler sends requests that the agent can only give back. Alerts are published after the reply,
because they take longer and must not delay the step.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field

from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.guard.breaker import TRIED_FOR
from roundsman.aws.observability import count, logger, where
from roundsman.model.holds import BREAKER, ENDED, Hold
from roundsman.model.instants import SECOND
from roundsman.ports import Clock
from roundsman.wire.alert import Alert, breaker_closed_alert, breaker_opened_alert

RENEWED_EVERY = 5 * SECOND  # ms, by each instance; the scheduler reads the holds as often
BY = "the circuit breaker"
KEPT = 10  # unpublished alerts kept at most


@dataclass(eq=False)
class CircuitEvents:
    """BreakerNews that writes the agent's hold and alerts the operators. No method raises.

    If several instances open the circuit at once, the first one to write the hold alerts.
    """

    agent: str
    _: KW_ONLY
    holds: DynamoHolds
    publish: Callable[[Alert], None]
    recover_after: int
    clock: Clock
    _renewed_at: int | None = field(default=None, init=False)
    _alerts: list[Alert] = field(default_factory=list, init=False)

    def opened(self, opened_at: int, why: str) -> None:
        """Hold the agent and keep an alert to publish, unless another instance was first."""
        count("BreakersOpened")
        logger().warning("circuit opened", extra={"agent": self.agent, "reason": why})
        # Not `opened_at`: it is in whole seconds, so the holds of two instances might be equal.
        since, until = self.clock(), opened_at + self.recover_after
        try:
            first = self.holds.hold(self._hold(since, until, why))
        except Exception as error:  # noqa: BLE001  # the circuit rejects calls without it
            self._log_failure(error)
            first = True  # not known; two alerts are better than none
        if first:
            self._alerts.append(breaker_opened_alert(self.agent, why, opened_at=since, until=until))

    def tried(self) -> None:
        """Hold the agent for as long as the one call may take."""
        self._renew(self.clock() + TRIED_FOR, "one test call to the service is in progress")

    def reopened(self, opened_at: int, why: str) -> None:
        """Hold the agent for another recovery time, without another alert."""
        count("BreakersReopened")
        logger().warning("circuit opened again", extra={"agent": self.agent, "reason": why})
        self._renew(opened_at + self.recover_after, why)

    def closed(self) -> None:
        """Release the agent and keep an alert to publish."""
        count("BreakersClosed")
        logger().info("circuit closed", extra={"agent": self.agent})
        since: int | None = None
        try:
            earlier = self._earlier()
            since = earlier.since if earlier else None
            self.holds.release(self.agent, BREAKER)
        except Exception as error:  # noqa: BLE001  # the hold ends by itself
            self._log_failure(error)
        self._alerts.append(breaker_closed_alert(self.agent, since=since, now=self.clock()))

    def held(self, until: int, why: str) -> None:
        """Write the hold if it is missing; otherwise the scheduler would go on sending requests."""
        now = self.clock()
        if self._renewed_at is None or now - self._renewed_at >= RENEWED_EVERY:
            self._renew(until, why)

    def publish_alerts(self) -> None:
        """Publish the alerts. An alert that fails is logged, and tried again at the next request.

        This instance keeps at most the newest KEPT alerts until then.
        """
        alerts, self._alerts = self._alerts[-KEPT:], []
        for alert in alerts:
            try:
                self.publish(alert)
            except Exception as error:  # noqa: BLE001  # an alert must not fail the request
                count("AlertsFailed")
                fields = {"kind": alert.attributes["kind"], "agent": self.agent}
                logger().error("alert not published", extra={**fields, **where(error)})
                self._alerts.append(alert)

    def _renew(self, until: int, why: str) -> None:
        """Hold the agent until `until`, unless its hold already lasts as long.

        The start of the hold stays the time when the circuit first opened.
        """
        self._renewed_at = self.clock()
        try:
            earlier = self._earlier()
            if earlier is None or earlier.until < until:
                since = earlier.since if earlier else self._renewed_at
                self.holds.hold(self._hold(since, until, why))
        except Exception as error:  # noqa: BLE001  # the circuit rejects calls without it
            self._log_failure(error)

    def _earlier(self) -> Hold | None:
        """The hold since the circuit opened, even if it has run out; None if it is closed.

        None also if the hold cannot be read.
        """
        for hold in self.holds.stored():
            if (hold.agent, hold.kind, hold.unreadable) == (self.agent, BREAKER, False):
                return hold if hold.until != ENDED else None
        return None

    def _hold(self, since: int, until: int, reason: str) -> Hold:
        return Hold(self.agent, BREAKER, since, until, reason, BY)

    def _log_failure(self, error: Exception) -> None:
        count("HoldsFailed")
        logger().warning("the agent's hold could not be written", extra=where(error))
