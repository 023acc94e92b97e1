"""`roundsman show`: one order, its task, its steps, and what has been recorded of it."""

import json
from collections.abc import Callable, Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from roundsman.events import HistoryRow
from roundsman.plan import Plan
from roundsman.states import ProcessState
from roundsman.task import StepRecord, Task
from roundsman.values import clock_time, iso
from roundsman_console.finding import find_task
from roundsman_console.inert import plain
from roundsman_console.sentences import sentences
from roundsman_console.stack import StackOption, find_stack
from roundsman_console.task_view import (
    STATE_STYLES,
    STEP_STYLES,
    in_state,
    nothing_undoes,
    step_names,
    task_document,
)


def show_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show where an order stands, and how it came there. Example: roundsman show ord-1001"""
    with sentences():
        found = find_stack(stack)
        task, plan = find_task(found, order)
        history = found.tasks.history(task.task_id)
        if as_json:
            print(json.dumps(task_document(task, plan, history)))
        else:
            _print(task, plan, history)


def _print(task: Task, plan: Plan | None, history: Sequence[HistoryRow]) -> None:
    console = Console(highlight=False)
    console.print(plain(f"{task.task_id}  {task.workflow}  "), end="")
    console.print(plain(task.state, STATE_STYLES.get(task.state, "")))
    console.print(plain(f"submitted {iso(task.created_at)}, complete by {iso(task.complete_by)}"))
    if task.ending:
        console.print(plain(task.ending.why, "red"))
    if plan is None:
        console.print(plain(f"Its plan {task.plan} is not stored.", "red"))
    for line in _undo_lines(task, plan):
        console.print(line)
    console.print(steps_table(task, plan))
    if history:
        console.print()
        console.print(history_table(history))


def _undo_lines(task: Task, plan: Plan | None) -> list[Text]:
    """What has been undone, and what stands."""
    found = (
        ("Undone", in_state(task, plan, ProcessState.UNDONE), ""),
        ("Undo failed", in_state(task, plan, ProcessState.UNDO_ERROR), "red"),
        ("Nothing undoes", nothing_undoes(task, plan), "yellow"),
    )
    return [plain(f"{what}: {', '.join(names)}", style) for what, names, style in found if names]


def history_table(history: Sequence[HistoryRow]) -> Table:
    """Attempts that failed, recoveries, undos, and what people asked; newest last."""
    table = Table(box=None, pad_edge=False)
    people = any(row.by for row in history)
    table.add_column("At", no_wrap=True)
    table.add_column("What", no_wrap=True)
    if people:
        table.add_column("By", overflow="fold")
    table.add_column("Why", overflow="fold")
    for row in history:
        by = [plain(row.by or "")] if people else []
        table.add_row(
            plain(_second(row.at)), plain(row.kind, _kind_style(row)), *by, plain(row.reason)
        )
    return table


def _second(instant: int) -> str:
    return f"{iso(instant)[:19]}Z"


def _kind_style(row: HistoryRow) -> str:
    if row.kind in ("failed", "undo failed", "refused"):
        return "red"
    return "bold" if row.by else ""


def steps_table(task: Task, plan: Plan | None) -> Table:
    """The steps, one a row; what no step has is left out."""
    table = Table(box=None, pad_edge=False)
    names = step_names(task, plan)
    extra = [
        (heading, cell)
        for heading, cell in _SOMETIMES
        if any(cell(task.step(name)) for name in names)
    ]
    for heading in ("Step", "State", "Failures", *(heading for heading, _ in extra)):
        table.add_column(heading, overflow="fold", no_wrap=heading in _KEPT_WHOLE)
    for name in names:
        record = task.step(name)
        table.add_row(
            plain(name),
            plain(record.process_state, STEP_STYLES.get(record.process_state, "")),
            plain(record.failure_count),
            *(plain(cell(record)) for _, cell in extra),
        )
    return table


def _lock(record: StepRecord) -> str:
    return record.locked_by or "" if record.under_way else ""


def _complete_by(record: StepRecord) -> str:
    """When it must be done or started; of what is over, that was long ago."""
    return _time(record.complete_by) if record.process_state in _NOT_OVER else ""


def _time(instant: int | None) -> str:
    return "" if instant is None else clock_time(instant)


_NOT_OVER = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)
_KEPT_WHOLE = ("Locked by", "Not before", "Complete by")
_SOMETIMES: Sequence[tuple[str, Callable[[StepRecord], str]]] = (
    ("Locked by", _lock),
    ("Not before", lambda record: _time(record.not_before)),
    ("Complete by", _complete_by),
    ("Round", lambda record: "" if record.round == 1 else str(record.round)),
    (
        "Last error",
        lambda record: f"{record.error.type}: {record.error.message}" if record.error else "",
    ),
)
