"""`roundsman shift`: what happened to a stack since an instant, and what is open now."""

from typing import Annotated

import typer

from roundsman_console.base.clock import now
from roundsman_console.base.errors import FAILED
from roundsman_console.base.hints import hinted_json
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.text.shift import show_shift
from roundsman_console.facts.shift.reading import USUAL, read_begin, read_shift


def shift_command(
    since: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="When it begins: 8h, 2027-01-15T08:00:00Z; at most 7d ago."
        ),
    ] = USUAL,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Show what happened since a time, and what is open now, to hand over to the next person.

    These are failures, alerts, holds, commands with their senders, bulk runs and deployments. It
    exits 1 if a part could not be read.

    Example: roundsman shift

    Example: roundsman shift --since 8h
    """
    with sentences():
        begins = read_begin(since, now())
        found = read_shift(find_stack(stack), begins)
        if as_json:
            print(hinted_json(found))
        else:
            show_shift(found)
        for problem in found.unread:
            complain(f"Not everything could be read. {problem}")
        if found.unread:
            raise typer.Exit(FAILED)
