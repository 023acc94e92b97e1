"""The verbs of operators: what a person asks of one task, each with who asks and why."""

from typing import Annotated

import typer

from roundsman.events import Cancel, Extend, Resolve, Resubmit, RunNow, UndoAsked
from roundsman.standing import effect_may_stand
from roundsman.task import Task
from roundsman_console.arguments import read_duration, read_result
from roundsman_console.commanding import Manner, Wish, carry_out
from roundsman_console.sentences import USAGE, ConsoleError, sentences
from roundsman_console.stack import StackOption
from roundsman_console.step_facts import span

Order = Annotated[str, typer.Argument(help="The order's id.")]
Reason = Annotated[str, typer.Option(help="Why; it is kept in the task's history.")]
By = Annotated[
    str | None,
    typer.Option("--by", "--as", help="Who asks; this user of the operating system by default."),
]
# `extend` says with --by how much time is given.
As = Annotated[
    str | None, typer.Option("--as", help="Who asks; this user of the operating system by default.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; scripts must say it.")]
Wait = Annotated[float, typer.Option(min=0.1, max=900, help="Seconds to wait for the outcome.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Send it and do not wait.")]
DEFAULT_WAIT = 15.0


def resubmit_command(
    order: Order,
    reason: Reason,
    step: Annotated[
        list[str] | None,
        typer.Option("--step", help="A failed step, all by default; may be said more than once."),
    ] = None,
    fresh_key: Annotated[
        bool, typer.Option("--fresh-key", help="Under a new key: only after a definite refusal.")
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Begin an undone or cancelled task all over.")
    ] = False,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Go on with a task that has failed: its failed steps are tried again, under their keys.

    Example: roundsman resubmit ord-1001 --reason "the carrier is back"
    """
    steps = tuple(dict.fromkeys(step or ()))
    wish = Wish(
        order,
        lambda asked: Resubmit(asked, steps, fresh_key, again),
        steps,
        _begin_all_over if again else None,
    )
    carry_out(wish, Manner(reason, by, stack, as_json, yes, wait, no_wait))


def undo_command(
    order: Order,
    reason: Reason,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Undo all that may have happened, newest first; the task ends Undone.

    Example: roundsman undo ord-1001 --reason "the customer called"
    """
    wish = Wish(order, UndoAsked, question=_undo)
    carry_out(wish, Manner(reason, by, stack, as_json, yes, wait, no_wait))


def cancel_command(
    order: Order,
    reason: Reason,
    no_undo: Annotated[
        bool, typer.Option("--no-undo", help="Leave standing whatever has happened.")
    ] = False,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Stop a task, after undoing what may have happened; it ends Cancelled.

    Example: roundsman cancel ord-1001 --reason "ordered twice"
    """
    wish = Wish(
        order,
        lambda asked: Cancel(asked, undo=not no_undo),
        question=_cancel_as_it_is if no_undo else _cancel,
    )
    carry_out(wish, Manner(reason, by, stack, as_json, yes, wait, no_wait))


def resolve_command(
    order: Order,
    step: Annotated[str, typer.Argument(help="The step whose outcome you know.")],
    reason: Reason,
    did: Annotated[bool, typer.Option("--did", help="It happened.")] = False,
    did_not: Annotated[bool, typer.Option("--did-not", help="It did not happen.")] = False,
    result: Annotated[
        str | None, typer.Option(help="With --did: what the step answers, as JSON or @file.")
    ] = None,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Record the outcome of a step that you have looked up at the remote service.

    Example: roundsman resolve ord-1001 charge_card --did --result '{"chargeId": "ch_1"}'
    --reason "seen in the acquirer's console"
    """
    with sentences():
        if did == did_not:
            raise ConsoleError("Say either --did or --did-not.", USAGE)
        if did_not and result is not None:
            raise ConsoleError("What did not happen has no --result.", USAGE)
        answered = read_result(result)
    wish = Wish(order, lambda asked: Resolve(asked, step, did, answered), (step,))
    carry_out(wish, Manner(reason, by, stack, as_json, yes, wait, no_wait))


def extend_command(
    order: Order,
    more: Annotated[str, typer.Option("--by", help="How much more time: 90s, 10m, 1h30m, 2d.")],
    reason: Reason,
    step: Annotated[
        str | None, typer.Argument(help="A step that is at its agent; else the whole task.")
    ] = None,
    by: As = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Give a task, or one step that is at its agent, more time.

    Example: roundsman extend ord-1001 create_shipment --by 10m --reason "the carrier is slow"
    """
    with sentences():
        seconds = read_duration(more)
    steps = (step,) if step is not None else ()
    wish = Wish(order, lambda asked: Extend(asked, seconds, step), steps)
    carry_out(wish, Manner(reason, by, stack, as_json, yes, wait, no_wait))


def run_command(
    order: Order,
    reason: Reason,
    by: By = None,
    stack: StackOption = None,
    as_json: AsJson = False,
    yes: Yes = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Wait no longer: start a Scheduled task, or the next attempt of one in Retry, at once.

    Example: roundsman run ord-1001 --reason "the acquirer is back"
    """
    carry_out(Wish(order, RunNow), Manner(reason, by, stack, as_json, yes, wait, no_wait))


def _undo(task: Task) -> str:
    return f"{task.task_id} is {task.state}; {_standing(task)}. Undo it?"


def _cancel(task: Task) -> str:
    return f"{task.task_id} is {task.state}; {_standing(task)}. Undo that and cancel the task?"


def _cancel_as_it_is(task: Task) -> str:
    return f"{task.task_id} is {task.state}; {_standing(task)}. Cancel it and leave that standing?"


def _begin_all_over(task: Task) -> str:
    return f"{task.task_id} is {task.state}. Begin all over, every effect once more?"


def _standing(task: Task) -> str:
    names = [name for name, record in task.steps.items() if effect_may_stand(record)]
    if not names:
        return "nothing has happened yet"
    return f"this may have happened: {span(names)}"
