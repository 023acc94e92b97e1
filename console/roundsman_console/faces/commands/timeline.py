"""`roundsman timeline`: shows what happened to one order, in the order of time."""

import json
from typing import Annotated

import typer

from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results
from roundsman_console.faces.cli.text.states import happenings_table, task_line
from roundsman_console.facts.order.documents import timeline_document
from roundsman_console.facts.order.lookup import find_shown
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.timeline import happenings, not_known


def timeline_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List what happened to an order, in order of time, and what is not known about it.

    Example: roundsman timeline ord-1001
    """
    with sentences():
        facts = find_shown(find_stack(stack), order)
        if as_json:
            print(json.dumps(document_of(timeline_document(facts))))
        else:
            _print(facts)


def _print(facts: OrderFacts) -> None:
    console = results()
    console.print(task_line(facts.task))
    console.print(happenings_table(happenings(facts), later=True))
    for gap in not_known(facts):
        console.print(plain(gap, "dim"))
