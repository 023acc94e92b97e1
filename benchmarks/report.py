"""What a part of the benchmarks found: tables for people, and a document for scripts."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from roundsman.model.json import Json


@dataclass(frozen=True)
class Table:
    """Rows under headings; all but the first column are figures."""

    title: str
    headings: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        """The table with its columns in line."""
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
    """`document` is merged into results/latest.json under its own keys."""

    tables: Sequence[Table]
    document: dict[str, Json]
    notes: Sequence[str] = field(default_factory=tuple)

    def text(self) -> str:
        """All of it, as it is printed."""
        return "\n\n".join([*(table.text() for table in self.tables), *self.notes])


@dataclass(frozen=True)
class Setting:
    """What parts are run with. `engine` starts DynamoDB Local the first time it is asked for it."""

    engine: Callable[[], str]
    say: Callable[[str], None]
    stored: Sequence[int] = (1_000, 10_000)
    runs: int = 5
    orders: int = 100


def amount(value: float) -> str:
    """`13`, `8.5`, `0.042`, `12,300`."""
    if value >= 100 or value == round(value):
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 1 else f"{value:.4g}"


def rows(pairs: Iterable[tuple[str, float]]) -> list[list[str]]:
    """Names and their amounts."""
    return [[name, amount(value)] for name, value in pairs]
