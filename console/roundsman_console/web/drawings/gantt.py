"""The times of an order's steps as bars: attempts, waits, holds and failures. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.model.events import HistoryRow
from roundsman.model.instants import format_duration
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.order.view import step_names
from roundsman_console.web.drawings.graph import LEAST_ADVANCED

TICKS = 4
"""The number of parts of the axis."""
FAILURES = ("failed", "undo failed")
"""The kinds of history rows that are drawn as a failure."""
SCALE = 1000
"""The width of the drawing. A bar's `x` and `width` are shares of it."""


@dataclass(frozen=True, slots=True)
class TimeBar:
    """A time in the life of a step."""

    kind: str
    """`attempt`, `undo`, `wait` or `held`."""
    x: float
    width: float
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
    """The line of one step, or of all items of a fan-out."""

    step: str
    state: str
    """The state of the step; of a fan-out, the state of the item that is the least advanced."""
    bars: tuple[TimeBar, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class Bars:
    """The lines of all steps, and the times between which they are drawn (epoch ms)."""

    steps: tuple[StepBars, ...]
    start: int
    end: int
    ticks: tuple[tuple[float, str], ...]
    """The lines of the axis: where, and the time since `start` in words."""


def bars(task: Task, plan: Plan | None, history: Sequence[HistoryRow], at: int) -> Bars:
    """Return the times of the task's steps until `at` (epoch ms), or until it ended."""
    end = max(task.ended_at if task.ended_at is not None else at, task.created_at + 1)
    scale = SCALE / (end - task.created_at)

    def place(instant: int) -> float:
        return min(max((instant - task.created_at) * scale, 0), SCALE)

    lines: dict[str, list[str]] = {}
    for name in step_names(task, plan):
        lines.setdefault(step_of(name), []).append(name)
    found = []
    for line, names in lines.items():
        items = [name for name in names if name != line] or names
        times = tuple(
            TimeBar(kind, place(start), max(place(stop) - place(start), 2), words)
            for kind, start, stop, words in _together(task, items, end)
        )
        marks = tuple(
            Mark(row.kind, place(row.at), row.reason) for row in history if row.step in names
        )
        states = (task.step(name).process_state.value for name in items)
        found.append(StepBars(line, min(states, key=LEAST_ADVANCED.index), times, marks))
    return Bars(tuple(found), task.created_at, end, _ticks(end - task.created_at))


def _ticks(length: int) -> tuple[tuple[float, str], ...]:
    """Four lines at equal distances for a length in ms."""
    return tuple(
        (SCALE * part / TICKS, format_duration(round(length * part / TICKS)))
        for part in range(TICKS + 1)
    )


def _together(task: Task, names: Sequence[str], end: int) -> Iterator[tuple[str, int, int, str]]:
    """The bars of a step; of a fan-out, one bar of each kind from the first to the last item."""
    if len(names) == 1:
        yield from _times(task.step(names[0]), end)
        return
    kinds: dict[str, list[tuple[int, int]]] = {}
    for name in names:
        for kind, start, stop, _ in _times(task.step(name), end):
            kinds.setdefault(kind, []).append((start, stop))
    for kind, found in kinds.items():
        start, stop = min(one for one, _ in found), max(one for _, one in found)
        items = f"{len(found)} of {len(names)} items"
        yield kind, start, stop, f"{kind}, {items}, {format_duration(stop - start)}"


def _times(record: StepRecord, end: int) -> Iterator[tuple[str, int, int, str]]:
    """The bars of a step: kind, start, end (epoch ms) and words."""
    if record.started_at is not None:
        stop = record.finished_at if record.finished_at is not None else end
        if not record.under_way and record.finished_at is None:
            stop = record.started_at
        kind = "undo" if record.process_state.value.startswith("Und") else "attempt"
        yield kind, record.started_at, stop, f"{kind}, {format_duration(stop - record.started_at)}"
    if record.held_since is not None:
        why = record.error.message if record.error else "its agent is on hold"
        yield "held", record.held_since, end, f"held: {why}"
    elif record.not_before is not None and not record.under_way:
        why = f"{record.error.type}: {record.error.message}" if record.error else "not started yet"
        start = record.started_at if record.started_at is not None else record.not_before
        yield "wait", min(start, end), end, f"waits for its next attempt ({why})"
