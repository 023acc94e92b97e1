"""Which steps are not needed, since enough others have succeeded, in words? Pure.

It follows from the plan and the records, by `roundsman.engine.quorums`.
"""

from roundsman.definition.plan import StepPlan
from roundsman.engine.quorums import is_enough, is_unneeded
from roundsman.model.states import ProcessState
from roundsman_console.facts.order.order_facts import StepFacts


def enough_words(step: StepPlan, items: int | None = None) -> str:
    """Return how many have to succeed of the steps before this one, and of its items.

    Such as `2 of 3`, or `2 of 5 items`; empty if each of them has to. `items` is the number of its
    items; None if it is not known yet.
    """
    before = step.enough_before and f"{step.enough_before} of {len(step.after)}"
    of = f"{step.enough} of {items} items" if items is not None else f"{step.enough} items"
    return ", ".join(filter(None, (before, step.enough and of)))


def why_not_needed(one: StepFacts) -> str | None:
    """Return why the step is not needed any more: `2 of 3 were enough`; None if it is, or if it has
    succeeded or failed before that was so."""
    plan, task = one.order.plan, one.order.task
    quorum = None if plan is None else plan.quorums.get(one.name)
    if plan is None or quorum is None or (_is_skipped(one) and one.record.error is not None):
        return None
    reached = is_enough(plan, task.step, one.name)
    if not reached or not is_unneeded(plan, task.step, task.step, one.name):
        return None
    return f"{quorum.enough} of {len(quorum.members)} were enough"


def not_needed_words(one: StepFacts) -> str:
    """Return that the step is not needed, why, and what becomes of it; empty if it is needed.

    Of a task that ends, only what has become of it.
    """
    why, step, record = why_not_needed(one), one.step, one.record
    if why is None or step is None:
        return ""
    said = f"not needed: {why}"
    if record.process_state is ProcessState.UNDO_ERROR:
        return f"{said}; its undo has failed, and the order is not Completed before it is undone"
    if _is_skipped(one):
        if record.started_at is None and step.when is not None:
            return f"{said}, or its condition was false"
        stands = record.started_at is not None and step.agents and step.compensation is None
        return f"{said}; its effect may stand" if stands else said
    if one.order.task.ending is not None:
        return ""
    if record.process_state is ProcessState.UNDOING:
        return f"{said}; it is undone, and then skipped"
    then = "skipped" if step.compensation is None else "undone"
    return f"{said}; {then} when it has ended"


def _is_skipped(one: StepFacts) -> bool:
    return one.record.process_state is ProcessState.SKIPPED
