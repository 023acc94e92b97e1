"""Sleeps: steps without an agent that end after a time, or at an instant that the order gives.

A sleep is one decision when it begins and one when it ends. Between them, the task's due entry is
the end of the sleep, and the supervisor ends it. An instant that is past ends the sleep at once. An
order without a usable instant, or with one after the end of its task, fails the step: no time that
passes would repair that.

Nothing outside of the task changes by a sleep. So there is nothing to undo, no hold stops it, and a
task that ends does not wait for it. If the task is resubmitted, the sleep goes on until the instant
that it had.
"""

from roundsman.definition.expressions import evaluate_instant
from roundsman.definition.plan import SleepForPlan, SleepUntilPlan, StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.on_failure import give_up
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.events import InspectAt
from roundsman.model.instants import second
from roundsman.model.situations import Asleep, End, Ended
from roundsman.model.task import StepError

NO_INSTANT = "NoInstant"
"""The error type of a sleep for which the order gives no usable instant."""

TOO_LONG = "SleepTooLong"
"""The error type of a sleep that would end after its task must be complete."""


def fall_asleep(
    context: DecisionContext, step: StepPlan, sleep: SleepForPlan | SleepUntilPlan
) -> None:
    """Begin the sleep; end it at once if its instant is past, or fail the step if it is wrong."""
    decision = context.decision
    try:
        until = _until(context, sleep)
    except ValueError as problem:
        _fail(context, step, StepError(NO_INSTANT, str(problem)))
        return
    by = decision.task.perform_by
    if until <= context.now:
        _wake(context, step, "its instant is past, so it does not sleep")
    elif until > by:
        message = f"it would sleep beyond {second(by)}, when the task must be complete"
        _fail(context, step, StepError(TOO_LONG, message))
    else:
        asleep = Asleep(until=until, since=context.now)
        decision.move(step.name, StepEvent.FELL_ASLEEP, asleep, step_values(error=None))
        decision.action(InspectAt(until))
        # No row of the history: it would cost as much as the whole sleep.
        decision.note(f"{step.name}: sleeps until {second(until)}")


def wake(context: DecisionContext) -> None:
    """End each sleep whose time is over, unless the task is ending."""
    if context.decision.ending is not None:
        return
    for step in context.plan.steps.values():
        asleep = context.decision.situation(step.name)
        if isinstance(asleep, Asleep) and asleep.until <= context.now:
            _wake(context, step, "its sleep is over")


def _until(context: DecisionContext, sleep: SleepForPlan | SleepUntilPlan) -> int:
    """When the sleep ends (epoch ms). Raises ValueError if the order gives no usable instant."""
    if isinstance(sleep, SleepForPlan):
        return context.now + sleep.duration
    results = context.results
    return evaluate_instant(sleep.instant, context.input, results, context.came)


def _wake(context: DecisionContext, step: StepPlan, why: str) -> None:
    ended = Ended(how=End.SUCCEEDED)
    context.decision.move(
        step.name, StepEvent.WOKE, ended, step_values(finished_at=context.now, error=None)
    )
    context.decision.note(f"{step.name}: {why}")


def _fail(context: DecisionContext, step: StepPlan, error: StepError) -> None:
    why = f"{step.name}: {error.message}"
    give_up(context, step, StepEvent.CONDITION_FAILED, error, why)
