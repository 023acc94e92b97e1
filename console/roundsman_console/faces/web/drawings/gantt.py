"""The times of an order's steps as bars on a broken axis: attempts, undos, waits, holds. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from roundsman.model.events import HistoryRow
from roundsman.model.instants import SECOND, format_duration
from roundsman.model.task import Task, fan_out_of, item_place
from roundsman_console.faces.web.drawings.axis import SCALE, Axis, axis_of
from roundsman_console.faces.web.drawings.graph import LEAST_ADVANCED
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.step_times import (
    FAILURES,
    RowsByStep,
    StepTime,
    TimeKind,
    open_times,
    step_times,
)
from roundsman_console.facts.order.timeline import moment

MOST_LINES = 16
"""With more lines than this, the steps that were done at their first attempt share lines."""
MOST_DRAWN = 40
"""The number of lines that are drawn of an order; those of steps with trouble come first."""
MOST_ITEMS = 8
"""So many items of a fan-out have a line of their own, beside that of the fan-out."""
LABEL = 26
"""The number of characters that fit beside the bars."""
NARROWEST = 3.0
"""The width of the shortest bar."""
_NOT_MARKED = ("undo", "undone", "added")
"""The kinds of rows that have no mark: the bars of undos and of added steps show them."""
_UNEVENTFUL = {
    (("attempt", "done"),): "done",
    (("attempt", "goes on"),): "under way",
    (("attempt", "not known"), ("undo", "done")): "undone",
}
"""What steps that share a line went through, and their kind in a word."""
THE_ORDER = "the order"
"""The name of the first line."""


@dataclass(frozen=True, slots=True)
class TimeBar:
    """A time in the life of a step."""

    kind: str
    """`attempt`, `undo`, `wait` or `held`."""
    end: str
    """`done`, `failed`, `goes on` or `not known`."""
    x: float
    width: float
    exact: bool
    """Whether its begin and its end are known; otherwise it was within this time."""
    words: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment in the life of a step: a failure, a recovery or a command."""

    kind: str
    x: float
    words: str

    @property
    def failure(self) -> bool:
        """Whether an attempt failed at this moment."""
        return self.kind in FAILURES


@dataclass(frozen=True, slots=True)
class StepBars:
    """The line of the order, of one step, of all items of a fan-out, or of several steps."""

    step: str
    """What the line is of: a step, `the order`, or `17 done`."""
    state: str
    """The state of the step, or of the order; of several, that of the least advanced."""
    bars: tuple[TimeBar, ...]
    marks: tuple[Mark, ...]
    stacked: bool = False
    """Whether its bars are of several steps, and so below each other."""

    @property
    def label(self) -> str:
        """Its name beside the bars; one that is too long lacks its middle."""
        name = self.step
        return name if len(name) <= LABEL else f"{name[: LABEL - 12]}…{name[-11:]}"


@dataclass(frozen=True, slots=True)
class TimeRow:
    """One time of one step in words."""

    step: str
    what: str
    time: StepTime
    day: int
    """An instant (epoch ms) of the day whose date is left out."""
    close: Collection[int] = ()
    """The instants (epoch ms) that are less than a second from another one of the table."""

    @property
    def since(self) -> str:
        """When it began, in UTC; to the millisecond if that is less than a second from another."""
        return f"{'' if self.time.since_known else 'after '}{self._moment(self.time.since)}"

    @property
    def until(self) -> str:
        """When it ended, in UTC."""
        if self.time.end == "goes on":
            return "goes on"
        return f"{'' if self.time.until_known else 'before '}{self._moment(self.time.until)}"

    def _moment(self, instant: int) -> str:
        return moment(instant, self.day, exact=instant in self.close)

    @property
    def lasted(self) -> str:
        """How long it lasted."""
        exact = self.time.since_known and self.time.until_known
        return f"{'' if exact else 'at most '}{format_duration(self.time.until - self.time.since)}"


@dataclass(frozen=True, slots=True)
class Bars:
    """The lines, and the times between which they are drawn (epoch ms)."""

    lines: tuple[StepBars, ...]
    start: int
    end: int
    axis: Axis
    rows: tuple[TimeRow, ...]
    """All times of all steps in words."""
    not_begun: tuple[str, ...]
    """The steps that have no line, because nothing of them has begun."""
    inexact: bool
    """Whether a begin or an end is not known."""
    not_drawn: int = 0
    """The number of further lines, which are not drawn."""


def bars(facts: OrderFacts, trouble: Sequence[str] = ()) -> Bars:
    """Return the times of the task's steps until now, or until it ended.

    `trouble` are the steps and items that have lines of their own, the worst first.
    """
    task, names, history = facts.task, facts.names, facts.history
    end = max(task.ended_at if task.ended_at is not None else facts.at, task.created_at + 1)
    rows = RowsByStep(history)
    times = {one.name: step_times(one, end, rows) for one in facts.steps}
    opened = open_times(facts, end)
    every = [*opened, *(one for found in times.values() for one in found)]
    axis = axis_of(
        task.created_at,
        end,
        [*(at for one in every for at in (one.since, one.until)), *(row.at for row in history)],
        [span for found in times.values() for span in _busy(found)],
    )
    marks = _marks(history, axis)
    order = StepBars(
        THE_ORDER,
        task.state.value,
        tuple(_bar(one, axis, THE_ORDER, _words_of_order(one)) for one in opened),
        tuple(marks.get(None, ())),
    )
    begun = [name for name in names if times[name] or name in marks]
    named = [*_lines(begun, times, marks, trouble)]
    lines = [
        _line(label, lined, task, times, marks, axis) for label, lined in _drawn_of(named, trouble)
    ]
    close = _close(
        [at for found in times.values() for one in found for at in (one.since, one.until)]
    )
    in_words = tuple(
        TimeRow(name, what_words(one), one, task.created_at, close)
        for name in names
        for one in times[name]
    )
    inexact = any(not (one.since_known and one.until_known) for one in every)
    lined_up = {fan_out_of(name) for name in begun}
    idle = tuple(name for name in names if fan_out_of(name) not in lined_up)
    left_out = len(named) - len(lines)
    return Bars((order, *lines), task.created_at, end, axis, in_words, idle, inexact, left_out)


def _drawn_of(
    lines: Sequence[tuple[str, list[str]]], trouble: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """Return at most MOST_DRAWN of the lines, in their order; those with trouble are among them."""
    troubled = {*trouble}
    places = sorted(
        range(len(lines)), key=lambda place: (troubled.isdisjoint(lines[place][1]), place)
    )
    return [lines[place] for place in sorted(places[:MOST_DRAWN])]


def _close(instants: Iterable[int]) -> frozenset[int]:
    """Return the instants (epoch ms) that are less than a second from the next or the last one."""
    near = (pair for pair in pairwise(sorted({*instants})) if pair[1] - pair[0] < SECOND)
    return frozenset(chain.from_iterable(near))


def _busy(times: Sequence[StepTime]) -> Iterator[tuple[int, int]]:
    """When an attempt of a step went on. One that began at some time of a hold does not count."""
    held = {one.until for one in times if one.kind == "held" and not one.until_known}
    for one in times:
        if one.kind in ("attempt", "undo") and (one.since_known or one.until not in held):
            yield one.since, one.until


def what_words(time: StepTime) -> str:
    """Return what a time is and how it ended: `attempt 2, failed`."""
    number = f" {time.attempt}" if time.attempt and time.kind in ("attempt", "undo") else ""
    round_ = f" of round {time.round}" if time.round and time.round > 1 else ""
    end = {
        "done": "" if time.kind in ("wait", "held") else ", done",
        "failed": ", failed",
        "goes on": ", goes on",
        "not known": ", its end is not known",
    }
    return f"{time.kind}{number}{round_}{end[time.end]}"


def _words_of_order(time: StepTime) -> str:
    began = f"open again, {time.why}" if time.why else "open"
    return f"{began}, {format_duration(time.until - time.since)}"


def _marks(history: Sequence[HistoryRow], axis: Axis) -> dict[str | None, list[Mark]]:
    found: dict[str | None, list[Mark]] = {}
    for row in history:
        if row.kind in _NOT_MARKED:
            continue
        mark = Mark(row.kind, axis.place(row.at), f"{moment(row.at, axis.start)} {row.reason}")
        found.setdefault(row.step, []).append(mark)
    return found


def _lines(
    begun: Sequence[str],
    times: Mapping[str, Sequence[StepTime]],
    marks: Mapping[str | None, Sequence[Mark]],
    trouble: Sequence[str],
) -> Iterator[tuple[str, list[str]]]:
    """What each line is of: its label and its steps. A fan-out is one line, before its items."""
    by_step: dict[str, list[str]] = {}
    for name in begun:
        by_step.setdefault(fan_out_of(name), []).append(name)
    items = [name for name in trouble if item_place(name) is not None][:MOST_ITEMS]
    shared: list[str] = []
    kind: str | None = None
    for step, names in by_step.items():
        went = tuple((one.kind, one.end) for one in times.get(step, ()))
        eventful = names != [step] or step in trouble or step in marks
        now = None if eventful or len(by_step) <= MOST_LINES else _UNEVENTFUL.get(went)
        if now != kind or now is None:
            yield from _shared(shared, kind)
            shared, kind = [], now
        if now is not None:
            shared.append(step)
            continue
        own = [name for name in names if name != step] or names
        yield step, own
        yield from ((name, [name]) for name in own if name in items and name != step)
    yield from _shared(shared, kind)


def _shared(steps: list[str], kind: str | None) -> Iterator[tuple[str, list[str]]]:
    if steps:
        yield steps[0] if len(steps) == 1 else f"{len(steps)} {kind}", steps


def _line(
    label: str,
    names: Sequence[str],
    task: Task,
    times: Mapping[str, Sequence[StepTime]],
    marks: Mapping[str | None, Sequence[Mark]],
    axis: Axis,
) -> StepBars:
    states = (task.step(name).process_state.value for name in names)
    state = min(states, key=LEAST_ADVANCED.index)
    drawn = (
        [_bar(one, axis, names[0], what_words(one)) for one in times[names[0]]]
        if len(names) == 1
        else _together(names, times, axis, label)
    )
    marked = [mark for name in names for mark in marks.get(name, ())]
    return StepBars(label, state, tuple(drawn), tuple(marked), len(names) > 1)


def _together(
    names: Sequence[str], times: Mapping[str, Sequence[StepTime]], axis: Axis, label: str
) -> list[TimeBar]:
    """One bar of each kind and end, from the first to the last of these steps or items."""
    kinds: dict[tuple[TimeKind, str], dict[str, list[StepTime]]] = {}
    for name in names:
        for one in times[name]:
            kinds.setdefault((one.kind, one.end), {}).setdefault(name, []).append(one)
    found = []
    what = "items" if item_place(names[0]) else "steps"
    for (kind, end), by_name in kinds.items():
        every = [one for group in by_name.values() for one in group]
        since, until = min(one.since for one in every), max(one.until for one in every)
        many = f"{len(by_name)} of {len(names)} {what}"
        words = f"{label}: {kind}, {end}, {many}, {format_duration(until - since)}"
        exact = all(one.since_known and one.until_known for one in every)
        found.append(_drawn(kind, end, since, until, axis, exact=exact, words=words))
    return found


def _bar(time: StepTime, axis: Axis, name: str, what: str) -> TimeBar:
    row = TimeRow(name, what, time, axis.start)
    why = f": {time.why}" if time.why else ""
    words = f"{name}: {what}, from {row.since} to {row.until}, {row.lasted}{why}"
    exact = time.since_known and time.until_known
    return _drawn(time.kind, time.end, time.since, time.until, axis, exact=exact, words=words)


def _drawn(
    kind: str, end: str, since: int, until: int, axis: Axis, *, exact: bool, words: str
) -> TimeBar:
    x = axis.place(since)
    width = max(axis.place(until) - x, NARROWEST)
    return TimeBar(kind, end, min(x, SCALE - NARROWEST), width, exact, words)
