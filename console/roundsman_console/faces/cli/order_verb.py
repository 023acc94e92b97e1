"""The command of a verb on orders: for one order or, as a bulk run, for several."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import typer

from roundsman.model.states import TaskState
from roundsman_console.acts.order.verbs import OrderVerb
from roundsman_console.acts.verb import Argument, FieldKind
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.cli.act import execute
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import MANY, As, read_common
from roundsman_console.faces.cli.verb_options import (
    as_typed,
    command_with,
    parameter,
    parameters_of,
    reason_of,
)
from roundsman_console.facts.orders.selection import Selection

Orders = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ORDER]...",
        help="The order's id. For several orders, or a filter, the command first shows what "
        "it would do.",
    ),
]

Order = Annotated[str, typer.Argument(metavar="ORDER", help="The order's id.")]

AS_OF = "as_of"
"""The parameter that only a command on completed orders has."""
_COMMON = inspect.signature(read_common, eval_str=True).parameters


def command_on_orders(verb: type[OrderVerb]) -> Callable[..., None]:
    """Make the command of a verb on orders."""
    step = next((one for one in verb.arguments() if one.kind is FieldKind.STEP), None)
    left_out = () if verb.of_many else MANY
    names = [
        name
        for name in _COMMON
        if name not in left_out and (name != AS_OF or TaskState.COMPLETED in verb.states)
    ]
    takes_by = any(one.option == "--by" for one in verb.arguments())

    def command(**typed: object) -> None:
        with sentences():
            act = read_common(**{name: typed[name] for name in names})
            words = typed.get("orders") or []
            orders, named = _split(
                verb, step, words if isinstance(words, list) else [str(words)], act.selection
            )
            many = len(orders) != 1 or act.selection is not None
            asked = verb.read({**as_typed(verb, typed), **named}, many=many)
        execute(asked, orders, act, dry_run=typed.get("dry_run") is True)

    common = {name: _COMMON[name] for name in names} | {"reason": reason_of(verb)}
    if takes_by:
        common["by"] = common["by"].replace(annotation=As)
    parameters = [_words(verb, step), *parameters_of(verb), *_dry_run(verb), *common.values()]
    return command_with(command, verb.help(), parameters)


def _words(verb: type[OrderVerb], step: Argument | None) -> inspect.Parameter:
    """The orders, with the step that follows them if the verb is about one."""
    if not verb.of_many:
        return parameter("orders", Order, inspect.Parameter.empty)
    if step is None:
        return parameter("orders", Orders, None)
    if step.required:
        argument = typer.Argument(metavar="[ORDER]... STEP", help=step.help)
        return parameter("orders", Annotated[list[str], argument], inspect.Parameter.empty)
    argument = typer.Argument(metavar="[ORDER] [STEP]", help=step.help)
    return parameter("orders", Annotated[list[str] | None, argument], None)


def _split(
    verb: type[OrderVerb], step: Argument | None, words: list[str], selection: Selection | None
) -> tuple[list[str], Mapping[str, str]]:
    """Return the orders that are typed, and the step after them."""
    if step is None:
        return words, {}
    if step.required:
        if len(words) == 1 and selection is None:
            raise ConsoleError(f"Give an order and its step: {verb.name} ORDER STEP.", USAGE)
        return words[:-1], {step.name: words[-1]}
    orders = words[:1] if selection is None else []
    steps = words[len(orders) :]
    if len(steps) > 1:
        raise ConsoleError(
            f"{verb.name} takes one order and one of its steps. For many orders, give a filter.",
            USAGE,
        )
    return orders, {step.name: steps[0]} if steps else {}


def _dry_run(verb: type[OrderVerb]) -> Iterator[inspect.Parameter]:
    if verb.dry_run:
        option = Annotated[bool, typer.Option("--dry-run", help=verb.dry_run)]
        yield parameter("dry_run", option, False)
