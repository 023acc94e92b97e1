"""Confirmation before an irreversible operation."""

import sys

from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.base.sanitize import inert


def confirm(question: str, *, yes: bool, nothing: str = "Nothing was sent.") -> None:
    """Return if `yes` is true or the user answers `y` or `yes` at the terminal.

    Raises ConsoleError on any other answer, or if there is no terminal: scripts use --yes. The
    error says that `nothing` has happened.
    """
    if yes:
        return
    if not at_a_terminal():
        raise ConsoleError(
            f"{question} There is no terminal to confirm at: add --yes. {nothing}", USAGE
        )
    # On standard error, so that the output of --json is one object.
    print(f"{inert(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConsoleError(nothing)


def at_a_terminal() -> bool:
    """Return whether standard input and standard error are both terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()
