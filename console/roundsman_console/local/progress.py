"""Shows the progress of long operations on stderr; stdout is for the result."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.status import Status


class ProgressListener:
    """Receives each stage when it starts, and details during it. This one shows nothing."""

    def stage(self, text: str) -> None:
        """Finish the current stage and start the next one."""

    def detail(self, text: str) -> None:
        """Show what the current stage does now."""


class PlainProgress(ProgressListener):
    """Prints a line for each stage, for logs and pipes."""

    def stage(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class LiveProgress(ProgressListener):
    """Shows the current stage with a spinner, and prints a line for each stage that is done."""

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
        """Print a line for the current stage, which is done."""
        if self._stage:
            took = time.monotonic() - self._started
            self._console.print(
                f"[green]done[/green] {escape(self._stage)} [dim]({took:.1f} s)[/dim]"
            )
        self._stage = ""


@contextmanager
def shown_progress() -> Iterator[ProgressListener]:
    """Yield a listener for a person: a spinner on a terminal, otherwise plain lines."""
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield PlainProgress()
        return
    with console.status("") as status:
        live = LiveProgress(console, status)
        yield live
        live.finish()
