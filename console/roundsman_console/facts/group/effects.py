"""The effects of the orders of a failure group: what may stand, is undone, or was refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.engine.transitions import StepEvent
from roundsman.model.task import Task, step_of
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.effects import effects_of
from roundsman_console.facts.orders.counts import Count

MAY_STAND, UNDO_FAILED, UNDONE = "may remain", "undo failed", "undone"
REFUSED = "refused, its undo was sent to be safe"
"""A step whose service refused it for good: its record does not prove that nothing was done, so the
undo was sent too."""
FAILED = "failed, its undo was sent to be safe"
"""The same for a step of which another failure is known: that an attempt took too long."""

_IN_ALL: Mapping[str, str] = {
    MAY_STAND: "An effect may remain",
    UNDO_FAILED: "The undo failed",
    UNDONE: "Undone",
    REFUSED: "Refused, and the undo was sent to be safe",
    FAILED: "Failed, and the undo was sent to be safe",
}


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """The effects of those orders of a group that were read."""

    orders: int
    """The number of orders that were read."""
    steps: Mapping[str, Mapping[str, int]]
    """What is known, with the number of orders for which it is so, by the step."""

    @property
    def stands(self) -> bool:
        """Whether an effect may stand in one of the orders."""
        return bool(self.steps.get(MAY_STAND))


def order_effects(task: Task) -> Mapping[str, Sequence[str]]:
    """Return what is known of the effects of an order's steps, with the names of the steps.

    The step at which the order failed is not among those that are undone: an undo was sent for it
    although it may have had no effect.
    """
    effects = effects_of(task, None)
    failed = task.ending.step if task.ending else None
    of_failed = [name for name in effects.undone if name == failed]
    refused = task.ending is not None and task.ending.why.startswith(
        f"{failed}: {StepEvent.REFUSED}"
    )
    found = {
        MAY_STAND: effects.may_stand,
        UNDO_FAILED: effects.undo_failed,
        UNDONE: [name for name in effects.undone if name != failed],
        REFUSED if refused else FAILED: of_failed,
    }
    return {what: names for what, names in found.items() if names}


def group_effects(tasks: Sequence[Task]) -> GroupEffects:
    """Return the effects of these orders of a group."""
    steps: dict[str, Counter[str]] = {what: Counter() for what in _IN_ALL}
    for task in tasks:
        for what, names in order_effects(task).items():
            steps[what].update({step_of(name) for name in names})
    return GroupEffects(len(tasks), {what: found for what, found in steps.items() if found})


def effects_words(found: GroupEffects, count: Count) -> str:
    """Return the effects in sentences, and how many of the group's orders were not read for it."""
    said = [] if found.stands else ["No effect remains."]
    for what, steps in found.steps.items():
        many = ", ".join(f"{step} in {counted(orders, 'order')}" for step, orders in steps.items())
        said.append(f"{_IN_ALL[what]}: {many}.")
    return " ".join((*said, _looked_at(found.orders, count)))


def _looked_at(read: int, count: Count) -> str:
    unread = count.count - read
    if not count.more and unread <= 0:
        return "All orders of the group were read."
    others = "The others were" if count.more else f"{counted(unread, 'other')} {_were(unread)}"
    newest = "newest order" if read == 1 else f"{read} newest orders"
    return f"Only the {newest} {_were(read)} read for this. {others} not, so more may remain."


def _were(many: int) -> str:
    return "was" if many == 1 else "were"
