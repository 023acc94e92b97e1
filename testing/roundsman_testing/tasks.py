"""The record of a task as a test reads it: a step that does not exist is refused."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from roundsman.definition.plan import Plan, StepPlan
from roundsman.model.task import StepRecord, Task, item_place


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CheckedTask(Task):
    """A task that knows the steps of its plan."""

    known: Mapping[str, StepPlan] = field(default_factory=dict, repr=False)

    def step(self, name: str) -> StepRecord:
        """Return the step's record; that of an untouched step if it has not begun.

        Raises ValueError if the plan has no such step, the step has no such item, and no such step
        was added.
        """
        if name in self.added:
            return Task.step(self, name)
        plain, index = item_place(name) or (name, None)
        if plain not in self.known:
            raise ValueError(
                f"workflow {self.workflow!r} has no step {plain!r}; it has {', '.join(self.known)}"
            )
        if index is not None:
            if self.known[plain].for_each is None:
                raise ValueError(f"step {plain!r} has no for_each, so there is no {name!r}")
            count = self.fan_outs.get(plain)
            if count is not None and index >= count:
                raise ValueError(f"step {plain!r} has {count} items, so there is no {name!r}")
        # Without super(): a dataclass with slots is another class than the one that is defined.
        return Task.step(self, name)


def checked(task: Task, plan: Plan | None) -> Task:
    """The task, with the steps of its plan; the task itself if the plan is not known."""
    if plan is None:
        return task
    values = {each.name: getattr(task, each.name) for each in fields(Task)}
    closing = {name: one for steps in plan.closing.values() for name, one in steps.items()}
    return CheckedTask(**values, known={**plan.steps, **closing})
