"""The course of orders as rows over one axis of time, with marks for what was done. Pure.

Each row has its own scale, and its highest minute has the whole height. A time of which nothing is
known is a gap with a frame, and never a line at 0.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

from roundsman.model.instants import MINUTE, clock_time, format_duration
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.web.drawings.axis import SCALE
from roundsman_console.facts.course.course import OrdersOverTime, Series
from roundsman_console.facts.course.marks import EventMark

MOST_COLUMNS = 360
"""A row has at most so many columns. One that stands for several minutes shows the highest."""
ROW, HEIGHT = 56, 36
"""The height of a row, and that of its highest column."""
LEAST = 2.0
"""The height of a column in which anything was counted."""
WIDE = 60.0
"""The word `unknown` fits in a gap of this width."""
LABEL, LABEL_LINES = 25, 2
"""The number of characters that fit beside a row, and of their lines."""
TICKS = 6
"""The number of parts of the axis, each with a label."""
APART = 18.0
"""Two marks that are closer have their numbers in different lines."""
LINES = 3
TABLE_ROWS = 12
"""The number of lines of the table below the drawing."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A time of which the number is not known."""

    x: float
    width: float
    words: str
    label: str
    """Written in the gap; empty if it does not fit."""


@dataclass(frozen=True, slots=True)
class Row:
    """One series."""

    name: str
    label: str
    lines: tuple[str, ...]
    """The label in at most LABEL_LINES lines; the last one ends with `…` if it does not fit."""
    most: str
    """How high the highest column is, in words; empty if nothing is known."""
    path: str
    """The columns, as the path of a surface; empty if there is none."""
    gaps: tuple[Gap, ...]


@dataclass(frozen=True, slots=True)
class DrawnMark:
    """A line for something that was done, with its number in the list below the drawing."""

    number: int
    x: float
    line: int
    """In which line its number is, from 0."""
    mark: EventMark

    @property
    def kind(self) -> str:
        """Its kind as a class: `bulk-run`."""
        return self.mark.kind.value.replace(" ", "-")


@dataclass(frozen=True, slots=True)
class Slice:
    """A line of the table: a part of the time, and the number of each series in words."""

    since: str
    until: str
    numbers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CourseDrawing:
    """The rows, the marks and the labels of the time, and the same as a table."""

    rows: tuple[Row, ...]
    marks: tuple[DrawnMark, ...]
    ticks: tuple[tuple[float, str], ...]
    slices: tuple[Slice, ...]
    every: str
    """What a column stands for, in words."""
    span: str
    """How long the axis is, in words."""

    @property
    def height(self) -> int:
        """The height of all rows."""
        return len(self.rows) * ROW

    @property
    def has_gaps(self) -> bool:
        """Whether a row has a time of which nothing is known."""
        return any(row.gaps for row in self.rows)


def draw(course: OrdersOverTime, names: Sequence[str] = ()) -> CourseDrawing:
    """Return the drawing of the series with these names; of all without any."""
    series = [course.of(name) for name in names] or [*course.series]
    minutes = course.span // MINUTE
    every = -(-minutes // MOST_COLUMNS)
    ticks = tuple(
        (
            SCALE * part / TICKS,
            clock_time(course.since + course.span * part // TICKS)[:5],
        )
        for part in range(TICKS + 1)
    )
    return CourseDrawing(
        tuple(_row(one, course, every) for one in series),
        tuple(_marks(course)),
        ticks,
        tuple(_slices(series, course)),
        format_duration(every * MINUTE) if every > 1 else "minute",
        format_duration(course.span),
    )


def _row(series: Series, course: OrdersOverTime, every: int) -> Row:
    columns = [
        max((one for one in series.counts[first : first + every] if one is not None), default=None)
        for first in range(0, len(series.counts), every)
    ]
    most = max((one for one in columns if one is not None), default=None)
    width = SCALE / max(1, len(columns))
    path, gaps, place = "", list[Gap](), 0
    for known, group in groupby(columns, key=lambda one: one is not None):
        part = [*group]
        x, wide = place * width, len(part) * width
        if known:
            path += _surface([one or 0 for one in part], x, width, most or 0)
        else:
            since = course.since + place * every * MINUTE
            until = min(since + len(part) * every * MINUTE, course.until)
            why = series.missing or "unknown"
            words = f"{why} from {clock_time(since)[:5]} to {clock_time(until)[:5]}"
            fits = wide >= (WIDE if not series.missing else 0)
            gaps.append(Gap(round(x, 1), round(wide, 1), words, why if fits else ""))
        place += len(part)
    highest = "" if most is None else f"at most {most:,} a minute" if most else "none"
    lines = wrap(inert(series.label), LABEL, max_lines=LABEL_LINES, placeholder="…")
    return Row(series.name, series.label, tuple(lines), highest, path, tuple(gaps))


def _surface(counts: Sequence[int], x: float, width: float, most: int) -> str:
    """Return the columns from `x` on as one surface; equal ones beside each other are one."""
    path, place = f"M{x:.1f},{HEIGHT}", 0
    for count, group in groupby(counts):
        place += len([*group])
        height = max(LEAST, count * HEIGHT / most) if count else 0
        path += f"V{HEIGHT - height:.1f}H{x + place * width:.1f}"
    return f"{path}V{HEIGHT}Z"


def _marks(course: OrdersOverTime) -> Iterator[DrawnMark]:
    ends = [-APART] * LINES
    for number, mark in enumerate(course.marks, start=1):
        x = SCALE * (mark.at - course.since) / course.span
        free = [line for line, end in enumerate(ends) if x - end >= APART]
        line = free[0] if free else ends.index(min(ends))
        ends[line] = x
        yield DrawnMark(number, round(x, 1), line, mark)


def _slices(series: Sequence[Series], course: OrdersOverTime) -> Iterator[Slice]:
    minutes = course.span // MINUTE
    length = -(-minutes // TABLE_ROWS)
    for first in range(0, minutes, length):
        end = min(first + length, minutes)
        since, until = (clock_time(course.since + place * MINUTE)[:5] for place in (first, end))
        yield Slice(since, until, tuple(_number(one.counts[first:end]) for one in series))


def _number(counts: Sequence[int | None]) -> str:
    known = [one for one in counts if one is not None]
    if not known:
        return "unknown"
    unknown = len(counts) - len(known)
    return f"{sum(known):,}" + (f", and {unknown} min unknown" if unknown else "")
