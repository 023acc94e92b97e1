"""What came of a verb, on the terminal: its sentences, or its fields as lines and tables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.table import Table

from roundsman_console.base.result import rows_of, shown_fields
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.terminal import results, say

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


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
