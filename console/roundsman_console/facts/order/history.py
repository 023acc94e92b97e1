"""The history of an order in rows, each with the time since the row before. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.model.instants import SECOND, clock_time, format_duration, iso
from roundsman_console.base.constraints import RUN_ID
from roundsman_console.facts.order.timeline import Happening

_RUN = re.compile(rf"\(bulk ({RUN_ID.pattern})\)")
"""How the reason of a command names the bulk run that sent it (`BulkRun.event_for`)."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One row of the history."""

    happening: Happening
    later: int | None
    """The time in ms since the row before it in the order of time; None for the first row."""
    moment: str
    """Its instant in UTC: the time of day, with the date if the row above is of another day."""
    run: str | None = None
    """The bulk run that sent the command; None if none did."""

    @property
    def later_words(self) -> str:
        """The time since the row before it: `+250 ms`, `+12.5 s`; empty for the first row."""
        return later_words(self.later)

    @property
    def around_run(self) -> tuple[str, str]:
        """The reason before and after the id of the bulk run."""
        before, _, after = self.happening.why.partition(self.run or "\0")
        return before, after


def entries(happened: Sequence[Happening]) -> list[HistoryEntry]:
    """Return the rows of the history, the newest first. `happened` is in the order of time."""
    found = list[HistoryEntry]()
    for place in range(len(happened) - 1, -1, -1):
        one, before = happened[place], happened[place - 1] if place else None
        above = found[-1].happening.at if found else None
        later = None if before is None else one.at - before.at
        found.append(HistoryEntry(one, later, moment(one.at, above), _run_of(one)))
    return found


def later_words(later: int | None) -> str:
    """Return the time (ms) between two rows: `+250 ms`, `+12.5 s`; empty for None."""
    if later is None:
        return ""
    tenths = SECOND <= later < 100 * SECOND
    return f"+{later / SECOND:.1f} s" if tenths else f"+{format_duration(later)}"


def moment(instant: int, beside: int | None = None) -> str:
    """Return an instant (epoch ms) in UTC, to the second: `2027-01-15 08:00:12`.

    The date is left out if it is the one of the instant `beside`.
    """
    date = iso(instant)[:10]
    same = beside is not None and iso(beside)[:10] == date
    return clock_time(instant) if same else f"{date} {clock_time(instant)}"


def _run_of(one: Happening) -> str | None:
    found = _RUN.search(one.why) if one.by is not None else None
    return found[1] if found else None
