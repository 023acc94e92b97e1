"""Which effects of a task may stand: all that was ever claimed, until it is undone."""

from collections.abc import Mapping

from roundsman.model.plan import Plan
from roundsman.model.states import ProcessState
from roundsman.model.task import AfterUndo, StepRecord


def may_have_taken_effect(record: StepRecord) -> bool:
    """Whether the step was ever claimed and not undone: no outcome proves that nothing happened.

    An item that was left out after its undo is undone.
    """
    if record.started_at is None or record.process_state is ProcessState.UNDONE:
        return False
    left_out = record.after_undo is AfterUndo.SKIPPED
    return not (left_out and record.process_state is ProcessState.SKIPPED)


def is_to_undo(record: StepRecord) -> bool:
    """Whether the step's undo, if it has one, is still to be made or under way."""
    return may_have_taken_effect(record) and record.process_state is not ProcessState.UNDO_ERROR


def left_to_undo(plan: Plan, steps: Mapping[str, StepRecord]) -> list[str]:
    """The steps that have a compensation which is still to be made."""
    return [
        name
        for name, record in steps.items()
        if name in plan.steps and plan.steps[name].compensation and is_to_undo(record)
    ]


def without_compensation(plan: Plan, steps: Mapping[str, StepRecord]) -> list[str]:
    """The steps whose effect may stand and that nothing can undo."""
    return [
        name
        for name, record in steps.items()
        if name in plan.steps and plan.steps[name].compensation is None
        if may_have_taken_effect(record) or record.round > 1  # then an earlier round's effect may
    ]
