"""The closing steps of an end: they run when a task has come to it, and before it is stored.

A workflow may have some for a task that is undone, that fails (each time it would be Archived) and
that is cancelled. Nothing of the task is performed or undone any more then. They have the time of
all their attempts, held or not; after that the end stands, and an alert names those that failed. A
closing step waits until those before it are over, however they ended. It is never undone.

Each end has one round of them: a task that a person lets go on forgets them, and begins them again,
under new keys, at its next end.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import few_words
from roundsman.engine.task_state import has_started, state_without_closing
from roundsman.engine.transitions import StepEvent
from roundsman.errors import Refused
from roundsman.model.events import (
    Cancel,
    ChangeAsked,
    InspectAt,
    Reconcile,
    Resubmit,
    UndoAsked,
)
from roundsman.model.instants import second
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Closing, StepError

NOT_IN_TIME = "NotInTime"
"""The error type of a closing step that was not over when its task had to end."""


def begin_closing(context: DecisionContext) -> bool:
    """Begin the closing steps if the task has come to an end that has some. Returns whether it did.

    Those of another end that the task had come to before are forgotten.
    """
    decision, end = context.decision, _end_of(context)
    closing = decision.task.closing
    if closing is not None:
        if closing.end is end:
            return False
        forget_closing(context)
    if end is None or end is decision.before.state or not has_started(decision.changed_task):
        return False
    steps = context.stored_plan.closing.get(end, {})
    if not steps:
        return False
    by = context.now + sum(map(_time_of, steps.values()))
    decision.task = replace(decision.task, closing=Closing(end, by, tuple(steps)))
    decision.action(InspectAt(by))
    decision.record(
        "closing", None, None, f"{few_words(list(steps))}: before it ends, until {second(by)}"
    )
    return True


def end_overdue_closing(context: DecisionContext) -> None:
    """Give up each closing step that waits when the time of all of them is over.

    One that is at its agent is overdue as any other step.
    """
    decision, closing = context.decision, context.decision.task.closing
    if closing is None or decision.before.ended or context.now < closing.by:
        return
    for name in closing.steps:
        if decision.step(name).process_state is not ProcessState.PENDING:
            continue
        why = f"{name}: it was not over by {second(closing.by)}, when its task had to end"
        attempt = decision.step(name).failure_count + 1
        decision.fail(name, StepEvent.REFUSED, StepError(NOT_IN_TIME, "not over in time"))
        decision.record("failed", name, attempt, why)


def forget_closing(context: DecisionContext) -> None:
    """Forget the closing steps of a task that goes on, or ends in another way. Used keys stay
    used."""
    decision = context.decision
    if decision.task.closing is None:
        return
    for name in decision.task.closing.steps:
        decision.remove(name, StepEvent.REMOVED)
    decision.task = replace(decision.task, closing=None)


def before_command(context: DecisionContext, event: ChangeAsked) -> None:
    """Forget the closing steps if the task goes on by the command, or ends in another way.

    Raises Refused while they run.
    """
    task = context.decision.before
    if task.closing is not None and not task.ended and not isinstance(event, Reconcile):
        raise Refused(
            f"its closing steps run, until {second(task.closing.by)} at most; then it is "
            f"{task.closing.end}, and the command is possible"
        )
    if isinstance(event, Resubmit | UndoAsked | Cancel):
        forget_closing(context)


def _end_of(context: DecisionContext) -> TaskState | None:
    """The end that the task has come to, without its closing steps; None while it goes on."""
    if context.decision.ending is None:
        return None
    return state_without_closing(context.stored_plan, context.decision.changed_task, context.now)


def _time_of(step: StepPlan) -> int:
    return step.complete_within * step.retry.max_attempts
