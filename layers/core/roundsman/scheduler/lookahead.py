"""Look-ahead: a delayed Inspect is sent to the scheduler for each task that falls due soon.

A supervisor pass reads the due index up to the latest time at which the next pass can begin: one
interval plus one minute, because EventBridge invokes a schedule at any time within its minute. More
than one pass can therefore read the same entry, and each pass must read all entries: an entry that
was added since the last pass may be due before the next one. The instance keeps the entries that
it has sent in memory, because the same instance usually runs the next passes. A new instance sends
them once more; an Inspect that finds nothing to do costs the scheduler one read.

A scheduler that is behind or down must find few messages when it goes on. So a task gets no further
Inspect while it has one, or a Start, that should have been handled and was not; and no task gets
one while the SchedulerQueue is behind.

A deadline that is set after a pass may expire before the next pass reads it. The code that sets a
task's deadline therefore also sends one Inspect for it, if SQS can delay a message that long
(`delay_until`). The limit is the longest SQS delay (15 minutes), not the supervisor's interval: few
tasks have so short a deadline, each costs one more request, and the Inspect arrives in time even
if a pass is late.
"""

from collections.abc import Callable, Iterable

from roundsman.model.instants import MINUTE, SECOND
from roundsman.ports import LONGEST_DELAY, Clock, DueEntry, Outbox

TICKS_WITHIN = MINUTE
"""EventBridge invokes a schedule at any time within the scheduled minute."""

RATHER_LATE = SECOND // 2
"""ms added to each delay, because an Inspect that arrives too early finds nothing to do.

Clocks may differ by a little. SQS delays are whole seconds and are rounded up, so the Inspect
arrives 0.5 to 1.5 s after the due time."""

AT_ONCE = 10
"""Inspects per call of `Outbox.send_inspects`."""


def delay_until(at: int, now: int) -> int | None:
    """The delay in ms for a message that must arrive shortly after `at`.

    Returns None if SQS cannot delay a message that long; a supervisor then handles the task.
    """
    delay = max(0, at + RATHER_LATE - now)
    return delay if delay <= LONGEST_DELAY else None


HANDLED_WITHIN = 10 * SECOND
"""ms after the due time of an Inspect within which a scheduler that keeps up has handled it."""

UNANSWERED_FOR = 30 * MINUTE
"""ms after a visit in which a task counts as unanswered: several times the longest time between two
visits of such a task."""


class LookAhead:
    """Sends each due entry as a delayed Inspect, and remembers the entries that it has sent."""

    def __init__(self, outbox: Outbox, *, interval: int, clock: Clock) -> None:
        self._outbox = outbox
        self._clock = clock
        self._window = min(interval + TICKS_WITHIN, LONGEST_DELAY - RATHER_LATE)
        self._sent: dict[str, int] = {}
        self._unanswered: dict[str, int] = {}

    @property
    def remembered(self) -> int:
        """The number of entries in memory; `until` removes those that are over."""
        return len(self._sent) + len(self._unanswered)

    def until(self, now: int) -> int:
        """The instant (epoch ms) up to which a pass that begins at `now` reads the due index."""
        kept = now - UNANSWERED_FOR
        self._unanswered = {task: at for task, at in self._unanswered.items() if at > kept}
        # A late entry is in the index until it was visited, so the last pass has visited it.
        self._sent = {
            task: at
            for task, at in self._sent.items()
            if at > now - 2 * self._window or task in self._unanswered
        }
        return now + self._window

    def visited(self, task_id: str, *, late_since: int | None, start_waits: bool) -> None:
        """Note what a visit of a due task has found.

        `late_since` is since when an attempt is late (epoch ms), None if none is: an Inspect that
        was due since then should have been handled. `start_waits` is whether a Start should have
        been.
        """
        now, sent = self._clock(), self._sent.get(task_id)
        waits = sent is not None and late_since is not None and late_since <= sent
        if start_waits or (waits and sent is not None and sent <= now - HANDLED_WITHIN):
            self._unanswered[task_id] = now
        else:
            self._unanswered.pop(task_id, None)

    def may_send(self, task_id: str) -> bool:
        """Whether the task has no Inspect and no Start that waits for the scheduler."""
        return task_id not in self._unanswered

    def sent(self, task_id: str, at: int) -> None:
        """Note that an Inspect of the task was sent that is due at `at` (epoch ms)."""
        self._sent[task_id] = at

    def send(self, entries: Iterable[DueEntry], go_on: Callable[[], bool]) -> int:
        """Send the entries that were not sent before, and return how many were sent.

        Stops when `go_on` returns False. Raises TryAgain and CallRefused; the next pass finds the
        entries that were not sent.
        """
        fresh = [
            entry
            for entry in entries
            if self._sent.get(entry.task_id) != entry.due_at and self.may_send(entry.task_id)
        ]
        sent = 0
        while sent < len(fresh) and go_on():
            batch = fresh[sent : sent + AT_ONCE]
            now = self._clock()
            self._outbox.send_inspects(
                [(entry.task_id, max(0, entry.due_at + RATHER_LATE - now)) for entry in batch]
            )
            for entry in batch:
                self.sent(entry.task_id, entry.due_at)
            sent += len(batch)
        return sent
