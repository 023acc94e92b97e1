"""Commands that are made of declared verbs: no other command is written for them."""

from collections.abc import Callable

import typer

from roundsman_console.acts import verbs
from roundsman_console.acts.order.verbs import OrderVerb
from roundsman_console.acts.verb import StackVerb, Verb
from roundsman_console.faces.cli.order_verb import command_on_orders
from roundsman_console.faces.cli.stack_verb import command_on_stack


def command_named(name: str) -> Callable[..., None] | None:
    """Return the command of the verb with this name; None if no command is made of it."""
    return next((command_of_verb(one) for one in verbs.VERBS if one.name == name), None)


def add_commands(app: typer.Typer) -> None:
    """Add the commands of the verbs whose first word is the name of this group."""
    for kind in verbs.VERBS:
        group, _, word = kind.name.partition(" ")
        command = command_of_verb(kind) if word and group == app.info.name else None
        if command is not None:
            app.command(word)(command)


def command_of_verb(kind: type[Verb]) -> Callable[..., None] | None:
    """Make the command of a verb; None if it is not made of the verb alone."""
    if issubclass(kind, OrderVerb):
        return command_on_orders(kind)
    return command_on_stack(kind) if issubclass(kind, StackVerb) else None
