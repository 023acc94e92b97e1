"""What came of a verb, on a page: its fields as tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman_console.base.result import rows_of, shown_fields

if TYPE_CHECKING:
    from _typeshed import DataclassInstance


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table of a page."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str]]


def table_of(rows: "Sequence[DataclassInstance]", leave_out: Sequence[str] = ()) -> PageTable:
    """Return the table of results of one type: a column for each field."""
    found = shown_fields(type(rows[0]))
    shown = {name: one for name, one in found.items() if name not in leave_out}
    return PageTable(
        [one.label for one in shown.values()],
        [[one.to_words(getattr(row, name)) for name, one in shown.items()] for row in rows],
    )


def tables_of(value: "DataclassInstance") -> list[PageTable]:
    """Return a table of the fields of a result, and one of each list of results in it."""
    lists = {
        name: rows for name in shown_fields(type(value)) if (rows := rows_of(getattr(value, name)))
    }
    own = table_of([value], list(lists))
    return [*([own] if own.headings else []), *map(table_of, lists.values())]
