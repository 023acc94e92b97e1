"""A task that one of its steps ends early, because the rest is not wanted: `Done(end=...)`.

What has not begun is Skipped, and what is under way goes on to its end; if it fails, its strategy
decides, as without the early end. The task is Completed then. With `undo`, it is undone instead,
and is Completed if every undo has succeeded.
"""

from dataclasses import replace

from roundsman.definition.plan import StepPlan
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.effects import may_have_been_performed
from roundsman.engine.history import few_words
from roundsman.engine.on_failure import past_no_return
from roundsman.engine.step_values import step_values
from roundsman.engine.transitions import StepEvent
from roundsman.model.situations import End, Ended
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import EarlyEnd, StepRecord, Termination

WRONG_END = "WrongEnd"
"""The error type of an attempt whose reply ends its task early, and may not."""


def why_not_ended(context: DecisionContext, step: StepPlan, end: EarlyEnd) -> str | None:
    """Why the step cannot end its task early, in words; None if it can."""
    if context.decision.task.closes(step.name):
        return f"{step.name} ends its task early, but is a closing step: its task has ended"
    if end.undo and past_no_return(context):
        point = context.stored_plan.point_of_no_return
        return (
            f"{step.name} ends its task early with an undo, but the task is past its point of no "
            f"return, {point}"
        )
    return None


def end_early(context: DecisionContext, step: StepPlan, end: EarlyEnd) -> None:
    """End the task early. A task that is ending already goes on to that end."""
    decision = context.decision
    if decision.ending is not None or decision.task.ended_early is not None:
        decision.note(f"{step.name}: the task is ending already, so its early end is ignored")
        return
    why = f"ended early by {step.name}: {end.why}"
    decision.task = replace(decision.task, ended_early=why)
    if end.undo:
        decision.end(Termination(TaskState.COMPLETED, why, step.name, undo=True, early=True))
    decision.record("ended early", step.name, None, why)
    skip_the_rest(context)


def skip_the_rest(context: DecisionContext) -> None:
    """Skip each step of a task that was ended early whose agent was never asked. With an undo, skip
    each that has no compensation and is not under way as well: it is not tried again.

    Not if the task ends in another way, because a step that was under way has failed.
    """
    decision, skipped = context.decision, list[str]()
    ending = decision.ending
    if ending is not None and ending.how is not TaskState.COMPLETED:
        return
    for step in context.plan.steps.values():
        record = decision.step(step.name)
        given_up = ending is not None and step.compensation is None
        open_still = record.process_state in (ProcessState.PENDING, ProcessState.ERROR)
        if not _has_not_begun(record) and not (given_up and open_still):
            continue
        decision.move(
            step.name,
            StepEvent.NOT_NEEDED,
            Ended(how=End.SKIPPED),
            step_values(finished_at=context.now),
        )
        skipped.append(step.name)
    if skipped:
        decision.note(f"skipped, as the task was ended early: {few_words(skipped)}")


def _has_not_begun(record: StepRecord) -> bool:
    waits = record.process_state is ProcessState.PENDING and record.started_at is None
    return waits and not may_have_been_performed(record)
