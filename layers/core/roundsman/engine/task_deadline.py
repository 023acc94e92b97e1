"""The end of a task that is not complete in time: by its complete-by, or by its deadline."""

from roundsman.definition.plan import ArchivePlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.history import few_words
from roundsman.engine.on_failure import ending_by
from roundsman.model.instants import format_duration, second
from roundsman.model.task import StepError

NOT_COMPLETE = "NotComplete"
DEADLINE_PASSED = "DeadlinePassed"


def end_if_overdue(context: DecisionContext) -> None:
    """End the task as failed if its complete-by or its deadline has passed.

    Not if every step is done, or if it is ending already. It is archived, and not undone, if a step
    has taken effect and lacks its result: a person can give the result.
    """
    task = context.decision.task
    if task.perform_by > context.now or context.all_done():
        return
    by, late = second(task.perform_by), format_duration(context.now - task.perform_by)
    if task.perform_by == task.deadline:
        why = f"the task's deadline was {by} ({late} ago)"
        error = StepError(DEADLINE_PASSED, "the task was not complete by its deadline")
    else:
        why = f"the task was not complete by {by} ({late} ago)"
        error = StepError(NOT_COMPLETE, "the task was not complete in time")
    strategy = context.plan.on_failure
    if lacking := [name for name, one in context.decision.steps.items() if one.lacks_result]:
        why += f"; the result of {few_words(lacking)} is missing"
        strategy = ArchivePlan()
    if context.decision.end(ending_by(context, strategy, why, None, error)):
        context.decision.record("failed", None, None, why)
