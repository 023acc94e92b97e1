"""`roundsman ls`: lists the tasks that match a filter, those that need a person first.

The command reads indexes and never scans a table.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer
from rich.table import Table

from roundsman.model.holds import on_orders
from roundsman.model.instants import format_duration, iso
from roundsman.model.task import Task
from roundsman_console.agent.text import order_hold_lines
from roundsman_console.cells import plain
from roundsman_console.cli.options import AsJson
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import find_stack
from roundsman_console.cli_errors import sentences
from roundsman_console.clock import now
from roundsman_console.order.lookup import shown_tasks
from roundsman_console.order.states_text import STATE_STYLES
from roundsman_console.order.view import erased_words, left_out_words, page_document
from roundsman_console.orders.filter_options import AfterCursor, with_filters
from roundsman_console.orders.selection import BUDGET, Page, Selection, find
from roundsman_console.sanitize import inert
from roundsman_console.terminal import results, say

LONGEST_PAGE = 10_000  # tasks; use `roundsman export` for more


@with_filters()
def ls_command(
    selection: Selection,
    limit: Annotated[
        int, typer.Option(min=1, max=LONGEST_PAGE, help="Maximum number of tasks to show.")
    ] = 50,
    look: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Maximum number of tasks to examine.")
    ] = BUDGET,
    after: AfterCursor = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List tasks, those that need a person first. Example: roundsman ls --state Archived"""
    with sentences():
        budget = max(look, limit) if selection.everything else look
        found = find_stack(stack)
        page = find(found, selection, after=after, limit=limit, budget=budget)
        page = replace(page, tasks=shown_tasks(found, page.tasks))
        if as_json:
            print(json.dumps(page_document(page)))
        else:
            say(*order_hold_lines(on_orders(found.holds.holds())))
            _print(page, limit)


def _print(page: Page, limit: int) -> None:
    console = results()
    if page.tasks:
        console.print(_table(page.tasks))
    elif page.whole:
        console.print("No tasks.")
    for order, problem in page.unreadable.items():
        console.print(plain(f"{order} cannot be read: {problem}", "red"))
    if page.whole:
        return
    # Not wrapped at the width of the terminal, so that the whole cursor can be copied.
    going_on = f"continue with --after {page.cursor}"
    if len(page.tasks) == limit:
        sentence = f"More than {limit} exist; raise --limit, or {going_on}"
    else:
        sentence = f"Only {page.looked_at} tasks were examined; raise --look, or {going_on}"
    console.print(inert(sentence), markup=False, soft_wrap=True)


def _table(tasks: Sequence[Task]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Order", "Workflow", "State", "Age", "Reason"):
        table.add_column(heading, overflow="fold")
    at = now()
    for task in tasks:
        table.add_row(
            plain(task.task_id),
            plain(task.workflow),
            plain(task.state, STATE_STYLES.get(task.state, "")),
            plain(format_duration(max(0, at - task.created_at))),
            plain(list_reason(task)),
        )
    return table


def list_reason(task: Task) -> str:
    """Return why the task ended, or that it was erased; of an open task, when it is inspected
    again; of a completed one, how many items were left out."""
    if task.erased_at is not None:
        return erased_words(task)
    if task.ending is not None:
        return task.ending.why
    return left_out_words(task) if task.ended else f"due {iso(task.due_at)}"
