"""Where the steps that were added at run time stand in the plan of their task.

An added step comes after the step that added it, and after those that it names. It is a part of
its adder: a step that comes after the adder comes after all that the adder has added, and after
what that has added. So nothing that has begun ever comes after a step that is added later. A step
that names its adder, an item of the same fan-out, or a step of which its adder is a part, comes
after that step and not after its parts.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING

from roundsman.model.task import AddedStep, step_of

if TYPE_CHECKING:
    from roundsman.definition.plan import Plan, StepPlan


def with_added(plan: "Plan", added: Mapping[str, AddedStep]) -> "dict[str, StepPlan]":
    """Return the steps of a plan and the added ones, each after the step that added it.

    `plan` is expanded for the task's fan-outs. An added step whose kind the plan does not have is
    left out. The time that it takes grows with the number of steps, and with that of their `after`.
    """
    parts = _Parts(plan, {name: one for name, one in added.items() if step_of(name) in plan.kinds})
    found: dict[str, StepPlan] = {}
    for step in plan.steps.values():
        after = tuple(dict.fromkeys(part for name in step.after for part in parts.of(name)))
        found[step.name] = step if after == step.after else replace(step, after=after)
        found |= {name: parts.step(name) for name in parts.of(step.name)[1:]}
    return found


def cycle_of(steps: "Iterable[StepPlan]") -> list[str]:
    """Return the names of steps that come after one another, each after the next; else nothing."""
    try:
        TopologicalSorter({step.name: step.after for step in steps}).prepare()
    except CycleError as error:
        cycle: list[str] = error.args[1]
        return cycle[::-1]
    return []


class _Parts:
    """The added steps of a task, by the steps that added them."""

    def __init__(self, plan: "Plan", added: Mapping[str, AddedStep]) -> None:
        self._plan = plan
        self._added = added
        by_adder: dict[str, list[str]] = {}
        for name, one in added.items():
            by_adder.setdefault(self._adder(one), []).append(name)
        self._order: list[str] = []
        """All steps, each before its parts, so that a step and its parts stand together."""
        ahead = [*plan.steps][::-1]
        while ahead:
            part = ahead.pop()
            self._order.append(part)
            ahead += reversed(by_adder.get(part, ()))
        self._place = {name: place for place, name in enumerate(self._order)}
        self._size = dict.fromkeys(self._order, 1)
        """How many steps each one is, with its parts."""
        for name in reversed(self._order):
            if name in added:
                self._size[self._adder(added[name])] += self._size[name]

    def _adder(self, one: AddedStep) -> str:
        """The step that added this one."""
        return one.adder if one.adder in self._added else self._in_plan(one.adder)

    def _in_plan(self, name: str) -> str:
        """The name, or that of its step if the plan has the fan-out as one step."""
        return name if name in self._plan.steps else step_of(name)

    def of(self, name: str) -> Sequence[str]:
        """Return the step and then all that it has added, directly and indirectly."""
        place = self._place.get(name)
        return (name,) if place is None else self._order[place : place + self._size[name]]

    def step(self, name: str) -> "StepPlan":
        """Return the added step as a step of the plan."""
        one, before = self._added[name], dict.fromkeys(self._instances(self._added[name].adder))
        for other in one.after:
            for instance in self._instances(other):
                before |= dict.fromkeys(
                    [instance] if self._has_added(instance, name) else self.of(instance)
                )
        return self._plan.added_step(name, tuple(before), one.adder)

    def _instances(self, name: str) -> tuple[str, ...]:
        """The steps of the plan, or the added step, that the name of an earlier step stands for.

        Empty if another plan does not have it any more.
        """
        if name in self._added:
            return (name,) if name in self._place else ()
        found = self._plan.instances(self._in_plan(name))
        return tuple(one for one in found if one in self._plan.steps)

    def _has_added(self, instance: str, name: str) -> bool:
        """Whether the step, or an item of the same fan-out, has added this one or its adder."""
        items = (instance,) if instance in self._added else self._plan.instances(step_of(instance))
        place = self._place[name]
        return any(
            item in self._place and 0 < place - self._place[item] < self._size[item]
            for item in items
        )
