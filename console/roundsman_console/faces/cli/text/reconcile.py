"""What `roundsman reconcile` prints: counts, and the orders that a person should know of."""

from rich.table import Table

from roundsman_console.acts.reconcile.reconcile import RestoredOrder
from roundsman_console.acts.reconcile.words import note_of
from roundsman_console.faces.cli.cells import plain


def table(orders: list[RestoredOrder]) -> Table:
    """Return a table of these orders with what to know of each."""
    drawn = Table(box=None, pad_edge=False)
    for heading in ("Order", "State", "Note"):
        drawn.add_column(heading, overflow="fold")
    for one in orders:
        drawn.add_row(plain(one.order), plain(one.state or ""), plain(note_of(one)))
    return drawn
