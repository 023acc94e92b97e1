"""`roundsman timeline`: shows what happened to one order, in the order of time."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from roundsman.aws.clock import now
from roundsman.model.instants import format_duration, iso
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman_console.cli_errors import sentences
from roundsman_console.read.lookup import find_task
from roundsman_console.read.stack import StackOption, find_stack
from roundsman_console.sanitize import plain
from roundsman_console.views.task_events import Happening, happenings, not_known
from roundsman_console.views.task_view import STATE_STYLES, second

_STYLES = {"failed": "red", "undo failed": "red", "refused": "red", "finished": "green"}


def timeline_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Tell what happened to an order, in time, and what is not known of it.

    Example: roundsman timeline ord-1001
    """
    with sentences():
        found = find_stack(stack)
        task, plan = find_task(found, order)
        history = found.tasks.history(task.task_id)
        told, gaps = happenings(task, plan, history, now()), not_known(task, history)
        if as_json:
            print(json.dumps(_document(task, told, gaps)))
        else:
            _print(task, told, gaps)


def _document(task: Task, told: Sequence[Happening], gaps: Sequence[str]) -> dict[str, Json]:
    return {
        "orderId": task.task_id,
        "workflow": task.workflow,
        "state": task.state.value,
        "happened": [
            {
                "at": iso(one.at),
                "what": one.what,
                "step": one.step,
                "attempt": one.attempt,
                "by": one.by,
                "why": one.why,
            }
            for one in told
        ],
        "notKnown": list(gaps),
    }


def _print(task: Task, told: Sequence[Happening], gaps: Sequence[str]) -> None:
    console = Console(highlight=False)
    console.print(plain(f"{task.task_id}  {task.workflow}  "), end="")
    console.print(plain(task.state, STATE_STYLES.get(task.state, "")))
    people = any(one.by for one in told)
    table = Table(box=None, pad_edge=False)
    for heading in ("At", "After", "What"):
        table.add_column(heading, no_wrap=True)
    for heading in (*(("By",) if people else ()), "Why"):
        table.add_column(heading, overflow="fold")
    for one in told:
        by = [plain(one.by or "")] if people else []
        after = format_duration(max(0, one.at - task.created_at))
        style = _STYLES.get(one.what, "bold" if one.by else "")
        table.add_row(
            plain(second(one.at)), plain(after), plain(one.what, style), *by, plain(one.why)
        )
    console.print(table)
    for gap in gaps:
        console.print(plain(gap, "dim"))
