"""The effects of the orders of a failure group, by step: done, undone, refused, or unknown."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.engine.transitions import StepEvent
from roundsman.model.states import ProcessState
from roundsman.model.task import Task, step_of
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.effects import effects_of
from roundsman_console.facts.orders.counts import Count

DONE, UNDO_FAILED, UNDONE = "done", "its undo failed", "undone"
UNKNOWN = "whether it took effect is unknown"
REFUSED_UNKNOWN = f"refused; {UNKNOWN}"
"""A step whose service refused it for good: its record does not prove that nothing was done."""
REFUSED = "refused, and its undo was sent to be safe"
FAILED = "failed, and its undo was sent to be safe"
"""The same for a step of which another failure is known: that an attempt took too long."""
STANDS = (DONE, UNKNOWN, REFUSED_UNKNOWN, UNDO_FAILED)
"""What is said of a step whose effect may remain."""

_IN_ORDERS: Mapping[str, str] = {
    DONE: "done in {}",
    UNKNOWN: f"{UNKNOWN} in {{}}",
    REFUSED_UNKNOWN: f"refused in {{}}; {UNKNOWN}",
    UNDO_FAILED: f"{UNDO_FAILED} in {{}}",
    UNDONE: "undone in {}",
    REFUSED: "refused in {}, and its undo was sent to be safe",
    FAILED: "failed in {}, and its undo was sent to be safe",
}


@dataclass(frozen=True, slots=True)
class GroupEffects:
    """The effects of those orders of a group that were read."""

    orders: int
    """The number of orders that were read."""
    steps: Mapping[str, Mapping[str, int]]
    """By the step, what is known, with the number of orders for which it is so."""

    @property
    def stands(self) -> bool:
        """Whether an effect may remain in one of the orders."""
        return any(what in STANDS for found in self.steps.values() for what in found)


def order_effects(task: Task, steps: Sequence[str] = ()) -> Mapping[str, Sequence[str]]:
    """Return what is known of the effects of an order's steps, with the names of the steps.

    They are in the order of `steps`, those of the plan. The step at which the order failed is not
    among those that are undone: an undo was sent for it although it may have had no effect.
    """
    effects = effects_of(task, None)
    places = {step: place for place, step in enumerate(steps)}
    found: dict[str, list[str]] = {}
    for name in sorted(
        {*effects.may_stand, *effects.undone, *effects.undo_failed},
        key=lambda one: (places.get(step_of(one), len(places)), one),
    ):
        found.setdefault(_what(task, name), []).append(name)
    return found


def _what(task: Task, name: str) -> str:
    """Return what is known of the effect of a step."""
    ending, state = task.ending, task.step(name).process_state
    failed = ending is not None and ending.step == name
    refused = ending is not None and ending.why.startswith(f"{name}: {StepEvent.REFUSED}")
    if state is ProcessState.UNDONE:
        return (REFUSED if refused else FAILED) if failed else UNDONE
    if state is ProcessState.UNDO_ERROR:
        return UNDO_FAILED
    if state is ProcessState.PROCESSED:
        return DONE
    return REFUSED_UNKNOWN if failed and refused else UNKNOWN


def group_effects(tasks: Sequence[Task], steps: Sequence[str] = ()) -> GroupEffects:
    """Return the effects of these orders of a group; `steps` are those of the plan, in order."""
    found: dict[str, Counter[str]] = {step: Counter() for step in steps}
    for task in tasks:
        for what, names in order_effects(task, steps).items():
            for step in {step_of(name): None for name in names}:
                found.setdefault(step, Counter())[what] += 1
    return GroupEffects(len(tasks), {step: counts for step, counts in found.items() if counts})


def effects_words(found: GroupEffects, count: Count) -> str:
    """Return the effects in sentences, and how many of the group's orders were not read for it."""
    said = [] if found.stands else ["No effect remains."]
    for step, effects in found.steps.items():
        many = "; ".join(
            _IN_ORDERS[what].format(counted(orders, "order")) for what, orders in effects.items()
        )
        said.append(f"{step}: {many}.")
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
