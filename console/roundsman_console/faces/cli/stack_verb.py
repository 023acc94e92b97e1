"""The command of a verb that says itself what it would do."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Annotated

import typer
from rich.console import Console

from roundsman_console.acts.actor import read_name, read_reason
from roundsman_console.acts.verb import Asked, Confirmed, Preview, Progress, StackVerb
from roundsman_console.base.errors import Interrupted
from roundsman_console.base.hints import hinted_json
from roundsman_console.base.limits import WAIT
from roundsman_console.base.result import Result
from roundsman_console.faces.cli.confirm import confirm
from roundsman_console.faces.cli.confirm_stack import Confirm, confirm_stack
from roundsman_console.faces.cli.ending import (
    end,
    print_not_gone,
    print_verb_result,
    show_found,
    tell,
)
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import AsJson, By, NoWait, Wait, Yes
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.verb_options import (
    UnaskedYes,
    as_typed,
    command_with,
    parameter,
    parameters_of,
    reason_of,
)
from roundsman_console.facts.application import application_events

Go = Annotated[bool, typer.Option("--go", help="Send the commands; without it, only show them.")]


def command_on_stack(kind: type[StackVerb]) -> Callable[..., None]:
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
        yes: bool = False,
        go: bool = False,
        **typed: object,
    ) -> None:
        with sentences():
            verb = kind.read(as_typed(kind, typed))
            why = read_reason(reason) if reason or kind.needs_reason == "required" else ""
            name = read_name(by) if kind.stores_name() else ""
            asked = Asked(name, why, 0 if no_wait else wait)
            found = announced_stack(stack, application_events() if kind.of_application else None)
            with Console(stderr=True, quiet=as_json).status(kind.title) as status:
                result: Result | Preview = verb.search(found, status.update)
            if isinstance(result, Result):
                print_verb_result(result, as_json=as_json)
                return
            with closing(result):
                if not as_json:
                    show_found(result)
                if kind.confirmed is Confirmed.BY_GO and not go:
                    print_not_gone(result, as_json=as_json)
                    return
                if kind.confirmed is Confirmed.BY_STACK:
                    confirm_stack(result.question, found.name, named, as_json=as_json)
                elif kind.confirmed is not Confirmed.NOT and result.question:
                    confirm(result.question, yes=yes)
                done = _gone(result, asked)
            if result.goes_on is None:
                print_verb_result(done, as_json=as_json)
            else:
                _go_on(result.goes_on, done, kind.title, as_json=as_json)

    return command_with(command, kind.help(), [*parameters_of(kind), *_common(kind)])


def _gone(preview: Preview, asked: Asked) -> Result:
    try:
        return preview.go(asked)
    except Interrupted as interrupted:
        if not isinstance(interrupted.result, Result):
            raise
        return interrupted.result


def _go_on(
    parts: Callable[[Result, Progress], Iterator[Result]],
    done: Result,
    title: str,
    *,
    as_json: bool,
) -> None:
    """Print what was done, and each part of the rest; the last one as JSON.

    Raises typer.Exit with the exit code of the last one, unless that is 0.
    """
    tell(done, as_json=as_json)
    with Console(stderr=True, quiet=as_json).status(title) as status:
        for part in parts(done, status.update):
            done = part
            tell(done, as_json=as_json)
    if as_json:
        print(hinted_json(done.document()))
    end(done)


def _common(kind: type[StackVerb]) -> Iterator[inspect.Parameter]:
    """The options of a command that its verb does not declare as arguments."""
    if kind.needs_reason != "none":
        yield reason_of(kind)
    if kind.confirmed is Confirmed.BY_GO:
        yield parameter("go", Go, False)
    if kind.stores_name():
        yield parameter("by", By, None)
    yield parameter("stack", StackOption, None)
    if kind.confirmed is Confirmed.BY_STACK:
        yield parameter("named", Confirm, None)
    yield parameter("as_json", Annotated[bool, typer.Option("--json", help=kind.json_help)], False)
    if kind.waits:
        yield parameter("wait", Wait, WAIT)
        yield parameter("no_wait", NoWait, False)
    if kind.confirmed is Confirmed.NOT:
        yield parameter("yes", UnaskedYes, False)
    elif kind.confirmed is not Confirmed.BY_STACK:
        yield parameter("yes", Yes, False)
