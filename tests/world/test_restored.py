"""The tables are restored to an earlier instant: what was done since is undone, or is named."""

from datetime import timedelta

import pytest

from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.workflow import Undo
from roundsman.testing import World
from tests.world.backups import Backup
from tests.world.shop import FENCED, a_step, a_workflow

INPUT: dict[str, Json] = {"total": 5, "lines": [{"sku": "a"}, {"sku": "b"}]}
LATER = timedelta(minutes=5)

CONDITION = {"when": "input.total > `1`"}
A_RESULT = {"when": "results.first.done == 'first'"}
ITEMS = {"for_each": "input.lines"}
ITEMS_OF_A_RESULT = {"for_each": "[results.first.done, results.first.done]"}


def a_world(**more: object) -> World:
    """Three steps in a row. The second has these options; the last one asks for hours."""
    first = a_step("first", compensation=FENCED)
    pick = a_step("pick", first, compensation=FENCED, **more)
    last = a_step("last", pick, compensation=FENCED)
    world = World(a_workflow(first, pick, last, on_failure=Undo()))
    world.on("last").asks(timedelta(hours=1))
    return world


def restored_and_reconciled(world: World) -> tuple[str, list[str]]:
    """An order that is restored to when its first step was sent.

    Returns the order, and the steps that had an effect before the restore.
    """
    order = world.submit(INPUT)
    watched = world.processes.watch.tasks
    world.run(until=lambda: order in watched and watched[order].step("first").under_way)
    backup = Backup(world)
    world.run(for_=LATER)
    before = world.standing(order)
    backup.restore()
    backup.reconcile([order])
    return order, before


@pytest.mark.parametrize("more", [{}, CONDITION, A_RESULT, ITEMS, {**ITEMS, **A_RESULT}])
def test_an_undo_after_a_restore_leaves_nothing_of_what_was_done_since(
    more: dict[str, str],
) -> None:
    world = a_world(**more)
    order, before = restored_and_reconciled(world)
    assert len(before) == (3 if "for_each" in more else 2)
    world.operator.undo(order)
    world.run(for_=LATER)
    task = world.processes.watch.tasks[order]
    assert task.state is TaskState.UNDONE
    assert world.standing(order) == []
    assert task.ending is not None
    assert all(name in task.ending.why for name in before if more and name != "first")


def test_items_that_nobody_can_know_after_a_restore_are_named_by_their_step() -> None:
    world = a_world(**ITEMS_OF_A_RESULT)
    order, _ = restored_and_reconciled(world)
    world.operator.undo(order)
    world.run(for_=LATER)
    ending = world.processes.watch.tasks[order].ending
    assert world.standing(order) == ["pick[0]", "pick[1]"]
    assert ending is not None
    assert ending.why.endswith(
        "not undone, since their items before the restore are not known: pick"
    )


@pytest.mark.parametrize("more", [CONDITION, ITEMS, ITEMS_OF_A_RESULT, {**ITEMS, **A_RESULT}])
def test_an_order_that_goes_on_after_a_restore_does_nothing_twice(more: dict[str, str]) -> None:
    world = a_world(**more)
    order, before = restored_and_reconciled(world)
    world.run(for_=timedelta(hours=1))
    task = world.processes.watch.tasks[order]
    assert task.state is TaskState.COMPLETED
    assert world.standing(order) == [*before, "last"]
    assert task.fan_outs == ({"pick": 2} if "for_each" in more else {})
