"""The verbs of the command line, found in the app itself, so that a new one is tested unasked."""

from collections.abc import Iterator, Sequence

import typer
from typer.core import TyperCommand, TyperGroup

from roundsman_console.main import app


def _walk(command: object, words: tuple[str, ...]) -> Iterator[tuple[str, TyperCommand]]:
    if isinstance(command, TyperGroup):
        for name, inner in command.commands.items():
            yield from _walk(inner, (*words, name))
    elif isinstance(command, TyperCommand):
        yield " ".join(words), command


VERBS = dict(_walk(typer.main.get_command(app), ()))
"""Every verb with its command: `show`, `local up`."""


def options_of(verb: str) -> set[str]:
    """What options the verb has, each under all its names."""
    return {name for parameter in VERBS[verb].params for name in parameter.opts}


def split_verb(typed: Sequence[str]) -> tuple[str, list[str]]:
    """The verb that is typed, of one word or two, and what follows it."""
    for count in (2, 1):
        verb = " ".join(typed[:count])
        if verb in VERBS:
            return verb, list(typed[count:])
    raise AssertionError(f"no verb begins {typed[:2]}")


def schema_of(verb: str) -> str:
    """The name of the schema of what the verb prints as JSON."""
    return verb.replace(" ", "-")
