"""What came of a verb, on the terminal: its sentences, or its fields as lines and tables."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import typer
from rich.table import Table

from roundsman_console.base.errors import FAILED, UNCONFIRMED
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.base.result import CommandOutcome, Result, document_of, rows_of, shown_fields
from roundsman_console.faces.cli.cells import plain
from roundsman_console.faces.cli.errors import complain
from roundsman_console.faces.cli.terminal import results, say

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_CODES = {CommandOutcome.REFUSED: FAILED, CommandOutcome.UNCONFIRMED: UNCONFIRMED}
"""The exit codes of commands that were not carried out, or not yet."""


def print_result(result: Result, *, as_json: bool) -> None:
    """Print what came of a verb. Raises typer.Exit with its exit code, unless that is 0."""
    lines = result.lines()
    print_sent(result, document_of(result), lines, as_json=as_json)
    if not lines and not as_json:
        print_fields(result)


def print_sent(
    result: Result, document: Mapping[str, object], lines: Sequence[str], *, as_json: bool
) -> None:
    """Print `lines` about a result, or its document as JSON; if it is none, why on standard error.

    Raises typer.Exit with the exit code, unless that is 0.
    """
    if as_json:
        print(hinted_json(document))
    code = _CODES.get(result.ended(), 0)
    if code:
        complain(" ".join(result.words()))
        raise typer.Exit(code)
    if not as_json:
        say(*map(hint, lines))


def print_fields(value: "DataclassInstance") -> None:
    """Print each field with its label; a list of results as a table."""
    for name, one in shown_fields(type(value)).items():
        found = getattr(value, name)
        if rows := rows_of(found):
            results().print(table_of(rows))
        else:
            say(f"{one.label}: {one.to_words(found)}")


def table_of(rows: "Sequence[DataclassInstance]") -> Table:
    """Return a table of results of one type: a column for each field."""
    table = Table(box=None, pad_edge=False)
    shown = shown_fields(type(rows[0]))
    for one in shown.values():
        table.add_column(one.label, overflow="fold", justify="right" if one.unit else "left")
    for row in rows:
        table.add_row(*(plain(one.to_words(getattr(row, name))) for name, one in shown.items()))
    return table
