"""`roundsman show`: shows the task of an order, its steps and its history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, TypeAlias

import typer
from rich.table import Table
from rich.text import Text

from roundsman.command_line import REASON, command_line
from roundsman.model.instants import iso, second
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task, item_place, step_of
from roundsman_console.base.counted import counted
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results, short_instant
from roundsman_console.faces.cli.text.states import STEP_STYLES, happenings_table, task_line
from roundsman_console.facts.hold.view import release_command
from roundsman_console.facts.order.lookup import find_shown
from roundsman_console.facts.order.next_command import missing_result, next_command
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts
from roundsman_console.facts.order.step_text import (
    MOST_ADDED_NAMES,
    agent_words,
    is_added,
    last_error,
    span,
    step_facts,
    step_state,
)
from roundsman_console.facts.order.timeline import of_row


def show_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show masked results and corrections too.")
    ] = False,
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the state of an order, its steps and its history. Example: roundsman show ord-1001"""
    with sentences():
        found = find_stack(stack)
        facts = find_shown(found, order, reveal=reveal)
        trace = found.trace_of(facts.task)
        if as_json:
            from roundsman_console.facts.order.documents import order_document  # of --json alone

            print(hinted_json(order_document(facts, trace)))
        else:
            _print(facts, trace)


def _print(facts: OrderFacts, trace: str | None) -> None:
    console, task = results(), facts.task
    for line in _head(facts, trace):
        console.print(line)
    console.print(steps_table(facts))
    if facts.history:
        console.print()
        if len(facts.history) > _MOST_HISTORY:
            earlier = counted(len(facts.history) - _MOST_HISTORY, "earlier row")
            console.print(hint(f"{earlier}: {command_line('timeline', task.task_id)}"))
        console.print(happenings_table(map(of_row, facts.history[-_MOST_HISTORY:])))
    for command in next_lines(task):
        console.print(hint(command), markup=False, soft_wrap=True)


def _head(facts: OrderFacts, trace: str | None) -> Iterator[Text]:
    """Yield the lines above the table of steps."""
    task = facts.task
    yield task_line(task)
    yield plain(f"submitted {iso(task.created_at)}, complete by {iso(task.complete_by)}")
    if task.deadline is not None:
        yield plain(f"deadline {iso(task.deadline)}: no step is performed after it")
    if facts.turn is not None:
        yield plain(f"waits for {facts.turn.words}")
    if task.ending:
        yield plain(task.ending.why, "red")
    if facts.plan is None:
        yield plain(f"Its plan {task.plan} is not stored.", "red")
    if task.failure is not None:
        yield plain(f"Failure group: {task.failure}")
    yield from undo_lines(facts)
    if left_out := task.left_out():
        yield plain(f"Left out: {span(left_out)}", "yellow")
    yield from map(plain, step_facts(facts))
    for hold in facts.holds:
        if hold.holds_order(task.workflow, task.task_id):
            yield plain(f"Let go on: {hint(release_command(hold))}")
    if trace:
        yield plain(f"Trace: {trace}")


def next_lines(task: Task) -> list[str]:
    """Return the next commands, each with what it does if that is not evident."""
    command = next_command(task)
    if command is None:
        return []
    if missing_result(task) is not None:
        return [f"Next, to give the missing result: {command}"]
    if task.state is not TaskState.ARCHIVED:
        return [f"Next: {command}"]
    if task.ending is not None and task.ending.undo:
        return [f"Next, to continue the undo: {command}"]
    options = ("--set", "PATH=VALUE", "--dry-run", *REASON)
    correct = hint(command_line("resubmit", task.task_id, options=options))
    return [
        f"Next, to try the failed steps again: {command}",
        f"With a corrected input, shown first: {correct}",
    ]


def undo_lines(facts: OrderFacts) -> list[Text]:
    """Return the state of the undo by step: may stand, undone and when, failed, cannot be undone.

    Empty for a task without an ending: one that goes on or has completed.
    """
    if facts.task.ending is None:
        return []
    effects = facts.effects
    found = [
        ("May stand", effects.may_stand, ""),
        *((when, names, "") for when, names in _undone(facts.task, effects.undone)),
        ("Undo failed", effects.undo_failed, "red"),
        ("Cannot be undone", effects.without_compensation, "yellow"),
    ]
    return [plain(f"{what}: {span(names)}", style) for what, names, style in found if names]


def _undone(task: Task, undone: list[str]) -> list[tuple[str, list[str]]]:
    """Return the undone steps, grouped by the second of their undo: label and step names.

    More than _MOST_SECONDS such groups are one.
    """
    by_second: dict[str, list[str]] = {}
    for name in undone:
        finished = task.step(name).finished_at
        by_second.setdefault("" if finished is None else second(finished), []).append(name)
    if len(by_second) > _MOST_SECONDS:
        first, *_, last = sorted(at for at in by_second if at)
        return [(f"Undone {first} to {last}", undone)]
    return [(f"Undone {at}".strip(), names) for at, names in sorted(by_second.items())]


def steps_table(facts: OrderFacts) -> Table:
    """Return the steps as a table, one row per step.

    Columns without a value are left out. Equal items of a fan-out share a row, and so do many equal
    steps of one kind that were added (`_alike`).
    """
    table = Table(box=None, pad_edge=False)
    rows = facts.steps
    extra = [(heading, cell) for heading, cell in _SOMETIMES if any(cell(row) for row in rows)]
    for heading in ("Step", "State", "Failures", *(heading for heading, _ in extra)):
        table.add_column(heading, overflow="fold", no_wrap=heading in _KEPT_WHOLE)
    for alike in _alike(rows):
        record = alike[0].record
        table.add_row(
            plain(span([row.name for row in alike])),
            plain(step_state(facts.task, record), STEP_STYLES.get(record.process_state, "")),
            plain(_failures(alike[0])),
            *(plain(_together(heading, cell, alike)) for heading, cell in extra),
        )
    return table


_Cell: TypeAlias = Callable[[StepFacts], str]


def _alike(rows: Sequence[StepFacts]) -> list[list[StepFacts]]:
    """Group the rows of a fan-out's items that differ only in locks and times.

    The same holds for added steps of one kind, which may differ in their adders, too. A group has
    at least _MANY items, or more added steps than `span` names; each other row is a list of its
    own.
    """
    found: dict[object, list[StepFacts]] = {}
    for row in rows:
        part = item_place(row.name) is not None or is_added(row.name)
        shown = [cell(row) for heading, cell in _SOMETIMES if heading not in _MAY_DIFFER]
        like = (row.record.situation_name, row.record.failure_count, *shown)
        found.setdefault((step_of(row.name), like) if part else row.name, []).append(row)
    return [
        part
        for alike in found.values()
        for part in ([alike] if len(alike) >= _least(alike[0]) else [[row] for row in alike])
    ]


def _least(row: StepFacts) -> int:
    """How many rows like this one share a row of the table."""
    return MOST_ADDED_NAMES + 1 if is_added(row.name) else _MANY


def _together(heading: str, cell: _Cell, rows: Sequence[StepFacts]) -> str:
    """Return one cell for several steps: the common value, a range, or the number of locks."""
    instant = _INSTANTS.get(heading)
    ordered = sorted(rows, key=lambda row: instant(row) or 0) if instant else rows
    texts = list(dict.fromkeys(text for text in map(cell, ordered) if text))
    if len(texts) < 2:
        return "".join(texts)
    return f"{len(texts)} locks" if heading == "Locked by" else f"{texts[0]} - {texts[-1]}"


def _failures(row: StepFacts) -> str:
    """Return the number of failures, with the maximum number of attempts if it is not 0.

    `for good` for a step that was not retried: its agent refused it, or it was too late.
    """
    count = row.record.failure_count
    over = row.record.process_state in (ProcessState.ERROR, ProcessState.UNDO_ERROR)
    if over and not count and row.record.error is not None:
        return "for good"
    most = row.most_attempts
    return f"{count} of {most}" if count and most else str(count)


def _time(instant_of: Callable[[StepFacts], int | None]) -> _Cell:
    """Return the cell of a column of instants."""

    def cell(row: StepFacts) -> str:
        instant = instant_of(row)
        return "" if instant is None else short_instant(instant, row.order.at)

    return cell


_MANY = 3
_MOST_HISTORY = 100
_MOST_SECONDS = 8
_INSTANTS: Mapping[str, Callable[[StepFacts], int | None]] = {
    "Not before": lambda row: row.record.not_before,
    "Until": lambda row: row.record.until,
}
_KEPT_WHOLE = ("Locked by", *_INSTANTS)
_ADDED_BY = "Added by"
_MAY_DIFFER = (*_KEPT_WHOLE, _ADDED_BY)
_SOMETIMES: Sequence[tuple[str, _Cell]] = (
    ("Agent", lambda row: agent_words(row.record, row.step)),
    ("Locked by", lambda row: row.record.locked_by or "" if row.record.under_way else ""),
    *((heading, _time(instant_of)) for heading, instant_of in _INSTANTS.items()),
    (_ADDED_BY, lambda row: row.step.added_by or "" if row.step else ""),
    ("Round", lambda row: "" if row.record.round == 1 else str(row.record.round)),
    ("Last error", lambda row: last_error(row.record)),
)
