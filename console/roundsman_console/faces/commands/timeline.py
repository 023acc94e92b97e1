"""`roundsman timeline`: shows what happened to one order, in the order of time."""

import json
from collections.abc import Sequence
from typing import Annotated

import typer

from roundsman.model.task import Task
from roundsman_console.base.clock import now
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results
from roundsman_console.faces.cli.text.states import happenings_table, task_line
from roundsman_console.facts.order.lookup import find_shown
from roundsman_console.facts.order.timeline import (
    Happening,
    happenings,
    not_known,
    timeline_document,
)


def timeline_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
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
    console.print(happenings_table(happened, later=True))
    for gap in gaps:
        console.print(plain(gap, "dim"))
