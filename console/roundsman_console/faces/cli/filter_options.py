"""The filter options, which are the same for all commands that take a filter."""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Annotated, TypeAlias, TypeVar

import typer

from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.verb_options import command_with, flag, parameter
from roundsman_console.facts.orders.filters import (
    FILTERS,
    Filter,
    filters_for,
    read_tags,
    tag_help,
)
from roundsman_console.facts.orders.selection import read_selection

R = TypeVar("R")

AfterCursor: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--after", help="Continue after the page that printed this cursor.", metavar="CURSOR"
    ),
]

TAG_PARAMETER = "tag"
"""The parameter of the option that stands for all filters that are tags."""


def filters(*, command: bool = False) -> Iterator[inspect.Parameter]:
    """Yield the filter options as parameters; `command`: beside the arguments of a command."""
    offered = filters_for(command=command)
    found = {_parameter_of(one, command=command): one for one in offered.values()}
    for name, one in found.items():
        yield _filter(name, one, one.option(command=command))


def _parameter_of(one: Filter, *, command: bool) -> str:
    return TAG_PARAMETER if one.is_tag else one.name_for(command=command)


def _filter(name: str, one: Filter, option: str) -> inspect.Parameter:
    if one.is_tag:
        tag = typer.Option(option, help=tag_help(), metavar="NAME=VALUE")
        return parameter(name, Annotated[list[str] | None, tag], None)
    if one.is_check:
        return flag(name, option, one.help)
    kind = one.one_of or str
    typed = typer.Option(option, help=one.help, metavar=one.metavar, case_sensitive=False)
    return parameter(name, Annotated[kind | None, typed], None)


def with_filters(*, command: bool = False) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a function the filter options in the place of its parameter `selection`.

    A wrong one is reported before the function is called. `command` is that of `filters`.
    """

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        def filtered(**typed: object) -> R:
            given = {one.name: typed.pop(one.name, one.default) for one in filters(command=command)}
            with sentences():
                selection = read_selection(_texts(given, command=command))
            return function(selection=selection, **typed)

        own = inspect.signature(function, eval_str=True).parameters.values()
        every = (filters(command=command) if one.name == "selection" else [one] for one in own)
        return command_with(filtered, inspect.getdoc(function), [*chain.from_iterable(every)])

    return decorate


def _texts(given: Mapping[str, object], *, command: bool) -> dict[str, str | None]:
    """Return what was typed, by the names of FILTERS."""
    tags = given[TAG_PARAMETER]
    texts: dict[str, str | None] = {**read_tags(tags if isinstance(tags, Sequence) else ())}
    for one in FILTERS.values():
        value = given.get(one.name_for(command=command))
        if value not in (None, False):
            texts[one.name] = str(value)
    return texts
