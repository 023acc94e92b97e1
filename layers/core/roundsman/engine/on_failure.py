"""How a task ends that cannot go on: the strategy of the failure that came first.

An ending task claims no new step and repeats none; what is under way is let finish. Its step's
strategy decides, after the point of no return Archive in any case; an operator's word overrides.
"""

from roundsman.engine.decision import DecisionContext
from roundsman.engine.fan_out import leave_out, tolerance
from roundsman.engine.transitions import StepEvent
from roundsman.model.instants import clock_time, spoken
from roundsman.model.plan import StepPlan, StrategyPlan, UndoPlan, WaitPlan
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import UNDO, Effect, StepError, Termination, operation_of

NOT_COMPLETE = "NotComplete"


def give_up(
    context: DecisionContext,
    step: StepPlan,
    event: StepEvent,
    error: StepError,
    why: str,
    *,
    effect: Effect | None = None,
) -> None:
    """No attempt of the step's operation is left, or none would help.

    `effect` is what is proven of the step's effect.
    """
    record = context.decision.step(step.name)
    attempt = record.failure_count + 1 if record.started_at is not None else None
    undo = operation_of(record) == UNDO
    context.decision.fail(step.name, event, error, effect)
    tolerated = None if undo else tolerance(context, step)
    said = f"{why}; {tolerated}" if tolerated else why
    context.decision.record("undo failed" if undo else "failed", step.name, attempt, said)
    if tolerated:
        leave_out(context, step)
        return
    if not undo:
        context.decision.end(_ending(context, step.on_failure, why, step.name, error))
    elif context.decision.ending is None:
        # It was to go on after its undo, and cannot: what stands is for a person to say.
        context.decision.end(Termination(TaskState.ARCHIVED, why, step.name, error=error))
    # Else the other compensations go on, and the task ends Archived after them.


def end_if_overdue(context: DecisionContext) -> None:
    """A task that is not complete in time has failed, whatever its steps are at."""
    task = context.decision.task
    if context.decision.ending or task.complete_by > context.now or context.all_done():
        return
    late = spoken(context.now - task.complete_by)
    why = f"the task was not complete by {clock_time(task.complete_by)} ({late} ago)"
    error = StepError(NOT_COMPLETE, "the task was not complete in time")
    if context.decision.end(_ending(context, context.plan.on_failure, why, None, error)):
        context.decision.record("failed", None, None, why)


def _ending(
    context: DecisionContext, strategy: StrategyPlan, why: str, step: str | None, error: StepError
) -> Termination:
    final = strategy.then if isinstance(strategy, WaitPlan) else strategy
    if isinstance(final, UndoPlan) and not _past_no_return(context):
        return Termination(TaskState.UNDONE, why, step, undo=True, error=error)
    return Termination(TaskState.ARCHIVED, why, step, error=error)


def _past_no_return(context: DecisionContext) -> bool:
    point = context.plan.point_of_no_return
    if point is None:
        return False
    states = {context.decision.step(name).process_state for name in context.plan.instances(point)}
    return ProcessState.PROCESSED in states and states <= DONE
