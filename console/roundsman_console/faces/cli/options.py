"""The options that all operator commands on orders have in common."""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Annotated, TypeAlias

import typer

from roundsman.command_line import command_line
from roundsman.model.bulk_run import Terms
from roundsman_console.acts.bulk.limits import (
    AT_ONCE,
    CANARY,
    CANARY_WAIT,
    LONGEST_SELECTION,
    RATE,
    read_terms,
)
from roundsman_console.base.limits import STOP_AT, WAIT
from roundsman_console.base.typed_inputs import read_instant
from roundsman_console.faces.cli.filter_options import filters, with_filters
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.facts.orders.selection import Selection

By: TypeAlias = Annotated[
    str | None,
    typer.Option("--by", "--as", help="Who asks; this user of the operating system by default."),
]
# `extend` has another --by: the additional time.
As: TypeAlias = Annotated[
    str | None, typer.Option("--as", help="Who asks; this user of the operating system by default.")
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Yes: TypeAlias = Annotated[
    bool, typer.Option("--yes", "-y", help="Do not ask to confirm; required in scripts.")
]
Wait: TypeAlias = Annotated[
    float, typer.Option(min=0.1, max=900, help="Seconds to wait for the outcome.")
]
NoWait: TypeAlias = Annotated[
    bool, typer.Option("--no-wait", help="Send the command and do not wait.")
]

_option = partial(typer.Option, rich_help_panel="Many orders at once")
Go: TypeAlias = Annotated[
    bool, _option("--go", help="Run the command; without --go, only show what it would do.")
]
Canary: TypeAlias = Annotated[
    int, _option("--canary", help="Orders to send first; the others wait for their results.")
]
CanaryWait: TypeAlias = Annotated[
    str, _option("--canary-wait", help="Longest wait for the next result: 30s, 5m.", metavar="TIME")
]
Rate: TypeAlias = Annotated[float, _option("--rate", help="Orders per second.")]
StopAt: TypeAlias = Annotated[
    str,
    _option("--stop-at", help="Stop if a larger share fails again: 20%, 0%.", metavar="SHARE"),
]
AtOnce: TypeAlias = Annotated[int, _option("--at-once", help="Maximum number of orders in flight.")]
Anyway: TypeAlias = Annotated[
    bool, _option("--anyway", help="Also send orders that would wait for a held agent.")
]


AsOf: TypeAlias = Annotated[
    str | None,
    _option(
        "--as-of",
        help="With --state Completed: ages are those at this instant. The dry run prints it.",
        metavar="INSTANT",
    ),
]


@dataclass(frozen=True, slots=True)
class CommandOptions:
    """The options that every command has."""

    reason: str
    by: str | None
    """Who sends the command; None for the default name."""
    stack: str | None
    """The stack's name; None for the name in samconfig.toml."""
    as_json: bool
    yes: bool
    """Do not ask for confirmation."""
    wait: float
    """How long to wait for the outcome, in seconds."""
    no_wait: bool
    """Only send the command."""


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """A command line, to be typed again."""

    command: str
    arguments: tuple[str, ...]
    options: tuple[str, ...]

    def with_options(self, *options: str) -> str:
        """Return the command line with further options, quoted for a shell."""
        return command_line(self.command, *self.arguments, options=(*self.options, *options))

    def carried_out(self, *options: str) -> str:
        """Return the command line that carries out, with further options, what was tried."""
        tried = tuple(word for word in self.options if word != "--dry-run")
        return replace(self, options=tried).with_options(*options)


@dataclass(frozen=True, slots=True)
class ParsedOptions:
    """The values of the common options."""

    manner: CommandOptions
    selection: Selection | None
    """The filter; None if no filter option was given."""
    as_of: int | None
    """The instant of the ages in the filter, in epoch ms; None for now."""
    terms: Terms
    go: bool
    typed: TypedCommand
    """The command line, without --go and --json."""
    selected: str
    """The orders and filter options of the command line, at most LONGEST_SELECTION characters."""


@with_filters(command=True)
def read_common(
    *,
    context: typer.Context,
    reason: str,
    by: By = None,
    selection: Selection,
    as_of: AsOf = None,
    go: Go = False,
    canary: Canary = CANARY,
    canary_wait: CanaryWait = CANARY_WAIT,
    rate: Rate = RATE,
    at_once: AtOnce = AT_ONCE,
    stop_at: StopAt = STOP_AT,
    anyway: Anyway = False,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = WAIT,
    no_wait: NoWait = False,
) -> ParsedOptions:
    """Return the options that all commands on orders have.

    Raises ConsoleError or InvalidArgument for a wrong one.
    """
    return ParsedOptions(
        manner=CommandOptions(reason, by, stack, as_json, yes, wait, no_wait),
        selection=None if selection.everything else selection,
        as_of=None if as_of is None else read_instant(as_of),
        terms=read_terms(canary, canary_wait, rate, at_once, stop_at, anyway=anyway),
        go=go,
        typed=_typed(context),
        selected=_selected(context),
    )


SELECTS = ("orders", *(one.name for one in filters(command=True)), "as_of")
"""The parameters that select the orders of a command."""
MANY = frozenset({*SELECTS, "go", "canary", "canary_wait", "rate", "at_once", "stop_at", "anyway"})
"""The parameters of a command on several orders."""


_ASKED_ANEW = ("go", "as_json")
"""The parameters that are not part of a command line to type again."""


def _typed(context: typer.Context) -> TypedCommand:
    given = [*_given(context, selecting=True), *_given(context, selecting=False)]
    return TypedCommand(
        context.info_name or "",
        tuple(word for option, words in given if option is None for word in words),
        tuple(word for option, words in given if option is not None for word in words),
    )


def _selected(context: typer.Context) -> str:
    """Return the orders and filter options, at most LONGEST_SELECTION characters."""
    words = [word for _, words in _given(context, selecting=True) for word in words]
    return shlex.join(words)[:LONGEST_SELECTION]


def _given(
    context: typer.Context, *, selecting: bool
) -> Iterator[tuple[str | None, Sequence[str]]]:
    """Yield the words of each parameter that was typed, with its option; None for an argument.

    `selecting` says whether of the orders and filter options, or of the others.
    """
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE" or name in _ASKED_ANEW:
            continue
        if (name in SELECTS) is not selecting:
            continue
        value = context.params[name]
        values = list(value) if isinstance(value, list | tuple) else [value]
        texts = [str(one.value if isinstance(one, Enum) else one) for one in values]
        if parameter.param_type_name != "option":
            yield None, texts
            continue
        option = parameter.opts[0]
        yield option, [option] if value is True else [w for text in texts for w in (option, text)]
