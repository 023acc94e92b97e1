"""How a verb ends on the terminal: what is printed of its result, and the exit code."""

from collections.abc import Mapping, Sequence

import typer

from roundsman_console.acts.verb import Preview
from roundsman_console.base.errors import FAILED, UNCONFIRMED
from roundsman_console.base.hints import hint, hinted_json
from roundsman_console.base.result import CommandOutcome, Result
from roundsman_console.faces.cli.errors import complain
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.result import print_fields, table_of

_CODES = {CommandOutcome.REFUSED: FAILED, CommandOutcome.UNCONFIRMED: UNCONFIRMED}
"""The exit codes of commands that were not carried out, or not yet."""


def print_verb_result(result: Result, *, as_json: bool) -> None:
    """Print what came of a verb. Raises typer.Exit with its exit code, unless that is 0."""
    for warning in result.warnings():
        complain(warning)
    lines = result.lines()
    print_sent(result, result.document(), lines, as_json=as_json)
    if not lines and not as_json:
        print_fields(result)


def tell(result: Result, *, as_json: bool) -> None:
    """Print what came of a part of a verb; with --json, only what went wrong beside it."""
    for warning in result.warnings():
        complain(warning)
    if as_json:
        return
    lines = result.lines()
    say(*map(hint, lines))
    if not lines:
        print_fields(result)


def show_found(preview: Preview) -> None:
    """Print what a verb would do, before it is done."""
    say(*preview.notes)
    if preview.found is not None:
        tell(preview.found, as_json=False)
        if rows := preview.found.rows():
            results().print(table_of(rows))


def print_not_gone(preview: Preview, *, as_json: bool) -> None:
    """Print how to go on after what was shown, or what was found as JSON."""
    if as_json and preview.found is not None:
        print(hinted_json(preview.found.document()))
    elif preview.blocked:
        say(preview.blocked)
    elif preview.question:
        say(hint(f"Nothing was sent. To send: {preview.command}"))


def end(result: Result) -> None:
    """Raise what ended it early, or typer.Exit with its exit code, unless that is 0."""
    error, code = result.error(), _CODES.get(result.ended(), 0)
    if error is not None:
        raise error
    if code:
        raise typer.Exit(code)


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
