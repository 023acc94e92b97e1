"""How a task ends that has failed: the strategy of the first failure.

An ending task claims no step to perform and retries none; attempts in progress may finish. The
failed step's strategy decides, or the workflow's if the task was not complete by its complete-by or
its deadline. After the point of no return the task is always archived. An operator's command
overrides the strategy.
"""

from roundsman.definition.plan import (
    ArchivePlan,
    SkipPlan,
    StepPlan,
    StrategyPlan,
    UndoPlan,
    WaitPlan,
)
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.fan_out import effect_may_stand, leave_out, may_be_skipped, tolerance
from roundsman.engine.left_out import complete_without_result
from roundsman.engine.transitions import StepEvent
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import PERFORM, UNDO, Effect, StepError, Termination


def give_up(
    context: DecisionContext,
    step: StepPlan,
    event: StepEvent,
    error: StepError,
    why: str,
    *,
    effect: Effect | None = None,
    archives: bool = False,
) -> None:
    """Mark the step as failed for good, and end the task by the step's strategy.

    Called if no attempt of the operation is left or if another cannot help. A tolerated item of a
    fan-out is left out instead. `effect` is what is proven of the step's effect. A step of which an
    attempt has succeeded, whose result could not be taken, is done without a result instead. With
    `archives` the task is archived in any case: only a person can find out what has happened.
    """
    record = context.decision.step(step.name)
    if record.operation == PERFORM and record.left_out is not None:
        complete_without_result(context, step, record.left_out)
        return
    attempt = record.failure_count + 1 if record.started_at is not None else None
    undo = record.operation == UNDO
    context.decision.fail(step.name, event, error, effect)
    tolerated = None if undo or archives else _without_it(context, step, error)
    reason = f"{why}; {tolerated}" if tolerated else why
    context.decision.record("undo failed" if undo else "failed", step.name, attempt, reason)
    if tolerated:
        leave_out(context, step)
        return
    if not undo:
        strategy = ArchivePlan() if archives else step.strategy_for(error.type)
        context.decision.end(ending_by(context, strategy, why, step.name, error))
    elif context.decision.ending is None:
        # The step was to go on after this undo. An operator must find out which effects stand.
        context.decision.end(Termination(TaskState.ARCHIVED, why, step.name, error=error))
    # Otherwise the other compensations go on; a task that ends in undo is Archived after them.


def _without_it(context: DecisionContext, step: StepPlan, error: StepError) -> str | None:
    """Why the task goes on without the step that has failed for good; None if it does not."""
    if isinstance(step.follows(error.type), SkipPlan) and may_be_skipped(context, step):
        return f"skipped, as its workflow says of {error.type}{effect_may_stand(context, step)}"
    return tolerance(context, step)


def ending_by(
    context: DecisionContext, strategy: StrategyPlan, why: str, step: str | None, error: StepError
) -> Termination:
    """How the task ends by this strategy; `step` is the step that failed, or None."""
    if undoes(context, strategy):
        return Termination(TaskState.UNDONE, why, step, undo=True, error=error)
    return Termination(TaskState.ARCHIVED, why, step, error=error)


def undoes(context: DecisionContext, strategy: StrategyPlan) -> bool:
    """Whether the task is undone if a step fails that has this strategy."""
    final = strategy.then if isinstance(strategy, WaitPlan) else strategy
    return isinstance(final, UndoPlan) and not past_no_return(context)


def past_no_return(context: DecisionContext) -> bool:
    """Whether the task is past the plan's point of no return."""
    point = context.plan.point_of_no_return
    if point is None:
        return False
    states = {context.decision.step(name).process_state for name in context.plan.instances(point)}
    return ProcessState.PROCESSED in states and states <= DONE
