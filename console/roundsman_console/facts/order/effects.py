"""What has an order done, what of it is undone, and what was left out or erased? Pure."""

from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.engine.effects import (
    from_earlier_rounds,
    may_have_taken_effect,
    without_compensation,
)
from roundsman.model.instants import iso
from roundsman.model.states import ProcessState
from roundsman.model.task import Task, step_of


@dataclass(frozen=True, slots=True)
class Effects:
    """The steps of an order by what is known of their effects."""

    may_stand: list[str]
    """Their effect may have happened, and is not undone."""
    undone: list[str]
    undo_failed: list[str]
    without_compensation: list[str]
    """They were to be undone, have no compensation, and may stand."""


def effects_of(task: Task, plan: Plan | None) -> Effects:
    """Return the effects, in the order of `step_names`."""
    stands = may_stand(task, plan)
    return Effects(
        sorted(stands) if plan is None else stands,
        in_state(task, plan, ProcessState.UNDONE),
        in_state(task, plan, ProcessState.UNDO_ERROR),
        nothing_undoes(task, plan),
    )


def step_names(task: Task, plan: Plan | None) -> list[str]:
    """Return the steps in the plan's order; without a plan, those in the record, sorted by name."""
    return list(plan.steps) if plan else sorted(task.steps)


def erased_words(task: Task) -> str:
    """Return when, by whom and why the contents were erased; empty if they were not."""
    if task.erased_at is None:
        return ""
    return f"erased on {iso(task.erased_at)} by {task.erased_by}"


def left_out_words(task: Task) -> str:
    """Return how many items were left out: `1 of 5 items left out`; empty if none was.

    The whole is the number of items of the fan-outs that have left one out.
    """
    items = task.left_out()
    steps = {step_of(item) for item in items}
    whole = sum(task.fan_outs[step] for step in steps)
    return f"{len(items)} of {whole} items left out" if items else ""


def in_state(task: Task, plan: Plan | None, state: ProcessState) -> list[str]:
    """Return the names of the steps in this state."""
    return [name for name in step_names(task, plan) if task.step(name).process_state is state]


def nothing_undoes(task: Task, plan: Plan | None) -> list[str]:
    """Return the steps that were to be undone, have no compensation, and may stand."""
    if plan is None or task.ending is None:
        return []
    stays = without_compensation(plan, task.steps, task.used_rounds)
    return [*filter(task.ending.undoes, stays)]


def may_stand(task: Task, plan: Plan | None = None) -> list[str]:
    """Return the names of the steps whose effect may have happened and was not undone.

    They are in the order of the plan; without one, in that of the task's record.
    """
    if plan is None:
        return [name for name in task.steps if _may_stand(task, name)]
    found = [name for name in step_names(task, plan) if _may_stand(task, name)]
    before = from_earlier_rounds(plan, task.steps, task.used_rounds)
    return list(dict.fromkeys((*found, *before)))


def _may_stand(task: Task, name: str) -> bool:
    """Whether the effect of the step may stand. A closing step is never undone, so its effect is
    nothing that is left."""
    return may_have_taken_effect(task.step(name)) and not task.closes(name)
