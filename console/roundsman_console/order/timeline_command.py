"""`roundsman timeline`: shows what happened to one order, in the order of time."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Table

from roundsman.model.instants import format_duration, second
from roundsman.model.task import Task
from roundsman_console.cells import plain
from roundsman_console.cli.options import AsJson
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import find_stack
from roundsman_console.cli_errors import sentences
from roundsman_console.clock import now
from roundsman_console.order.lookup import find_shown
from roundsman_console.order.states_text import task_line
from roundsman_console.order.timeline import (
    Happening,
    happenings,
    not_known,
    timeline_document,
)
from roundsman_console.terminal import results

_STYLES = {"failed": "red", "undo failed": "red", "refused": "red", "finished": "green"}


def timeline_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """List what happened to an order, in order of time, and what is not known about it.

    Example: roundsman timeline ord-1001
    """
    with sentences():
        found = find_stack(stack)
        task, plan, history = find_shown(found, order)
        happened, gaps = happenings(task, plan, history, now()), not_known(task, history)
        if as_json:
            print(json.dumps(timeline_document(task, happened, gaps)))
        else:
            _print(task, happened, gaps)


def _print(task: Task, happened: Sequence[Happening], gaps: Sequence[str]) -> None:
    console = results()
    console.print(task_line(task))
    people, senders = any(one.by for one in happened), any(one.sender for one in happened)
    table = Table(box=None, pad_edge=False)
    for heading in ("At", "After", "What"):
        table.add_column(heading, no_wrap=True)
    for heading in (
        *(("By",) if people else ()),
        *(("Sender",) if senders else ()),
        "Why",
    ):
        table.add_column(heading, overflow="fold")
    for one in happened:
        by = [plain(one.by or "")] if people else []
        by += [plain(one.sender or "")] if senders else []
        after = format_duration(max(0, one.at - task.created_at))
        style = _STYLES.get(one.what, "bold" if one.by else "")
        table.add_row(
            plain(second(one.at)), plain(after), plain(one.what, style), *by, plain(one.why)
        )
    console.print(table)
    for gap in gaps:
        console.print(plain(gap, "dim"))
