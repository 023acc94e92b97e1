"""Where the steps that were added at run time stand in the plan of their task.

An added step comes after the step that added it, and after those that it names. It is a part of
its adder: a step that comes after the adder comes after all that the adder has added, and after
what that has added. So nothing that has begun ever comes after a step that is added later. A step
that names its adder, an item of the same fan-out, or a step of which its adder is a part, comes
after that step and not after its parts.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from roundsman.model.task import AddedStep, step_of

if TYPE_CHECKING:
    from roundsman.definition.plan import Plan, StepPlan


def with_added(plan: "Plan", added: Mapping[str, AddedStep]) -> "dict[str, StepPlan]":
    """Return the steps of a plan and the added ones, each after the step that added it.

    `plan` is expanded for the task's fan-outs. An added step whose kind the plan does not have is
    left out.
    """
    parts = _Parts(plan, {name: one for name, one in added.items() if step_of(name) in plan.kinds})
    found: dict[str, StepPlan] = {}
    for step in plan.steps.values():
        after = tuple(dict.fromkeys(part for name in step.after for part in parts.of(name)))
        found[step.name] = replace(step, after=after)
        found |= {name: parts.step(name) for name in parts.of(step.name) if name != step.name}
    return found


@dataclass
class _Parts:
    """The added steps of a task, by the steps that added them."""

    plan: "Plan"
    added: Mapping[str, AddedStep]

    @cached_property
    def _by_adder(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, one in self.added.items():
            adder = one.adder if one.adder in self.added else self._in_plan(one.adder)
            found.setdefault(adder, []).append(name)
        return found

    def _in_plan(self, name: str) -> str:
        """The name, or that of its step if the plan has the fan-out as one step."""
        return name if name in self.plan.steps else step_of(name)

    def of(self, name: str) -> Iterator[str]:
        """Yield the step and all that it has added, directly and indirectly."""
        ahead = [name]
        while ahead:
            part = ahead.pop()
            yield part
            ahead += reversed(self._by_adder.get(part, ()))

    def step(self, name: str) -> "StepPlan":
        """Return the added step as a step of the plan."""
        one, before = self.added[name], dict[str, None]()
        adders = {instance for adder in self._adders(name) for instance in self._siblings(adder)}
        for other in (one.adder, *one.after):
            for instance in self._instances(other):
                before |= dict.fromkeys([instance] if instance in adders else self.of(instance))
        kind = self.plan.kinds[step_of(name)]
        return replace(kind, name=name, after=tuple(before), added_by=one.adder)

    def _instances(self, name: str) -> tuple[str, ...]:
        """The steps of the plan, or the added step, that the name of an earlier step stands for."""
        if name in self.added:
            return (name,)
        found = self.plan.instances(self._in_plan(name))
        return tuple(one for one in found if one in self.plan.steps)

    def _siblings(self, adder: str) -> tuple[str, ...]:
        """All items of the fan-out that a step is an item of; else the step alone."""
        if adder in self.added:
            return (adder,)
        return self.plan.instances(step_of(adder))

    def _adders(self, name: str) -> Iterator[str]:
        """Yield the step that added this one, the step that added that one, and so on."""
        while name in self.added:
            name = self.added[name].adder
            yield name if name in self.added else self._in_plan(name)
