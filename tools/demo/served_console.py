"""Shows the demo's orders in the console in the browser while they run, and afterwards."""

import json
import subprocess
import sys
import webbrowser
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from roundsman_console.base.errors import ConsoleError

COMMAND = (str(Path(sys.executable).with_name("roundsman")), "ui", "--json")
"""What serves the console, as an operator types it."""
STOP_WITHIN = 10.0  # seconds


@contextmanager
def served_console(
    console: Console, stack: str, *, command: Sequence[str] = COMMAND
) -> Iterator[subprocess.Popen[str]]:
    """Serve the console of the stack inside the context, with the environment of this process.

    Its link is printed and, on a terminal, opened. Raises ConsoleError if the console does not
    start.
    """
    process = subprocess.Popen(
        [*command, "--stack", stack],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # Ctrl-C reaches this process only, which then stops the console
    )
    try:
        link = _link(process)
        console.print(f"The console in the browser: {link}", markup=False, soft_wrap=True)
        if console.is_terminal:
            webbrowser.open(link)
        yield process
    finally:
        process.terminate()
        try:
            process.wait(STOP_WITHIN)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def explore(console: Console, process: subprocess.Popen[str]) -> None:
    """Leave everything up until Ctrl-C, or until the console ends."""
    console.print("The stack and its console stay up to explore. Ctrl-C stops everything.")
    try:
        process.wait()
    except KeyboardInterrupt:
        console.print("Stopping.")


def _link(process: subprocess.Popen[str]) -> str:
    line = process.stdout.readline() if process.stdout is not None else ""
    try:
        return str(json.loads(line)["url"])
    except (ValueError, KeyError) as error:
        raise ConsoleError("The console in the browser did not start.") from error
