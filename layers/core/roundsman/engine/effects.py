"""Which effects of a task may stand: those of every claimed step that is not undone."""

from collections.abc import Iterable, Mapping

from roundsman.definition.plan import Plan
from roundsman.model.states import ProcessState
from roundsman.model.task import AfterUndo, StepRecord


def may_have_been_performed(record: StepRecord) -> bool:
    """Whether the step was never claimed, and may have been performed before its task was restored.

    That is known of a step with a condition and of a fan-out, which must still be evaluated, and of
    the items of a fan-out (`roundsman.engine.restored`).
    """
    waits = record.process_state is ProcessState.PENDING
    return waits and record.started_at is None and record.outcome_unknown


def may_have_taken_effect(record: StepRecord) -> bool:
    """Whether the step was ever claimed and is not undone.

    No outcome proves that a step had no effect. An item that was left out after its undo is undone.
    """
    if record.started_at is None or record.process_state is ProcessState.UNDONE:
        return False
    left_out = record.after_undo is AfterUndo.SKIPPED
    return not (left_out and record.process_state is ProcessState.SKIPPED)


def is_to_undo(record: StepRecord) -> bool:
    """Whether the undo of the step, if it has one, is still to be made or in progress."""
    return may_have_taken_effect(record) and record.process_state is not ProcessState.UNDO_ERROR


def left_to_undo(plan: Plan, steps: Mapping[str, StepRecord]) -> list[str]:
    """The steps whose compensation is still to be made or in progress."""
    return [
        name
        for name, record in steps.items()
        if name in plan.steps and plan.steps[name].compensation and is_to_undo(record)
    ]


def depend_on(plan: Plan, steps: Mapping[str, StepRecord], part: Iterable[str]) -> list[str]:
    """The steps outside of the part that come after one of its steps, and may have taken effect.

    The task is completed, so it has a record of every step of its plan.
    """
    names = frozenset(part)
    later = plan.after_any(names) - names
    return [name for name in plan.steps if name in later and may_have_taken_effect(steps[name])]


def with_unknown_items(plan: Plan, steps: Mapping[str, StepRecord]) -> list[str]:
    """The fan-outs of whose items, which are not known, some may have been performed.

    Nothing of them can be undone.
    """
    return [
        step.name
        for step in plan.steps.values()
        if step.fans_out and step.name in steps and may_have_been_performed(steps[step.name])
    ]


def without_compensation(
    plan: Plan, steps: Mapping[str, StepRecord], used_rounds: Mapping[str, int]
) -> list[str]:
    """The steps that have no compensation and whose effects may stand, those of earlier rounds
    included (`from_earlier_rounds`)."""
    stand = [
        name
        for name, record in steps.items()
        if name in plan.steps and plan.steps[name].compensation is None
        if may_have_taken_effect(record) and not plan.steps[name].closes
    ]
    return list(dict.fromkeys((*stand, *from_earlier_rounds(plan, steps, used_rounds))))


def from_earlier_rounds(
    plan: Plan, steps: Mapping[str, StepRecord], used_rounds: Mapping[str, int]
) -> list[str]:
    """The steps without compensation whose effects may stand from before they began again.

    A task that began again has forgotten its items and the steps that were added to it, and a
    change of the plan may have removed steps. `used_rounds` are the last rounds of those of which
    the task has no record any more, by the name of the step or of the kind. Of a step that the plan
    does not have, nothing says that it was undone.
    """
    before = [name for name, record in steps.items() if record.round > 1]
    names = dict.fromkeys((*before, *used_rounds))
    return [name for name in names if not _is_undone_or_closes(plan, name)]


def _is_undone_or_closes(plan: Plan, name: str) -> bool:
    """Whether the plan has a compensation for the step, which may be a former item of a fan-out, or
    for the kind; or it is a closing step, which is never undone."""
    found = plan.steps.get(name) or plan.defined(name)
    return found is not None and (found.compensation is not None or found.closes)
