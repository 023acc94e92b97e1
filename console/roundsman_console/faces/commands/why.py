"""`roundsman why`: explains what an order waits for, with evidence and the next command."""

from typing import Annotated

import typer

from roundsman.model.task import Task
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results
from roundsman_console.faces.cli.text.states import task_line
from roundsman_console.facts.order.why import Diagnosis
from roundsman_console.facts.order.why_facts import why, why_document


def why_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show what an order waits for now, and what to do. Example: roundsman why ord-1001"""
    with sentences():
        task, found = why(find_stack(stack), order)
        if as_json:
            print(hinted_json(why_document(order, task, found)))
        else:
            _print(task, found)


def _print(task: Task | None, found: Diagnosis) -> None:
    console = results()
    if task is not None:
        console.print(task_line(task))
    console.print(plain(found.sentence, "bold"))
    for line in found.evidence:
        console.print(plain(f"- {line}"))
    if found.next is None:
        goes_on = task is not None and (not task.ended or task.owed)
        console.print("Nothing to do but wait." if goes_on else "Nothing to do.")
    else:
        console.print(hint(f"Next: {found.next}"), markup=False, soft_wrap=True)
