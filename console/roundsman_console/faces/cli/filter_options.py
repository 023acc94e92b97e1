"""The filter options, which are the same for all commands that take a filter."""

import inspect
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Annotated, TypeAlias, TypeVar

import typer

from roundsman.model.states import TaskState
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.verb_options import command_with, flag, parameter
from roundsman_console.facts.orders.filters import read_selection
from roundsman_console.facts.orders.selection import Selection

R = TypeVar("R")

AfterCursor: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--after", help="Continue after the page that printed this cursor.", metavar="CURSOR"
    ),
]

_read_selection: Callable[..., Selection] = read_selection


def filters(step: str = "step") -> Iterator[inspect.Parameter]:
    """Yield the filter options as parameters; `step` is the name of the filter of that name."""
    yield _filter("state", "Only tasks in this state.", None, TaskState | None)
    yield _filter("workflow", "Only tasks of this workflow.", "NAME")
    yield _filter(step, "Only tasks at this step, or that failed at it.", "NAME")
    yield _filter("error", "Only tasks with this error type: CardDeclined.", "TYPE")
    yield _filter("agent", "Only tasks at a step of this agent, or that failed at one.", "NAME")
    yield _filter("older", "Only tasks submitted longer ago than this: 90s, 2h, 1d.", "TIME")
    yield _filter("newer", "Only tasks submitted more recently than this: 90s, 2h, 1d.", "TIME")
    yield _filter("group", "Only tasks of this failure group: f-1a2b3c4d.", "GROUP")
    yield _filter(
        "tag",
        "Only orders with this value: tenant=shop-1, correlationId=web-7 or "
        "priority=urgent. May be repeated.",
        "NAME=VALUE",
        list[str] | None,
    )
    yield _filter("starts", "Only orders whose id starts with this.", "TEXT")
    yield flag("left_out", "--left-out", "Only orders that have left out an item that failed.")


def _filter(
    name: str, words: str, metavar: str | None, kind: object = str | None
) -> inspect.Parameter:
    option = typer.Option(
        f"--{name.replace('_', '-')}", help=words, metavar=metavar, case_sensitive=False
    )
    return parameter(name, Annotated[kind, option], None)


def with_filters(step: str = "step") -> Callable[[Callable[..., R]], Callable[..., R]]:
    """Give a function the filter options in the place of its parameter `selection`.

    A wrong one is reported before the function is called. `step` is that of `filters`.
    """
    names = [one.name for one in filters(step)]

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        def filtered(**typed: object) -> R:
            given = {name: typed.pop(name) for name in names}
            with sentences():
                selection = _read_selection(step=given.pop(step), **given)
            return function(selection=selection, **typed)

        own = inspect.signature(function, eval_str=True).parameters.values()
        every = (filters(step) if one.name == "selection" else [one] for one in own)
        return command_with(filtered, inspect.getdoc(function), [*chain.from_iterable(every)])

    return decorate
