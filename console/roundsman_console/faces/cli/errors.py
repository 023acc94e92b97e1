"""Errors of commands: one sentence on standard error and an exit code, never a traceback.

The exit codes of all commands are defined here; docs/reference/cli.md lists them for scripts.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import typer
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from rich.console import Console

from roundsman.errors import RoundsmanError
from roundsman_console.base.errors import (
    FAILED,
    INTERRUPTED,
    NOT_FOUND,
    UNCONFIRMED,
    USAGE,
    AgentOnHold,
    ConsoleError,
    InspectorError,
    Interrupted,
    InvalidArgument,
    InvalidCursor,
    NotFound,
    StackNotFound,
    Unconfirmed,
    UncorrectableMessage,
    UnknownOrder,
    sentence_of,
)
from roundsman_console.base.hints import hint

EXIT_CODES = {
    0: "done; with `--no-wait`: sent",
    FAILED: "refused or failed; the message says why",
    USAGE: "wrong usage; nothing was sent",
    NOT_FOUND: "not found: order, agent, group, run or message",
    UNCONFIRMED: "sent, but the outcome is not known; it takes effect once, when it is read",
    INTERRUPTED: "interrupted by Ctrl-C",
}
"""The meaning of each exit code. `local status` has its own exit codes, listed in its help."""

_CODES: dict[type[InspectorError], int] = {
    InvalidArgument: USAGE,
    NotFound: NOT_FOUND,
    Unconfirmed: UNCONFIRMED,
    Interrupted: INTERRUPTED,
}


_HINTS: dict[type[InspectorError], str] = {
    AgentOnHold: "To send to these orders nevertheless, add --anyway.",
    InvalidCursor: "To begin with the first page, leave out --after.",
    StackNotFound: "Deploy it, or name another stack with --stack.",
    UnknownOrder: "See: roundsman rejected ls",
    UncorrectableMessage: "Replace the whole message with --body @file.",
}
"""The option that helps with an error of the inspector, which does not know the command line."""


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that ends with this error."""
    if isinstance(error, ConsoleError):
        return error.code
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), FAILED)


@contextmanager
def sentences() -> Iterator[None]:
    """Print an error in the `with` block on standard error as one sentence, and raise typer.Exit.

    Handles RoundsmanError, errors of AWS calls and Ctrl-C. Ctrl-C prints nothing.
    """
    try:
        yield
    except (RoundsmanError, ClientError, BotoCoreError, ResponseParserError) as error:
        hints = (hint for kind, hint in _HINTS.items() if isinstance(error, kind))
        complain(" ".join([sentence_of(error), *hints]))
        raise typer.Exit(exit_code(error)) from error
    except KeyboardInterrupt as error:
        raise typer.Exit(INTERRUPTED) from error


def complain(sentence: str) -> None:
    """Print a message on standard error. `hint` is applied: it may quote text from outside."""
    text = "\n".join(hint(line) for line in sentence.splitlines())
    console = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)
    console.print(text, style="red", markup=False)
