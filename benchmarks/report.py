"""The result of a part of the benchmarks: tables."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Table:
    """A table with headings; all columns except the first contain figures."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """Return the table as text with aligned columns."""
        cells = [list(self.headings), *map(list, self.rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(self.headings))]
        lines = [
            "  ".join(
                cell.ljust(width) if column == 0 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in cells
        ]
        return "\n".join([self.title, "", *lines])


@dataclass(frozen=True)
class Report:
    """The result of one part."""

    tables: Sequence[Table]
    notes: Sequence[str] = field(default_factory=tuple)

    def text(self) -> str:
        """Return the tables and the notes as text."""
        return "\n\n".join([*(table.text() for table in self.tables), *self.notes])


@dataclass(frozen=True)
class Setting:
    """The settings of a run, which all parts share."""

    engine: Callable[[], str]
    """Returns the endpoint of DynamoDB Local; the first call starts it."""
    say: Callable[[str], None]
    """Shows the progress."""
    runs: int = 5
    """The number of repetitions of timed runs."""
    orders: int = 100
    """The number of orders in the part `throughput`."""


def amount(value: float) -> str:
    """Format a figure, as in `13`, `8.5`, `0.042` or `12,300`."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.4g}"


def rows(pairs: Iterable[tuple[str, float]]) -> list[list[str]]:
    """Return a row of a table for each name and its amount."""
    return [[name, amount(value)] for name, value in pairs]
