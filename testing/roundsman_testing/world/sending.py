"""How messages come into the queues of a world: from whom, and how late."""

from roundsman_testing.world.clock import WorldClock
from roundsman_testing.world.mishaps import RandomMail
from roundsman_testing.world.queues import (
    A_FUNCTION,
    AGENT_SENDER,
    APPLICATION_SENDER,
    COMMANDS,
    EFFECTS,
    ORDERS,
    REPLIES,
    SERVICE_SENDER,
    SUBMISSION_SENDER,
    SUPERVISOR_SENDER,
    WorldQueues,
)


class Sending:
    """Puts messages into the queues, each as its sender."""

    def __init__(self, queues: WorldQueues, luck: RandomMail, clock: WorldClock) -> None:
        self._queues = queues
        self._luck = luck
        self._clock = clock

    def send(
        self, queue: str, body: str, delay: int = 0, to: str = "", sender: str | None = A_FUNCTION
    ) -> None:
        """Send a message, which is visible in `delay` ms, or later by chance."""
        if sender == A_FUNCTION:  # submission is the only function that sends a command
            sender = AGENT_SENDER if queue == REPLIES else SUBMISSION_SENDER
        # An agent sends its reply when its visit ends; any other delay is one of the queue.
        sent_at = self._clock.now + delay if queue == REPLIES else self._clock.now
        if queue != EFFECTS:
            delay += self._luck.late()
        self._queues.send(queue, body, delay=delay, to=to, sender=sender, sent_at=sent_at)

    def as_supervisor(self, body: str, delay: int) -> None:
        """Send a command to the scheduler, as the supervisor."""
        self.send(COMMANDS, body, delay, sender=SUPERVISOR_SENDER)

    def as_application(self, body: str) -> None:
        """Send the text of an order, a cancellation or a signal, as the application."""
        self.send(ORDERS, body, sender=APPLICATION_SENDER)

    def as_service(self, body: str) -> None:
        """Send what a service of AWS puts into the queue of order events."""
        self.send(ORDERS, body, sender=SERVICE_SENDER)

    def as_schedule(self, body: str, at: int) -> None:
        """Send the order of a schedule at the instant of its run, in epoch ms."""
        self.send(ORDERS, body, at - self._clock.now, sender=SERVICE_SENDER)

    def command(self, body: str, sender: str | None) -> None:
        """Send a command to the scheduler, as this sender."""
        self.send(COMMANDS, body, sender=sender)
