"""How a verb ends on the terminal: what is printed of its result, and the exit code."""

from collections.abc import Mapping, Sequence

import typer

from roundsman_console.base.errors import FAILED, UNCONFIRMED
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.base.result import CommandOutcome, Result, document_of
from roundsman_console.faces.cli.errors import complain
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.text.result import print_fields

_CODES = {CommandOutcome.REFUSED: FAILED, CommandOutcome.UNCONFIRMED: UNCONFIRMED}
"""The exit codes of commands that were not carried out, or not yet."""


def print_verb_result(result: Result, *, as_json: bool) -> None:
    """Print what came of a verb. Raises typer.Exit with its exit code, unless that is 0."""
    lines = result.lines()
    print_sent(result, document_of(result), lines, as_json=as_json)
    if not lines and not as_json:
        print_fields(result)


def print_sent(
    result: Result, document: Mapping[str, object], lines: Sequence[str], *, as_json: bool
) -> None:
    """Print `lines` about a result, or its document as JSON; if it is none, why on standard error.

    Raises typer.Exit with the exit code, unless that is 0.
    """
    if as_json:
        print(hinted_json(document))
    code = _CODES.get(result.ended(), 0)
    if code:
        complain(" ".join(result.words()))
        raise typer.Exit(code)
    if not as_json:
        say(*map(hint, lines))
