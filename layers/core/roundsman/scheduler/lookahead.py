"""Look-ahead: what falls due before the next pass is sent to the scheduler as a delayed Inspect.

A pass reads the due index up to the instant by which the next one has come at the latest: the
interval, and a minute more, since the timer ticks some time within its minute. So an entry lies
before more than one pass, and each pass must look at all of them: one that another step has just
brought into the index may be due before the next. What a pass sent is therefore kept in the
memory of its instance, which makes the next passes too, as a rule. A fresh instance sends once
more: an Inspect that finds nothing to do costs the scheduler one read.

A deadline that is given after a pass may be over before the next has seen it. So whoever gives a
task its time sends one Inspect for the end of that time, as far as SQS can delay it: `delay_until`.
It goes by that bound and not by the supervisor's interval: few tasks have less than a quarter of an
hour, each costs one request more, and it is looked at in time also where a pass is late.
"""

from collections.abc import Callable, Iterable

from roundsman.model.instants import MINUTE, SECOND
from roundsman.ports import LONGEST_DELAY, Clock, DueEntry, Outbox

TICKS_WITHIN = MINUTE
"""EventBridge invokes a schedule at some time within the minute that it names."""

RATHER_LATE = SECOND // 2
"""An Inspect that comes a moment early, by clocks that differ, finds nothing to do. Delays are in
whole seconds, rounded up: it comes half a second to a second and a half late."""

AT_ONCE = 10
"""How many go in one request."""


def delay_until(at: int, now: int) -> int | None:
    """How long (ms) to delay a message that is to find `at` passed, and not by much.

    None where that is longer than SQS can delay: supervisors then see to it.
    """
    delay = max(0, at + RATHER_LATE - now)
    return delay if delay <= LONGEST_DELAY else None


class LookAhead:
    """What this instance has told the scheduler to look at, and when."""

    def __init__(self, outbox: Outbox, *, interval: int, clock: Clock) -> None:
        self._outbox = outbox
        self._clock = clock
        self._window = min(interval + TICKS_WITHIN, LONGEST_DELAY - RATHER_LATE)
        self._sent: set[DueEntry] = set()

    @property
    def remembered(self) -> int:
        """How many Inspects that were sent still lie ahead."""
        return len(self._sent)

    def until(self, now: int) -> int:
        """How far a pass that begins now looks ahead. Later passes see to what is beyond."""
        self._sent = {entry for entry in self._sent if entry.due_at > now}
        return now + self._window

    def send(self, entries: Iterable[DueEntry], go_on: Callable[[], bool]) -> int:
        """Send what was not sent before, while `go_on` says so; how many were sent.

        Raises TryAgain and CallRefused; what was not sent then is due for the next pass.
        """
        fresh = [entry for entry in entries if entry not in self._sent]
        sent = 0
        while sent < len(fresh) and go_on():
            batch = fresh[sent : sent + AT_ONCE]
            now = self._clock()
            self._outbox.send_inspects(
                [(entry.task_id, max(0, entry.due_at + RATHER_LATE - now)) for entry in batch]
            )
            self._sent.update(batch)
            sent += len(batch)
        return sent
