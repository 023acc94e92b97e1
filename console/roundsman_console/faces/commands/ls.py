"""`roundsman ls`: lists the tasks that match a filter, those that need a person first.

The command reads indexes and never scans a table.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from roundsman.model.holds import on_orders
from roundsman.model.instants import SECOND, format_duration
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.counted import counted
from roundsman_console.base.result import document_of, filled_from
from roundsman_console.base.sanitize import inert
from roundsman_console.base.typed_inputs import read_duration
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.filter_options import AfterCursor, with_filters
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.agent import order_hold_lines
from roundsman_console.faces.cli.text.states import STATE_STYLES
from roundsman_console.facts.order.documents import (
    TaskPageDocument,
    UnreadableTaskDocument,
    order_summary,
)
from roundsman_console.facts.order.lookup import shown_tasks
from roundsman_console.facts.orders.listing import Page, find, removed_words
from roundsman_console.facts.orders.reasons import reasons_of
from roundsman_console.facts.orders.selection import Selection

LONGEST_PAGE = 10_000  # tasks; use `roundsman export` for more
LONGEST_LOOK = 600  # seconds


@with_filters()
def ls_command(
    selection: Selection,
    limit: Annotated[
        int, typer.Option(min=1, max=LONGEST_PAGE, help="Maximum number of tasks to show.")
    ] = 50,
    newest_first: Annotated[
        bool, typer.Option("--newest-first", help="Show those first that ended last.")
    ] = False,
    within: Annotated[
        str, typer.Option(help="How long to look for them: 1s, 1m.", metavar="TIME")
    ] = "1s",
    look: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="Maximum number of tasks to examine."),
    ] = None,
    after: AfterCursor = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, those that need a person first. Example: roundsman ls --state Archived"""
    with sentences():
        seconds = read_duration(within, most=LONGEST_LOOK)
        found = find_stack(stack)
        page = find(
            found,
            selection,
            after=after,
            limit=limit,
            budget=look,
            within=seconds,
            newest_first=newest_first,
        )
        page = replace(page, tasks=shown_tasks(found, page.tasks))
        if as_json:
            print(json.dumps(document_of(page_document(page))))
        else:
            say(*order_hold_lines(on_orders(found.holds.holds())))
            _print(found, page, limit)


def page_document(page: Page) -> TaskPageDocument:
    """Return what --json says of a page of tasks."""
    return filled_from(
        page,
        TaskPageDocument,
        tasks=[*map(order_summary, page.tasks)],
        more=not page.whole,
        unreadable=[
            UnreadableTaskDocument(order_id=order, problem=problem)
            for order, problem in page.unreadable.items()
        ],
    )


def _print(stack: DeployedStack, page: Page, limit: int) -> None:
    console = results()
    if page.tasks:
        console.print(_table(page.tasks, reasons_of(stack, page.tasks)))
    elif page.whole and not page.removed:
        console.print("No tasks.")
    if page.removed:
        console.print(inert(removed_words(page.removed)), markup=False)
    for order, problem in page.unreadable.items():
        console.print(plain(f"{order} cannot be read: {problem}", "red"))
    if sentence := _going_on(page, limit):
        # Not wrapped at the width of the terminal, so that the whole cursor can be copied.
        console.print(inert(sentence), markup=False, soft_wrap=True)


def _going_on(page: Page, limit: int) -> str:
    """Return how to see more; empty if there is no more."""
    if page.whole:
        return ""
    going_on = f"continue with --after {page.cursor}"
    if len(page.tasks) == limit:
        return f"More than {limit} exist; raise --limit, or {going_on}"
    return (
        f"Looked at {counted(page.looked_at, 'task')}, found {len(page.tasks)}; raise --within or "
        f"--look, or {going_on}"
    )


def _table(tasks: Sequence[Task], reasons: Mapping[str, str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Order", "Workflow", "State", "Age", "Ended", "Reason"):
        table.add_column(heading, overflow="fold")
    at = now()
    for task in tasks:
        table.add_row(
            plain(task.task_id),
            plain(task.workflow),
            plain(task.state, STATE_STYLES.get(task.state, "")),
            plain(_age(task.created_at, at)),
            plain("" if task.ended_at is None else _ago(task.ended_at, at)),
            plain(reasons[task.task_id]),
        )
    return table


def _age(instant: int, at: int) -> str:
    return format_duration(max(0, at - instant))


def _ago(instant: int, at: int) -> str:
    return f"{_age(instant, at)} ago" if at - instant >= SECOND else "just now"
