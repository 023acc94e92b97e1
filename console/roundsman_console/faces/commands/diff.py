"""`roundsman diff`: what differs between an order and the last one that completed."""

from typing import Annotated

import typer
from rich.table import Table

from roundsman.command_line import command_line
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.options import AsJson
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.facts.order.difference import PARTS, OrderDifference
from roundsman_console.facts.orders.compared import read_difference

MOST_ROWS = 50
"""The number of differences of a part that are printed."""


def diff_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    other: Annotated[
        str | None,
        typer.Argument(help="The order to compare it with; by default the last that completed."),
    ] = None,
    stack: StackOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare an order with the last one of its workflow that completed, or with another one.

    It shows what differs in steps, versions, input, results and times. One with the same version of
    the workflow is preferred. Masked values stay masked, and are not compared.

    Example: roundsman diff ord-1001

    Example: roundsman diff ord-1001 ord-1000
    """
    with sentences():
        found = read_difference(find_stack(stack), order, other)
        if as_json:
            print(hinted_json(found))
        else:
            _print(found)


def _print(found: OrderDifference) -> None:
    say(f"{found.order_id} {found.state} compared with {found.other_id} {found.other_state}")
    say(found.sentence)
    for part, heading in PARTS.items():
        rows = found.of(part)
        if not rows:
            continue
        say("", heading)
        table = Table(box=None, pad_edge=False)
        for title in ("", found.order_id, found.other_id):
            table.add_column(title, overflow="fold")
        for row in rows[:MOST_ROWS]:
            values = (one if one is not None else "none" for one in (row.order, row.other))
            table.add_row(plain(row.name), *map(plain, values))
        results().print(table)
        if len(rows) > MOST_ROWS:
            command = command_line("diff", found.order_id, found.other_id, options=("--json",))
            say(hint(f"And {len(rows) - MOST_ROWS:,} more: {command}"))
    say("", *map(hint, found.not_known))
