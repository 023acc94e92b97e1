"""Formats messages for the terminal: ages, sizes and problems."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.table import Table

from roundsman.model.instants import format_duration
from roundsman_console.faces.cli.cells import plain
from roundsman_console.facts.set_aside.queues import Counts

SHORT_ID = 8  # characters of a message id; enough to distinguish a thousand messages


def age(since: int, now: int) -> str:
    """Format the time from `since` to `now` (both epoch ms) as a duration."""
    return format_duration(max(0, now - since))


def size_words(size: int) -> str:
    """Format a number of bytes: `512 B`, `12 KB`."""
    return f"{size} B" if size < 1024 else f"{size / 1024:.0f} KB"


def hidden_words(found: Counts) -> str | None:
    """Return a sentence about the messages that are not visible; None if all are visible."""
    if not found.hidden:
        return None
    are = "1 message is" if found.hidden == 1 else f"{found.hidden} messages are"
    return f"{are} hidden by another reader; visible again within a minute."


def working(what: str, *, quiet: bool) -> AbstractContextManager[object]:
    """Show a spinner with the text `what` on standard error, if that is a terminal."""
    return Console(stderr=True, quiet=quiet).status(what)


def message_table(third: str, last: str, rows: Iterable[Sequence[str]]) -> Table:
    """Return a table of messages: the id, the age, a column `third`, the order, a column `last`."""
    table = Table(box=None, pad_edge=False)
    for heading in ("ID", "Age", third):
        table.add_column(heading, no_wrap=True)
    for heading in ("Order", last):
        table.add_column(heading, overflow="fold")
    for message_id, *cells in rows:
        table.add_row(plain(message_id[:SHORT_ID]), *map(plain, cells))
    return table
