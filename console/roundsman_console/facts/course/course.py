"""Orders over the last hours, minute by minute, and the sentence that says it in words. Pure.

Unknown is None, and never 0: see `minute_counts`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

from roundsman.model.instants import DAY, MINUTE, clock_time, format_duration, second
from roundsman_console.aws.metrics import HOUR
from roundsman_console.base.constraints import Keyword
from roundsman_console.base.counted import counted
from roundsman_console.base.result import EpochMs
from roundsman_console.facts.course.marks import EventMark

SPANS: Mapping[str, int] = {"1h": HOUR, "3h": 3 * HOUR, "12h": 12 * HOUR, "24h": DAY}
"""The spans that can be chosen, in ms."""
LONGEST = max(SPANS.values())
USUAL = "3h"
SETTLES = 3 * MINUTE
"""So much later (in ms) CloudWatch has every value of a minute, at the latest."""

Counts = tuple[int | None, ...]
"""A number for each minute; None if it is not known."""
SomeCount = Annotated[int, Keyword("minimum", 0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """What was counted in each minute."""

    name: str
    """`accepted`, `completed`, `failed`, `stepSucceeded` or `stepFailed`."""
    label: str
    """What is counted, in words."""
    source: str
    """Where the numbers come from."""
    missing: str | None
    """Why nothing of it is known at all; null if it is counted."""
    counts: Sequence[SomeCount | None]
    """The number in each minute; null if it is not known."""

    @property
    def total(self) -> int | None:
        """The sum of what is known; None if nothing is."""
        known = [one for one in self.counts if one is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True)
class OrdersOverTime:
    """The orders of some hours, minute by minute, and what was done meanwhile."""

    since: EpochMs
    """When the first minute begins."""
    until: EpochMs
    """When the last minute ends. It is the present one."""
    settled: EpochMs
    """Until when CloudWatch has all values. A later minute may still get more."""
    sentence: str
    series: Sequence[Series]
    marks: Sequence[EventMark]
    """What was done, the earliest first."""

    @property
    def span(self) -> int:
        """Its length in ms."""
        return self.until - self.since

    def of(self, name: str) -> Series:
        """Return the series with this name. Raises KeyError if there is none."""
        return {one.name: one for one in self.series}[name]

    def counted_since(self, name: str, instant: int | None) -> int | None:
        """Return how many were counted in the minutes after that of `instant` (epoch ms).

        None if a minute that CloudWatch should have by now is not known, or if the instant is
        before the course.
        """
        if instant is None or instant < self.since:
            return None
        first = (instant - self.since) // MINUTE + 1
        found = list(self.of(name).counts[first:])
        due = max(0, (self.settled - self.since) // MINUTE - first)
        if None in found[:due]:
            return None
        known = [one for one in found if one is not None]
        return sum(known) if known else None


def window(at: int, span: int) -> tuple[int, int]:
    """Return the whole minutes of `span` ms of which the last one is that of `at` (epoch ms)."""
    until = at - at % MINUTE + MINUTE
    return until - span, until


def settled_at(at: int) -> int:
    """Return until when CloudWatch has every value at `at` (epoch ms), a whole minute."""
    return at - SETTLES - (at - SETTLES) % MINUTE


# --- What is known -------------------------------------------------------------------------------


def measured_minutes(
    series: Iterable[Iterable[int]], starts: Iterable[int], interval: int
) -> frozenset[int]:
    """Return the minutes (epoch ms) for which CloudWatch had values of the stack.

    `series` are the minutes with a value, of each metric. `starts` are those in which Lambda has
    counted a start of the supervisor; it is started every `interval` ms, in each profile, whatever
    orders there are. Minutes between two starts count as well, unless one was missing there.
    """
    found = {minute for minutes in series for minute in minutes}
    known, longest = sorted({*starts}), 2 * max(interval, MINUTE)
    for before, after in pairwise(known):
        if after - before < longest:
            found.update(range(before, after, MINUTE))
    return frozenset(found.union(known))


def minute_counts(
    values: Mapping[int, float], measured: frozenset[int], since: int, until: int, settled: int
) -> Counts:
    """Return the number of each minute from `since` to `until`; None if it is not known.

    A counter of AWS has no value for a minute in which nothing was counted, and neither has one
    whose values were lost or are still on their way. So a minute without a value is 0 only if

    - it is before `settled`, when CloudWatch has what was sent, and
    - it is `measured`: CloudWatch has another value of the stack in that minute, at least the start
      of the supervisor (`measured_minutes`).

    Every other minute without a value is not known.
    """
    return tuple(
        round(values[minute])
        if minute in values
        else 0
        if minute < settled and minute in measured
        else None
        for minute in range(since, until, MINUTE)
    )


def counted_instants(
    instants: Sequence[int], since: int, until: int, *, whole: bool = True
) -> Counts:
    """Return how many of the instants (epoch ms, in order) are in each minute.

    Without `whole` there are later instants than these: from the minute of the last one on, the
    number is not known.
    """
    counts = [0] * ((until - since) // MINUTE)
    for instant in instants:
        if since <= instant < until:
            counts[(instant - since) // MINUTE] += 1
    if whole:
        return tuple(counts)
    last = (max(instants, default=0) - since) // MINUTE
    return tuple(count if place < last else None for place, count in enumerate(counts))


def together(*counts: Counts) -> Counts:
    """Return the sums of each minute; None if one of the numbers is not known."""
    return tuple(
        None if None in each else sum(one for one in each if one is not None)
        for each in zip(*counts, strict=True)
    )


# --- In words ------------------------------------------------------------------------------------


def stack_sentence(course: OrdersOverTime, at: int) -> str:
    """Return in a sentence how many orders came and ended, since when they fail, and until when."""
    span, names = format_duration(course.span), ("accepted", "completed", "failed")
    if all(course.of(name).total is None for name in names):
        return f"How many orders were accepted and ended in the last {span} is not known."
    parts = ", ".join(_total(course.of(name)) for name in names)
    said = f"Orders of the last {span}: {parts}"
    failed = [place for place, one in enumerate(course.of("failed").counts) if one]
    if failed:
        first, last = (course.since + place * MINUTE for place in (failed[0], failed[-1]))
        ago = format_duration(max(0, at - last))
        said += f". The first failed at {second(first)}"
        if last != first:
            said += f"; the last one failed at {second(last)}, {ago} ago"
        said += _since_then(course, "completed", last, "order", "completed")
    return f"{said}.{_unknown(course)}"


def group_sentence(
    course: OrdersOverTime,
    step: str | None,
    first: int | None,
    last: int | None,
    at: int,
    *,
    since_is_known: bool = True,
) -> str:
    """Return in a sentence from when to when orders failed for the reason of a group.

    `first` and `last` are when its first and its last order failed, `at` is now (epoch ms), and
    `step` is where; None if they failed as a whole. Without `since_is_known`, an order may have
    failed before `first`.
    """
    if first is None or last is None:
        return "No order is in the group now."
    begun, ended = (time_of_day(one, at) for one in (first, last))
    earlier = "" if since_is_known else " or earlier"
    said = "Orders failed with this reason "
    said += (
        f"at {begun} UTC{earlier}" if begun == ended else f"from {begun}{earlier} to {ended} UTC"
    )
    if step is not None:
        said += _since_then(course, "stepSucceeded", last, "attempt", f"of {step} succeeded")
    return f"{said}.{_unknown(course)}"


def time_of_day(instant: int, at: int) -> str:
    """Return an instant as the time of day in UTC, with its date if that is another one than now.

    Both are epoch ms: `23:20:55`, `2026-11-28 23:20:55`.
    """
    days = {second(one)[:10] for one in (instant, at)}
    date = f"{second(instant)[:10]} " if len(days) > 1 else ""
    return f"{date}{clock_time(instant)}"


def sources_sentence(course: OrdersOverTime) -> str:
    """Return in a sentence where the numbers of each series come from, or why there are none."""
    known = [f"{one.label}: {one.source}" for one in course.series if one.missing is None]
    missing: dict[str, list[str]] = {}
    for one in course.series:
        if one.missing is not None:
            missing.setdefault(one.missing, []).append(one.label)
    return "; ".join([*known, *(f"{', '.join(names)}: {why}" for why, names in missing.items())])


def _total(series: Series) -> str:
    if series.total is not None:
        return f"{series.total:,} {series.name}"
    why = f" ({series.missing})" if series.missing else ""
    return f"how many {series.name} is not known{why}"


def _since_then(course: OrdersOverTime, name: str, last: int, noun: str, did: str) -> str:
    """Say how many of a series there were after the minute of the last failure, if it is known."""
    number = course.counted_since(name, last)
    if number is None:
        return ""
    return f". Since then {counted(number, noun) if number else f'no {noun}'} {did}"


def _unknown(course: OrdersOverTime) -> str:
    """Say how many minutes are not known that CloudWatch should have by now."""
    due = max(0, (course.settled - course.since) // MINUTE)
    most = max(
        (
            sum(one is None for one in series.counts[:due])
            for series in course.series
            if not series.missing
        ),
        default=0,
    )
    return f" Of {counted(most, 'minute')} not everything is known." if most else ""
