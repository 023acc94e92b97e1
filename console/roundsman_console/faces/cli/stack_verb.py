"""The command of a verb that says itself what it would do: no other command is written for it."""

import inspect
from collections.abc import Callable, Iterator

import typer

from roundsman_console.acts import verbs
from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.verb import Asked, Preview, StackVerb
from roundsman_console.base.errors import Interrupted
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import Result
from roundsman_console.faces.cli.confirm_stack import Confirm, confirm_stack
from roundsman_console.faces.cli.ending import print_verb_result
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, By, NoWait, Wait
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import say
from roundsman_console.faces.cli.verb_options import (
    UnaskedYes,
    as_typed,
    command_with,
    parameter,
    parameters_of,
    reason_of,
)


def command_named(name: str) -> Callable[..., None] | None:
    """Return the command of the verb with this name; None if no command is made of it."""
    found = (one for one in verbs.stack_verbs() if one.name == name)
    return next(map(command_of_verb, found), None)


def names_of_single_verbs() -> list[str]:
    """Return the verbs of one word of which commands are made."""
    return [one.name for one in verbs.stack_verbs() if " " not in one.name]


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the verbs whose first word is the name of this group."""
    for kind in verbs.stack_verbs():
        group, _, word = kind.name.partition(" ")
        if word and group == app.info.name:
            app.command(word)(command_of_verb(kind))


def command_of_verb(kind: type[StackVerb]) -> Callable[..., None]:
    """Make the command of a verb: it looks at what it would do, and does it."""

    def command(
        *,
        stack: StackOption,
        as_json: AsJson,
        reason: str = "",
        by: str | None = None,
        wait: float = 0,
        no_wait: bool = False,
        named: str | None = None,
        **typed: object,
    ) -> None:
        with sentences():
            verb = kind.read(as_typed(kind, typed))
            why = read_reason(reason) if reason or kind.needs_reason == "required" else ""
            name = read_name(by) if kind.needs_reason != "none" else ""
            asked = Asked(name, why, 0 if no_wait else wait)
            found = announced_stack(stack)
            result: Result | Preview = verb.preview(found)
            if isinstance(result, Preview):
                if not as_json:
                    say(*result.notes)
                if kind.names_stack:
                    confirm_stack(result.question, found.name, named, as_json=as_json)
                result = _gone(result, asked)
            print_verb_result(result, as_json=as_json)

    return command_with(command, kind.help(), [*parameters_of(kind), *_common(kind)])


def _gone(preview: Preview, asked: Asked) -> Result:
    try:
        return preview.go(asked)
    except Interrupted as interrupted:
        if not isinstance(interrupted.result, Result):
            raise
        return interrupted.result


def _common(kind: type[StackVerb]) -> Iterator[inspect.Parameter]:
    """The options of a command that its verb does not declare as arguments."""
    if kind.needs_reason != "none":
        yield reason_of(kind)
        yield parameter("by", By, None)
    yield parameter("stack", StackOption, None)
    if kind.names_stack:
        yield parameter("named", Confirm, None)
    yield parameter("as_json", AsJson, False)
    if kind.waits:
        yield parameter("wait", Wait, WAIT)
        yield parameter("no_wait", NoWait, False)
    if not kind.names_stack:
        yield parameter("yes", UnaskedYes, False)
