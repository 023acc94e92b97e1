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
    found = list[str]()
    if step.enough_before is not None:
        found.append(f"{step.enough_before} of {len(step.after)}")
    if step.enough is not None:
        found.append(f"{step.enough} items" if items is None else f"{step.enough} of {items} items")
    return ", ".join(found)


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
    why = why_not_needed(one)
    then = None if why is None or one.step is None else _then(one, one.step)
    return "" if then is None else f"not needed: {why}{then}"


def _then(one: StepFacts, step: StepPlan) -> str | None:
    """What becomes of a step that is not needed; None if that is for the end of its task to say."""
    state = one.record.process_state
    if state is ProcessState.SKIPPED:
        return _of_skipped(one, step)
    if state is ProcessState.UNDO_ERROR:
        return "; its undo has failed, and the order is not Completed before it is undone"
    if one.order.task.ending is not None:
        return None
    if state is ProcessState.UNDOING:
        return "; it is undone, and then skipped"
    return f"; {'skipped' if step.compensation is None else 'undone'} when it has ended"


def _of_skipped(one: StepFacts, step: StepPlan) -> str:
    if one.record.started_at is None:
        return "" if step.when is None else ", or its condition was false"
    return "; its effect may stand" if step.agents and step.compensation is None else ""


def _is_skipped(one: StepFacts) -> bool:
    return one.record.process_state is ProcessState.SKIPPED
