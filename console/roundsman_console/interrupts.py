"""Ctrl-C during a bulk run: noted first, so that it does not come between a send and its record."""

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Defer Ctrl-C in the `with` block, so that it does not interrupt a move.

    Yields a function that returns whether Ctrl-C was pressed. A second Ctrl-C raises
    KeyboardInterrupt at once.
    """
    noted = False

    def note(_signal: int, _frame: FrameType | None) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True

    before = signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, before)
