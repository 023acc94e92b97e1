"""Says what is going on during long work, on stderr, so that stdout stays for the result."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class ProgressListener(Protocol):
    """Told of each stage as it starts, and of what happens within it."""

    def stage(self, text: str) -> None:
        """Start the next stage; the one before it is done."""

    def detail(self, text: str) -> None:
        """Say what the current stage is doing now."""


class Quiet:
    """Says nothing: for callers that are programs."""

    def stage(self, text: str) -> None: ...

    def detail(self, text: str) -> None: ...


class PlainProgress:
    """A line for each stage: for logs and pipes."""

    def stage(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def detail(self, text: str) -> None: ...


class LiveProgress:
    """A spinner with the current stage, and a line with its time for each that is done."""

    def __init__(self, console: Console, status: Status) -> None:
        self._console = console
        self._status = status
        self._stage = ""
        self._started = time.monotonic()

    def stage(self, text: str) -> None:
        self.finish()
        self._stage = text
        self._started = time.monotonic()
        self._status.update(escape(text))

    def detail(self, text: str) -> None:
        room = max(self._console.width - len(self._stage) - 8, 10)
        self._status.update(f"{escape(self._stage)} [dim]{escape(text[:room])}[/dim]")

    def finish(self) -> None:
        """Leave a line for the stage that is done."""
        if self._stage:
            took = time.monotonic() - self._started
            self._console.print(
                f"[green]done[/green] {escape(self._stage)} [dim]({took:.1f} s)[/dim]"
            )
        self._stage = ""


@contextmanager
def shown_progress() -> Iterator[ProgressListener]:
    """Progress for a person: live on a terminal, plain lines anywhere else."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield PlainProgress()
        return
    with console.status("") as status:
        live = LiveProgress(console, status)
        yield live
        live.finish()
