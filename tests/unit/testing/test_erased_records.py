"""An erased record that still has contents, or changes, breaks an invariant."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from roundsman.model.corrections import Change
from roundsman.model.states import TaskState
from roundsman.model.task import Owed, StepError, Task, Termination
from roundsman_testing.invariants.rules import Invariant, of_change, of_record
from tests.support.erased_stories import ENDED, erased
from tests.support.machine_world import World

Alter = Callable[[Task], Task]


def of_undone() -> World:
    return erased(ENDED[TaskState.UNDONE]())


def with_step(task: Task, **changes: object) -> Task:
    step = replace(task.step("b"), **changes)  # type: ignore[arg-type]
    return replace(task, steps={**task.steps, "b": step})


def with_ending(task: Task, **changes: object) -> Task:
    assert isinstance(task.ending, Termination)
    return replace(task, ending=replace(task.ending, **changes))  # type: ignore[arg-type]


LEFT: dict[str, Alter] = {
    "a result": lambda task: with_step(task, result={"name": "A. Reader"}),
    "the message of a step": lambda task: with_step(task, error=StepError("Odd", "A. Reader")),
    "the reason of the end": lambda task: with_ending(task, why="declined for A. Reader"),
    "the message of the end": lambda task: with_ending(task, error=StepError("Odd", "A. Reader")),
    "a correction": lambda task: replace(task, corrections=((Change(("name",), "x"),),)),
    "an open state": lambda task: replace(task, state=TaskState.ARCHIVED),
    "a status": lambda task: replace(task, owed=(Owed("status", "undone", 1, 1, ""),)),
}


def broken(task: Task, now: int) -> set[Invariant]:
    return {one.invariant for one in of_record(task, now)}


def test_a_record_as_it_is_erased_breaks_nothing() -> None:
    for make in ENDED.values():
        world = erased(make())
        assert Invariant.ERASED not in broken(world.task, world.now)


@pytest.mark.parametrize("what", LEFT)
def test_a_record_that_is_not_wholly_erased_is_found(what: str) -> None:
    world = of_undone()
    assert Invariant.ERASED in broken(LEFT[what](world.task), world.now)
    kept = replace(LEFT[what](world.task), erased_at=None, erased_by=None)
    assert Invariant.ERASED not in broken(kept, world.now), "it need not be erased"


@pytest.mark.parametrize(
    "change",
    [
        lambda task: replace(task, state=TaskState.PENDING),
        lambda task: replace(task, erased_at=None),
        lambda task: replace(task, erased_by="bob"),
        lambda task: with_step(task, round=9),
        lambda task: with_ending(task, step=None),
    ],
)
def test_an_erased_task_that_changes_is_found(change: Alter) -> None:
    world = of_undone()
    before = world.task

    def found(after: Task) -> set[Invariant]:
        change_of = of_change(world.plan, before, after, world.now)
        return {one.invariant for one in change_of if "is changed to" in one.what}

    later = replace(before, version=before.version + 1)
    assert found(later) == set()
    assert found(change(later)) == {Invariant.ERASED}
