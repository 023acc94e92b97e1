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
from roundsman.engine.task_state import has_started, state_of
from roundsman.engine.transitions import StepEvent
from roundsman.errors import Refused
from roundsman.model.events import ChangeAsked, InspectAt, Reconcile
from roundsman.model.instants import second
from roundsman.model.states import ProcessState
from roundsman.model.task import Closing, StepError

NOT_IN_TIME = "NotInTime"
"""The error type of a closing step that was not over when its task had to end."""


def begin_closing(context: DecisionContext) -> None:
    """Begin the closing steps if the task has come to an end that has some, in this decision."""
    decision, task = context.decision, context.decision.changed_task
    if task.closing is not None:
        return
    end = state_of(context.plan, task, context.now)
    steps = context.stored_plan.closing.get(end)
    if steps is None or end is decision.before.state or not has_started(task):
        return
    by = context.now + sum(map(_time_of, steps.values()))
    decision.task = replace(decision.task, closing=Closing(end, by, tuple(steps)))
    decision.action(InspectAt(by))
    why = f"{few_words(list(steps))}: before it ends as {end}, until {second(by)}"
    decision.record("closing", None, None, why)


def end_overdue_closing(context: DecisionContext) -> None:
    """Give up each closing step that waits when the time of all of them is over.

    One that is at its agent is overdue as any other step.
    """
    decision, closing = context.decision, context.decision.task.closing
    if closing is None or context.now < closing.by:
        return
    for name in closing.steps:
        if decision.step(name).process_state is not ProcessState.PENDING:
            continue
        decision.fail(name, StepEvent.REFUSED, StepError(NOT_IN_TIME, "not over in time"))
        why = f"{name}: it was not over by {second(closing.by)}, when its task had to end"
        decision.record("failed", name, None, why)


def before_command(context: DecisionContext, closing: Closing, event: ChangeAsked) -> None:
    """Forget the closing steps of a task that has ended, as a command may let it go on. Used keys
    stay used.

    Raises Refused while they run.
    """
    decision = context.decision
    if isinstance(event, Reconcile):
        return
    if not decision.before.ended:
        raise Refused(
            f"its closing steps run, until {second(closing.by)} at most; then it is "
            f"{closing.end}, and the command is possible"
        )
    for name in closing.steps:
        decision.remove(name, StepEvent.REMOVED)
    decision.task = replace(decision.task, closing=None)


def _time_of(step: StepPlan) -> int:
    return step.complete_within * step.retry.max_attempts
