"""Shows a run in progress: a live table on a terminal, otherwise a line for each change."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TypeAlias

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord
from roundsman_console.base.clock import now
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.text.states import STATE_STYLES, STEP_STYLES
from tools.demo.facts import AlertSeen, SeenRejection
from tools.demo.progress import (
    Snapshot,
    hanging_calls,
    is_settled,
    state_of,
    step_standing,
)
from tools.demo.scenario import STEPS, ExpectedEnd, SentOrder

REFRESHES = 4  # per second
WIDE = 120  # characters; a narrower terminal omits the column "What happens"
_STYLES = {str(state): style for state, style in STATE_STYLES.items()} | {
    ExpectedEnd.REJECTED: "magenta",
    ExpectedEnd.NOTHING_NEW: "green",
    ExpectedEnd.ACCEPTED: "green",
}


class PlainWatch:
    """Prints a line for each change, for logs and pipes."""

    def __init__(self, console: Console, sent: Sequence[SentOrder]) -> None:
        self._console = console
        self._sent = sent
        self._known: dict[tuple[str, str], str] = {}
        self._hanging = 0

    def show(self, seen: Snapshot) -> None:
        for one in self._sent:
            self._show_change(one, "", state_of(one, seen))
            task = seen.tasks.get(one.case.order_id)
            if task is not None and one.case.makes_a_task:
                for name in STEPS:
                    if name in task.steps:
                        self._show_change(one, name, step_standing(task.step(name)))
        if seen.hanging != self._hanging:
            self._hanging = seen.hanging
            self._line(hanging_calls(seen.hanging))

    def _show_change(self, one: SentOrder, step: str, standing: str) -> None:
        key = (one.case.event, step)
        if standing and self._known.get(key) != standing:
            self._known[key] = standing
            where = f"{one.case.order_id} ({one.case.event})" if not step else one.case.order_id
            self._line(f"{where}: {step} {standing}" if step else f"{where}: {standing}")

    def alert(self, alert: AlertSeen) -> None:
        self._line(f"alert: {alert.subject}: {alert.reason}. See: {alert.look}")

    def rejected(self, rejection: SeenRejection, event: str) -> None:
        self._line(f"rejected: {event}: {'; '.join(path for path, _ in rejection.problems)}")

    def _line(self, text: str) -> None:
        self._console.print(plain(text), soft_wrap=True)


class LiveWatch:
    """Shows a live table of tasks and steps above a progress bar; alerts and rejections scroll."""

    def __init__(self, live: Live, sent: Sequence[SentOrder]) -> None:
        self._live = live
        self._sent = sent
        self._bar = Progress(
            TextColumn("settled"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
        )
        self._settled = self._bar.add_task("settled", total=len(sent))

    def show(self, seen: Snapshot) -> None:
        done = sum(is_settled(one, seen) for one in self._sent)
        self._bar.update(self._settled, completed=done)
        wide = self._live.console.width >= WIDE
        below = [plain(hanging_calls(seen.hanging), "dim")] if seen.hanging else []
        self._live.update(Group(tasks_table(self._sent, seen, now(), wide=wide), self._bar, *below))

    def alert(self, alert: AlertSeen) -> None:
        self._live.console.print(plain("Alert  ", "bold red"), plain(alert.subject, "bold"), sep="")
        self._live.console.print(plain(f"       {alert.reason}"))
        if alert.look:
            self._live.console.print(plain(f"       {alert.look}", "cyan"))

    def rejected(self, rejection: SeenRejection, event: str) -> None:
        self._live.console.print(plain("Rejected  ", "bold magenta"), plain(event, "bold"), sep="")
        for path, problem in rejection.problems:
            self._live.console.print(
                plain(f"       {path}: {problem}"), overflow="ellipsis", no_wrap=True
            )


RunWatch: TypeAlias = PlainWatch | LiveWatch


@contextmanager
def watching(console: Console, sent: Sequence[SentOrder]) -> Iterator[RunWatch]:
    """Yield a watch for this console: a live table on a terminal, otherwise plain lines."""
    if not console.is_terminal:
        yield PlainWatch(console, sent)
        return
    with Live(console=console, refresh_per_second=REFRESHES) as live:
        yield LiveWatch(live, sent)


def tasks_table(sent: Sequence[SentOrder], seen: Snapshot, at: int, *, wide: bool) -> Table:
    """Return a table with a row for each message: its purpose, the task's state, and the steps.

    `at` is the current time in epoch ms.
    """
    table = Table(box=None, pad_edge=False)
    steps = [name.replace("_", " ") for name in STEPS]
    for heading in ("Order", *(("What happens",) if wide else ()), "Task", *steps):
        table.add_column(heading, overflow="fold")
    for one in sent:
        task = seen.tasks.get(one.case.order_id) if one.case.makes_a_task else None
        state = state_of(one, seen)
        shows = (plain(one.case.shows, "dim"),) if wide else ()
        cells = [_cell(task.step(name), at) if task else ("", "") for name in STEPS]
        table.add_row(
            plain(one.case.order_id),
            *shows,
            plain(state, _STYLES.get(state, "")),
            *(plain(text, style) for text, style in cells),
        )
    return table


def _cell(record: StepRecord, at: int) -> tuple[str, str]:
    """Return the text of a step's cell and its style, as in `Processing 27 s`."""
    if record.started_at is None and record.process_state is ProcessState.PENDING:
        return "", ""
    text: str = record.process_state
    if record.process_state is ProcessState.PROCESSING and record.until is not None:
        text += f" {max(0, record.until - at) // SECOND} s"
    if record.failure_count:
        text += f" ({record.failure_count} failed)"
    return text, STEP_STYLES.get(record.process_state, "yellow")
