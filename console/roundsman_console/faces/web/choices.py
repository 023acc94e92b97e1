"""The workflows, steps, agents and error types of a stack that a person can choose from.

No table lists them. They are those of the application's workflows in this folder, of the open
failure groups, and of all orders that this process has read.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from roundsman.definition.plan import Plan, plan_of
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.failure import NO_STEP, Group
from roundsman.model.task import Task, step_of
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.agent.reading import agent_names
from roundsman_console.facts.application import application_workflows
from roundsman_console.inspector.inspector import Inspector


@dataclass(slots=True)
class Choices:
    """The names that were seen until now."""

    workflows: set[str] = field(default_factory=set)
    steps: set[str] = field(default_factory=set)
    agents: set[str] = field(default_factory=set)
    errors: set[str] = field(default_factory=set)
    groups: tuple[Group, ...] = ()
    """The failure groups that were open when they were last read."""

    def by_field(self) -> Mapping[str, list[str]]:
        """Return the names by the field of the filter, each sorted."""
        return {
            "workflow": sorted(self.workflows),
            "step": sorted(self.steps),
            "error": sorted(self.errors),
            "agent": sorted(self.agents),
        }

    def see_plan(self, plan: Plan) -> None:
        """Note the names in a plan."""
        self.workflows.add(plan.workflow)
        self.steps.update(step_of(name) for name in plan.steps)
        self.agents.update(plan.agents)

    def see_task(self, task: Task, plan: Plan | None) -> None:
        """Note the names in an order that is shown, and in its plan."""
        self.workflows.add(task.workflow)
        if plan is not None:
            self.see_plan(plan)
        errors = [record.error for record in task.steps.values()]
        if task.ending is not None:
            errors.append(task.ending.error)
        self.errors.update(error.type for error in errors if error is not None)

    def see_group(self, group: Group) -> None:
        """Note the names in a failure group."""
        self.workflows.add(group.workflow)
        self.errors.add(group.error_type)
        self.steps.update({group.step} - {NO_STEP})
        self.agents.update({group.agent} - {""})


_SEEN: WeakKeyDictionary[Inspector, Choices] = WeakKeyDictionary()


def choices_of(inspector: Inspector, plans: Iterable[tuple[Task, Plan | None]] = ()) -> Choices:
    """Return the names that a person can choose from. `plans` are the orders that are shown.

    It is one request, for the failure groups; without the right to it, they are left out.
    """
    stack = inspector.stack
    found = _SEEN.get(inspector)
    if found is None:
        found = _SEEN[inspector] = Choices()
        for plan in _plans_of_application() if stack.events is not None else ():
            found.see_plan(plan)
    with suppress(TryAgain, CallRefused):
        found.groups = tuple(stack.groups.groups())
    for group in found.groups:
        found.see_group(group)
    for task, own in plans:
        found.see_task(task, own)
    found.workflows |= stack.records.workflows
    found.agents |= {*agent_names(stack.outputs, found.agents)}
    return found


def _plans_of_application() -> list[Plan]:
    try:
        workflows = application_workflows() or {}
    except InspectorError:  # the application cannot be imported; `roundsman check` says why
        return []
    return [plan_of(workflow) for workflow in workflows.values()]
