"""Asking before what cannot be taken back."""

import sys

from roundsman_console.cli_errors import USAGE, ConsoleError
from roundsman_console.sanitize import inert


def confirm(question: str, *, yes: bool) -> None:
    """Go on where `yes` was said or the person at the terminal says so.

    Raises ConsoleError where they do not, and where nobody can be asked: a script says --yes.
    """
    if yes:
        return
    if not at_a_terminal():
        raise ConsoleError(
            f"{question} Nobody can be asked here: say --yes. Nothing was sent.", USAGE
        )
    # On standard error, so that the output of --json stays one object.
    print(f"{inert(question)} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise ConsoleError("Nothing was sent.")


def at_a_terminal() -> bool:
    """Whether there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()
