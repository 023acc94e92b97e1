"""How a task ends that cannot go on: the strategy of the failure that came first.

An ending task claims no new step and repeats none; what is under way is let finish. Its step's
strategy decides, after the point of no return Archive in any case; an operator's word overrides.
"""

from roundsman.engine.decision import Case
from roundsman.engine.fan_out import leave_out, tolerance
from roundsman.engine.transitions import StepEvent
from roundsman.model.instants import clock_time, spoken
from roundsman.model.plan import StepPlan, StrategyPlan, UndoPlan, WaitPlan
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import UNDO, Effect, Ending, StepError, operation_of

NOT_COMPLETE = "NotComplete"


def give_up(
    case: Case,
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
    record = case.draft.step(step.name)
    attempt = record.failure_count + 1 if record.started_at is not None else None
    undo = operation_of(record) == UNDO
    case.draft.fail(step.name, event, error, effect)
    tolerated = None if undo else tolerance(case, step)
    said = f"{why}; {tolerated}" if tolerated else why
    case.draft.record("undo failed" if undo else "failed", step.name, attempt, said)
    if tolerated:
        leave_out(case, step)
        return
    if not undo:
        case.draft.end(_ending(case, step.on_failure, why, step.name, error))
    elif case.draft.ending is None:
        # It was to go on after its undo, and cannot: what stands is for a person to say.
        case.draft.end(Ending(TaskState.ARCHIVED, why, step.name, error=error))
    # Else the other compensations go on, and the task ends Archived after them.


def end_if_overdue(case: Case) -> None:
    """A task that is not complete in time has failed, whatever its steps are at."""
    task = case.draft.task
    if case.draft.ending or task.complete_by > case.now or case.all_done():
        return
    late = spoken(case.now - task.complete_by)
    why = f"the task was not complete by {clock_time(task.complete_by)} ({late} ago)"
    error = StepError(NOT_COMPLETE, "the task was not complete in time")
    if case.draft.end(_ending(case, case.plan.on_failure, why, None, error)):
        case.draft.record("failed", None, None, why)


def _ending(
    case: Case, strategy: StrategyPlan, why: str, step: str | None, error: StepError
) -> Ending:
    final = strategy.then if isinstance(strategy, WaitPlan) else strategy
    if isinstance(final, UndoPlan) and not _past_no_return(case):
        return Ending(TaskState.UNDONE, why, step, undo=True, error=error)
    return Ending(TaskState.ARCHIVED, why, step, error=error)


def _past_no_return(case: Case) -> bool:
    point = case.plan.point_of_no_return
    if point is None:
        return False
    states = {case.draft.step(name).process_state for name in case.plan.instances(point)}
    return ProcessState.PROCESSED in states and states <= DONE
