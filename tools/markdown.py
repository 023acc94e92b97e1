"""Writes tables of pages."""

from collections.abc import Iterable, Sequence


def table(headings: Sequence[str], rows: Iterable[Iterable[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *rows)]
