"""Confirmation by the name of the stack, before an operation on the stack as a whole."""

import sys
from typing import Annotated, TypeAlias

import typer

from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.base.sanitize import inert
from roundsman_console.faces.cli.confirm import at_a_terminal

Confirm: TypeAlias = Annotated[
    str | None,
    typer.Option("--confirm", metavar="STACK", help="The stack's name, in place of typing it."),
]


def confirm_stack(question: str, stack: str, given: str | None, *, as_json: bool = False) -> None:
    """Return if `given` is the name of the stack, or if the user types it at the terminal.

    Raises ConsoleError if another name is given or typed, or if nobody can be asked: with --json,
    or without a terminal.
    """
    if given is not None:
        if given != stack:
            raise ConsoleError(f"--confirm names {given}, and the stack is {stack}.", USAGE)
        return
    if as_json or not at_a_terminal():
        raise ConsoleError(f"{question} To confirm, add: --confirm {stack}", USAGE)
    print(f"{inert(question)} Type the name of the stack: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != stack:
        raise ConsoleError("That is not the name of the stack. Nothing was changed.")
