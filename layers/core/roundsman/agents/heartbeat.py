"""Progress of long steps: replies that say that the work is alive, and no more than are needed."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias

from roundsman.model.instants import milliseconds
from roundsman.model.workflow import Step
from roundsman.ports import Clock
from roundsman.wire.messages import AgentRequest, Reply

A_HEARTBEAT = 3  # so many signs within heartbeat_within: two of them may be lost or late

SendNow: TypeAlias = Callable[[Reply], None]


@dataclass(kw_only=True)
class Heartbeat:
    """Says that one attempt goes on; `every` is in ms, and None where no one waits to hear it.

    `sign` makes the reply that says so at an instant, with a note for the agent's own log.
    """

    every: int | None
    complete_by: int
    clock: Clock
    sign: Callable[[int, str], Reply]
    say: SendNow
    report: Callable[[Exception], None]
    _said_at: int | None = field(default=None, init=False)

    def show(self, note: str) -> None:
        """Say it unless it was said a moment ago. A failure to say it is only reported."""
        now = self.clock()
        if self.every is None or now >= self.complete_by:
            return
        if self._said_at is not None and now - self._said_at < self.every:
            return
        self._said_at = now
        try:
            self.say(self.sign(now, note))
        except Exception as error:  # noqa: BLE001  # the work goes on; the next sign may arrive
            self.report(error)


def interval_of(step: Step | None, asked: AgentRequest) -> int | None:
    """How often progress is said, in ms; None for a request that waits for none.

    The request knows the plan, which may be older than this code's step, but not the plan's own
    heartbeat_within; the time that it was given stands for it where the step has none.
    """
    if asked.heartbeat_by is None:
        return None
    if step is not None and step.heartbeat_within is not None:
        return milliseconds(step.heartbeat_within) // A_HEARTBEAT
    return max(0, asked.heartbeat_by - asked.sent_at) // A_HEARTBEAT
