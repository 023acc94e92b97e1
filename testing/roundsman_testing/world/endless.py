"""Finds that a run of a world would never end, by the time in which nothing comes of its events.

An order may be polled every few minutes for days, be held for weeks, or meet an agent that fails
for a day: time passes and decisions are stored, so the run goes on. A run would never end if
events follow each other and hardly any time passes, or if time passes and no decision is stored.
"""

from dataclasses import dataclass

from roundsman.model.instants import DAY, MINUTE, format_duration
from roundsman_testing.invariants.rules import Blame

CROWDED = 2_000
"""So many events per task, bulk run and waiting message are judged by the time that they took."""

LEAST_APART = 25
"""The least average time in ms between so many events."""

DUE_FOR = 360 * MINUTE
"""How long (ms) events may follow each other without a decision while an order needs one."""

QUIET_FOR = 31 * DAY
"""How long (ms) they may if no order needs one: a bulk run waits for its orders."""

STRIDE = 5 * MINUTE
"""How much time (ms) between two events counts: nothing happens while an order sleeps for days."""

MOST_EVENTS = 500_000
"""The most events in which no order ends: some ten minutes. It is a bound of the kit."""


@dataclass(frozen=True, slots=True)
class Endless:
    """Why a run would never end."""

    why: str
    blame: Blame


class EndlessCheck:
    """Looks at each event of one run."""

    def __init__(self, now: int) -> None:
        """`now` is the instant at which the run begins, in epoch ms."""
        self._crowd = self._since_end = 0
        self._crowd_since = now
        self._ended = self._decisions = -1
        self._still, self._last = 0, now

    def crowded(self, things: int) -> bool:
        """Count an event. Returns whether `judged` must be asked about those since it last was.

        `things` is the number of tasks, bulk runs and waiting messages.
        """
        self._crowd += 1
        return self._crowd > CROWDED * (1 + things)

    def judged(self, now: int) -> Endless | None:
        """Why the run would never end, if hardly any time has passed; the next count begins."""
        events, passed = self._crowd, now - self._crowd_since
        self._crowd, self._crowd_since = 0, now
        if passed < events * LEAST_APART:
            why = f"{events:,} events followed each other within {format_duration(passed)}"
            return Endless(why, Blame.APPLICATION_OR_ENGINE)
        return None

    def after(
        self, now: int, *, decisions: int, needed_since: int | None, ended: int
    ) -> Endless | None:
        """Why the run would never end, after an event at `now` (epoch ms).

        `decisions` is how many decisions were stored so far, and `ended` the number of orders that
        have ended. `needed_since` is since when an order needs to be looked at; None if none does.
        """
        if ended != self._ended:
            self._ended, self._since_end = ended, 0
        self._since_end += 1
        if decisions != self._decisions:
            self._decisions, self._still = decisions, 0
        self._still += min(now - self._last, STRIDE)
        self._last = now
        is_due = needed_since is not None and now - needed_since > DUE_FOR
        if self._still > (DUE_FOR if is_due else QUIET_FOR):
            why = f"no decision was stored for {format_duration(self._still)}, and events go on"
            return Endless(why, Blame.ENGINE)
        if self._since_end > MOST_EVENTS:
            return Endless(f"no order has ended in {MOST_EVENTS:,} events", Blame.KIT)
        return None
