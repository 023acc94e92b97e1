"""The operator commands on tasks: resubmit, undo, cancel, resolve, extend and run."""

from typing import Annotated

import typer

from roundsman.model.events import Cancel, Extend, Resolve, Resubmit, RunNow, UndoAsked
from roundsman.model.task import Task
from roundsman_console.arguments import (
    check_resubmit,
    read_changes,
    read_duration,
    read_input,
    read_result,
)
from roundsman_console.cli._act import Operation, execute
from roundsman_console.cli._options import (
    DEFAULT_WAIT,
    As,
    AsJson,
    By,
    NoWait,
    ParsedOptions,
    Reason,
    Wait,
    Yes,
    acting,
)
from roundsman_console.cli_errors import USAGE, ConsoleError, sentences
from roundsman_console.inspector.views.step_text import span
from roundsman_console.inspector.views.task_view import may_stand

__all__ = ["DEFAULT_WAIT", "AsJson", "By", "NoWait", "Reason", "Wait", "Yes"]

NEWEST = "newest"

Orders = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[ORDER]...",
        help="The order's id. For several orders, or a filter, the command first shows what "
        "it would do.",
    ),
]


@acting
def resubmit_command(
    act: ParsedOptions,
    orders: Orders = None,
    step: Annotated[
        list[str] | None,
        typer.Option("--step", help="A failed step; may be repeated. Default: all of them."),
    ] = None,
    fresh_key: Annotated[
        bool,
        typer.Option("--fresh-key", help="Use a new key, after an undo under the old one."),
    ] = False,
    again: Annotated[
        bool,
        typer.Option("--again", help="Begin an undone or cancelled task again from the start."),
    ] = False,
    file: Annotated[
        str | None,
        typer.Option(
            "--input", metavar="FILE", help="The whole corrected input as JSON; - for stdin."
        ),
    ] = None,
    sets: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Correct a field of the input, as in lines[0].sku=KB-102; JSON or plain text.",
        ),
    ] = None,
    removes: Annotated[
        list[str] | None,
        typer.Option("--remove", metavar="PATH", help="Remove a field of the input."),
    ] = None,
    used: Annotated[
        bool,
        typer.Option("--used", help="Also correct what a finished step has used."),
    ] = False,
    not_done: Annotated[
        list[str] | None,
        typer.Option(
            "--not-done",
            metavar="STEP",
            help="A failed step that did not happen, as you know. Needs a correction or "
            "--fresh-key.",
        ),
    ] = None,
    plan: Annotated[
        str | None,
        typer.Option(
            help="newest: continue under the newest definition of the workflow, as deployed. "
            "Default: the task's own."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Send nothing; show what would change."),
    ] = False,
) -> None:
    """Continue a failed task: try its failed steps, or its failed undo, again under the same keys.

    Example: roundsman resubmit ord-1001 --reason "the carrier is back"

    Example: roundsman resubmit --group f-1a2b3c4d --reason "the carrier is back" --go

    Example: roundsman resubmit ord-1001 --set paymentToken=tok_visa --reason "a new card"

    Example: roundsman resubmit ord-1001 --plan newest --dry-run --reason "the retries are fixed"
    """
    steps, stated = tuple(dict.fromkeys(step or ())), tuple(dict.fromkeys(not_done or ()))
    with sentences():
        if file is not None and (sets or removes):
            raise ConsoleError("Give either --input, or --set and --remove.", USAGE)
        changes, whole = read_changes(sets or (), removes or ()), read_input(file)
        corrected = bool(changes) or whole is not None
        if plan not in (None, NEWEST):
            raise ConsoleError(
                "--plan must be newest. Leave it out for the task's own plan.", USAGE
            )
        check_resubmit(
            steps=steps,
            corrected=corrected,
            used=used,
            not_done=stated,
            fresh_key=fresh_key,
            newest_plan=plan is not None,
        )
    deed = Operation(
        lambda asked: Resubmit(
            asked, steps, fresh_key, again, changes=changes, used=used, not_done=stated
        ),
        (*steps, *stated),
        _begin_all_over
        if again
        else _continue_anew
        if plan
        else _continue_corrected
        if corrected
        else None,
        (lambda many: f"Begin {many} again from the start, repeating every effect?")
        if again
        else (lambda many: f"Continue {many} under the newest plan?")
        if plan
        else (lambda many: f"Continue {many} with the corrected input?")
        if corrected
        else None,
        again,
        whole,
        plan is not None,
        dry_run,
    )
    execute(deed, orders or (), act)


@acting
def undo_command(act: ParsedOptions, orders: Orders = None) -> None:
    """Undo all that may have happened, newest first; the task ends Undone.

    Example: roundsman undo ord-1001 --reason "the customer called"
    """
    deed = Operation(UndoAsked, (), _undo, lambda many: f"Undo {many}?")
    execute(deed, orders or (), act)


@acting
def cancel_command(
    act: ParsedOptions,
    orders: Orders = None,
    no_undo: Annotated[
        bool, typer.Option("--no-undo", help="Do not undo what has happened.")
    ] = False,
) -> None:
    """Stop a task, after undoing what may have happened; it ends Cancelled.

    Example: roundsman cancel ord-1001 --reason "ordered twice"
    """
    rest = "keep what has happened" if no_undo else "undo what has happened"
    deed = Operation(
        lambda asked: Cancel(asked, undo=not no_undo),
        (),
        _cancel_as_it_is if no_undo else _cancel,
        lambda many: f"Cancel {many}, and {rest}?",
    )
    execute(deed, orders or (), act)


@acting
def resolve_command(
    act: ParsedOptions,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[ORDER]... STEP", help="The order's id, and the step whose outcome you know."
        ),
    ],
    did: Annotated[bool, typer.Option("--did", help="The step happened.")] = False,
    did_not: Annotated[bool, typer.Option("--did-not", help="The step did not happen.")] = False,
    result: Annotated[
        str | None, typer.Option(help="With --did: the step's result, as JSON or @file.")
    ] = None,
    fresh_key: Annotated[
        bool,
        typer.Option("--fresh-key", help="With --did-not: try the step again under a new key."),
    ] = False,
) -> None:
    """Record the outcome of a step, as you found it at the remote service.

    Example: roundsman resolve ord-1001 charge_card --did --result '{"chargeId": "ch_1"}'
    --reason "seen in the acquirer's console"
    """
    *orders, step = words
    many = len(orders) != 1
    with sentences():
        if did == did_not:
            raise ConsoleError("Give either --did or --did-not.", USAGE)
        if did_not and result is not None:
            raise ConsoleError("--result requires --did.", USAGE)
        if did and fresh_key:
            raise ConsoleError("--fresh-key requires --did-not.", USAGE)
        if many and result is not None:
            raise ConsoleError(
                "--result works for one order only. Resolve the orders one by one.", USAGE
            )
        if not orders and act.selection is None:
            raise ConsoleError("Give an order and its step: resolve ORDER STEP.", USAGE)
        answered = read_result(result)
    deed = Operation(lambda asked: Resolve(asked, step, did, answered, fresh_key), (step,))
    execute(deed, orders, act)


@acting
def extend_command(
    act: ParsedOptions,
    more: Annotated[str, typer.Option("--by", help="Additional time: 90s, 10m, 1h30m, 2d.")],
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[ORDER] [STEP]",
            help="The order's id, and a step at its agent; without a step, the whole task.",
        ),
    ] = None,
    by: As = None,  # noqa: ARG001  # `acting` reads it with the common options
) -> None:
    """Give more time to a task, or to a step that waits for its agent.

    Example: roundsman extend ord-1001 create_shipment --by 10m --reason "the carrier is slow"
    """
    with sentences():
        seconds = read_duration(more)
        given = words or []
        orders = given[:1] if act.selection is None else []
        steps = tuple(given[len(orders) :])
        if len(steps) > 1:
            raise ConsoleError(
                "extend takes one order and one of its steps. For many orders, give a filter.",
                USAGE,
            )
    step = steps[0] if steps else None
    execute(Operation(lambda asked: Extend(asked, seconds, step), steps), orders, act)


@acting
def run_command(act: ParsedOptions, orders: Orders = None) -> None:
    """Start a Scheduled task, or the next attempt of a task in Retry, now.

    Example: roundsman run ord-1001 --reason "the acquirer is back"
    """
    execute(Operation(RunNow), orders or (), act)


def _continue_corrected(task: Task) -> str:
    return f"{task.task_id} is {task.state}. Continue it with the corrected input?"


def _continue_anew(task: Task) -> str:
    return f"{task.task_id} is {task.state}. Continue it under the newest plan?"


def _undo(task: Task) -> str:
    return f"{task.task_id} is {task.state}; {_standing(task)}. Undo it?"


def _cancel(task: Task) -> str:
    return f"{task.task_id} is {task.state}; {_standing(task)}. Undo that and cancel the task?"


def _cancel_as_it_is(task: Task) -> str:
    return f"{task.task_id} is {task.state}; {_standing(task)}. Cancel it and keep that?"


def _begin_all_over(task: Task) -> str:
    return f"{task.task_id} is {task.state}. Begin again from the start, repeating every effect?"


def _standing(task: Task) -> str:
    names = may_stand(task)
    if not names:
        return "nothing has happened yet"
    return f"this may have happened: {span(names)}"
