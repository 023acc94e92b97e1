"""Checks of the closing steps of a workflow: what runs when a task has come to an end."""

from dataclasses import fields
from graphlib import CycleError, TopologicalSorter

from roundsman.definition.expressions import steps_read
from roundsman.definition.workflow import MOST_STEPS, AnyOf, Step, Workflow
from roundsman.errors import DefinitionError
from roundsman.model.checks import check_tuple

HAVE_NONE = (
    "compensation",
    "on_failure",
    "for_each",
    "enough",
    "tolerate",
    "keep",
    "next_agent_on",
    "on_error",
    "otherwise",
    "input",
)
"""What a closing step cannot have: its failure changes nothing of the end, and it is not undone."""


def check_closing_steps(where: str, workflow: Workflow) -> None:
    """Raise DefinitionError for a closing step that can never run, or whose failure would have to
    change the end of its task."""
    known = {step.name: step for step in (*workflow.steps, *workflow.may_add)}
    for name in ("when_undone", "when_failed", "when_cancelled"):
        place, steps = f"{where}: {name}", getattr(workflow, name)
        check_tuple(place, steps, (Step,), "steps, such as (notify,)")
        listed = {step.name: step for step in steps}
        if len(listed) < len(steps):
            raise DefinitionError(f"{place}: two steps have the same name; rename one")
        if len(workflow.steps) + len(steps) > MOST_STEPS:
            raise DefinitionError(
                f"{place}: {len(workflow.steps)} steps and {len(steps)} closing steps; at most "
                f"{MOST_STEPS} fit in one task"
            )
        for step in steps:
            if known.setdefault(step.name, step) is not step:
                raise DefinitionError(
                    f"{place}: another step is named {step.name!r} as well; rename one"
                )
            if step in workflow.steps or step in workflow.may_add:
                raise DefinitionError(
                    f"{place}: {step.name!r} is a step of the workflow already; a closing step is "
                    "one of its own"
                )
            _check_one(f"{place}: step {step.name!r}", step)
            _check_place(f"{place}: step {step.name!r}", step, listed, workflow)
        try:
            TopologicalSorter({step.name: step.after_names() for step in steps}).prepare()
        except CycleError as error:
            circle = " after ".join(reversed(error.args[1]))
            raise DefinitionError(f"{place}: the steps form a cycle: {circle}") from error


def _check_one(place: str, step: Step) -> None:
    if not step.agent_names():
        raise DefinitionError(f"{place} only waits; a closing step is performed by an agent")
    defaults = {one.name: one.default for one in fields(Step)}
    for name in HAVE_NONE:
        value = getattr(step, name)
        if value != defaults.get(name) and value != {}:
            raise DefinitionError(
                f"{place} has {name}; a closing step fails alone and is never undone: remove it"
            )
    if step.retry.keep_trying_for is not None:
        raise DefinitionError(
            f"{place}: its Retry has keep_trying_for; a closing step has the time of its attempts: "
            "give max_attempts"
        )


def _check_place(place: str, step: Step, listed: dict[str, Step], workflow: Workflow) -> None:
    if isinstance(step.after, AnyOf):
        raise DefinitionError(f"{place} comes after {step.after!r}; name the steps without AnyOf")
    for name in step.after_names():
        if name not in listed:
            raise DefinitionError(
                f"{place} comes after {name!r}, which is no closing step of this end; all steps of "
                "the workflow are over before: remove it"
            )
    known = {one.name for one in workflow.steps} | listed.keys()
    for what, expression in step.expressions():
        for name in sorted(steps_read(expression) - known):
            raise DefinitionError(
                f"{place}: {what} reads the result of {name!r}, but no step has that name"
            )
