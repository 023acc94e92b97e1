"""Heartbeats: progress replies of long attempts, at a limited rate."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from roundsman.definition.workflow import Step
from roundsman.model.instants import milliseconds
from roundsman.ports import Clock
from roundsman.wire.messages import AgentRequest, Reply

A_HEARTBEAT = 3  # replies per heartbeat_within, so that two of them may be lost or late

SendNow: TypeAlias = Callable[[Reply], None]


@dataclass(kw_only=True)
class Heartbeat:
    """Sends the progress replies of one attempt."""

    every: int | None
    """The shortest time in ms between two replies; None: the request expects no heartbeats."""
    complete_by: int
    """Epoch ms; no progress is sent from then on."""
    clock: Clock
    sign: Callable[[int, str], Reply]
    """Creates the progress reply for an instant (epoch ms), with a note for the agent's log."""
    send_now: SendNow
    """Sends a reply at once."""
    report: Callable[[Exception], None]
    """Called if a reply cannot be sent."""
    _sent_at: int | None = field(default=None, init=False)

    def show(self, note: str) -> None:
        """Send a progress reply, unless one was sent less than `every` ms ago.

        A reply that cannot be sent is only reported.
        """
        now = self.clock()
        if self.every is None or now >= self.complete_by:
            return
        if self._sent_at is not None and now - self._sent_at < self.every:
            return
        self._sent_at = now
        try:
            self.send_now(self.sign(now, note))
        except Exception as error:  # noqa: BLE001  # the next reply may arrive
            self.report(error)


def interval_of(step: Step | None, asked: AgentRequest) -> int | None:
    """The shortest time in ms between two heartbeats; None if the request expects none.

    That is a third of the step's `heartbeat_within`. The request's plan may be older than this
    code: if only the plan has a `heartbeat_within`, which the request does not contain, it is a
    third of the time from the request's `sent_at` to its `heartbeat_by`.
    """
    if asked.heartbeat_by is None:
        return None
    if step is not None and step.heartbeat_within is not None:
        return milliseconds(step.heartbeat_within) // A_HEARTBEAT
    return max(0, asked.heartbeat_by - asked.sent_at) // A_HEARTBEAT
