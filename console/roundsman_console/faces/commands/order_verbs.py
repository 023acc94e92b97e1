"""The verbs on orders as commands: resubmit, undo, cancel, resolve, extend, run and move.

Each is for one order or, as a bulk run, for several.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated

import typer

from roundsman.model.states import TaskState
from roundsman_console.acts.order.verbs import (
    CancelVerb,
    ExtendVerb,
    MoveVerb,
    OrderVerb,
    ResolveVerb,
    ResubmitVerb,
    RunVerb,
    UndoVerb,
)
from roundsman_console.acts.verb import Argument, FieldKind
from roundsman_console.base.errors import USAGE, ConsoleError
from roundsman_console.faces.cli.act import execute
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.options import As, read_common
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

AS_OF = "as_of"
"""The parameter that only a command on completed orders has."""
_COMMON = inspect.signature(read_common, eval_str=True).parameters


def _command(verb: type[OrderVerb]) -> Callable[..., None]:
    step = next((one for one in verb.arguments() if one.kind is FieldKind.STEP), None)
    names = [name for name in _COMMON if name != AS_OF or TaskState.COMPLETED in verb.states]
    takes_by = any(one.option == "--by" for one in verb.arguments())

    def command(**typed: object) -> None:
        with sentences():
            act = read_common(**{name: typed[name] for name in names})
            words = typed.get("orders")
            orders, named = _split(
                verb, step, list(words) if isinstance(words, list) else [], act.selection
            )
            many = len(orders) != 1 or act.selection is not None
            asked = verb.read({**as_typed(verb, typed), **named}, many=many)
        execute(asked, orders, act, dry_run=typed.get("dry_run") is True)

    common = {name: _COMMON[name] for name in names} | {"reason": reason_of(verb)}
    if takes_by:
        common["by"] = common["by"].replace(annotation=As)
    parameters = [_words(step), *parameters_of(verb), *_dry_run(verb), *common.values()]
    return command_with(command, verb.help(), parameters)


def _words(step: Argument | None) -> inspect.Parameter:
    """The orders, with the step that follows them if the verb is about one."""
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


resubmit_command = _command(ResubmitVerb)
undo_command = _command(UndoVerb)
cancel_command = _command(CancelVerb)
resolve_command = _command(ResolveVerb)
extend_command = _command(ExtendVerb)
run_command = _command(RunVerb)
move_command = _command(MoveVerb)
