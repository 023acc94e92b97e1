"""The table of what happened to an order."""

from collections.abc import Iterable

from rich.table import Table

from roundsman.model.instants import format_duration, second
from roundsman_console.cells import plain
from roundsman_console.order.timeline import Happening

_STYLES = {"failed": "red", "undo failed": "red", "refused": "red", "finished": "green"}


def happenings_table(happened: Iterable[Happening], since: int | None = None) -> Table:
    """Return a table with a row for each entry, in their order.

    `since` is the instant in epoch ms from which the column `After` counts; None leaves it out. The
    columns of who sent a command are left out if there is none.
    """
    rows = list(happened)
    people, senders = any(one.by for one in rows), any(one.sender for one in rows)
    table = Table(box=None, pad_edge=False)
    for heading in ("At", *(("After",) if since is not None else ()), "What"):
        table.add_column(heading, no_wrap=True)
    who = [*(["By"] if people else []), *(["Sender"] if senders else [])]
    for heading in (*who, "Why"):
        table.add_column(heading, overflow="fold")
    for one in rows:
        after = [] if since is None else [format_duration(max(0, one.at - since))]
        by = [*([one.by or ""] if people else []), *([one.sender or ""] if senders else [])]
        what = plain(one.what, _STYLES.get(one.what, "bold" if one.by else ""))
        table.add_row(
            plain(second(one.at)), *map(plain, after), what, *map(plain, by), plain(one.why)
        )
    return table
