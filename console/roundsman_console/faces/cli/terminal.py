"""The consoles for results and for progress, and instants in the columns of tables."""

import os
import sys
from collections.abc import Callable
from datetime import timedelta

from rich.console import Console

from roundsman.model.instants import EPOCH, clock_time
from roundsman_console.base.sanitize import inert

UNLIMITED = 10_000  # columns; a table takes no more than its content needs


def results() -> Console:
    """Return the console for results: as wide as the terminal, and for a pipe without a limit.

    So a program that reads a table finds each id whole. COLUMNS sets another width.
    """
    console = Console(highlight=False, emoji=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        return Console(highlight=False, emoji=False, width=UNLIMITED)
    return console


def say(*lines: str | None) -> None:
    """Print lines without markup or line wrapping; control characters are made harmless.

    None is not printed.
    """
    console = Console(highlight=False, emoji=False, soft_wrap=True)  # an ARN may have :x:
    for line in lines:
        if line is not None:
            console.print(inert(line), markup=False)


def progress(*, quiet: bool) -> Callable[[str], None]:
    """Return a function that prints progress on standard error, if that is a terminal."""
    console = Console(stderr=True, highlight=False)

    def show(doing: str) -> None:
        if not quiet and sys.stderr.isatty():
            console.print(inert(f"{doing} ..."), style="dim", markup=False)

    return show


def short_instant(instant: int, now: int) -> str:
    """Return an instant (epoch ms, UTC) for a column: the time of today, or a date as well.

    `08:00:00`, `15 Jan 08:00`, and for another year `2027-01-15`.
    """
    then, today = (EPOCH + timedelta(milliseconds=each) for each in (instant, now))
    if then.date() == today.date():
        return clock_time(instant)
    return then.strftime("%-d %b %H:%M" if then.year == today.year else "%Y-%m-%d")
