"""A part of a completed order is taken back, whatever fails meanwhile: the rest of it stands."""

from datetime import timedelta

import pytest

from roundsman.engine.newly_owed import PARTLY_UNDONE
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Termination
from roundsman_testing import (
    Invariant,
    InvariantBroken,
    ProcessingOptions,
    World,
    crash_everywhere,
)
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MONEY, a_step, a_workflow

reserve = a_step("reserve", compensation=FENCED)
pick = a_step("pick", reserve, compensation=FENCED, for_each="input.lines")
charge = a_step("charge", reserve, compensation=MONEY)
SHOP = a_workflow(reserve, pick, charge)
ORDER = {"orderId": "ord-1", "lines": ["KB-1", "KB-2", "KB-3"]}
TELL = ProcessingOptions(reply_to="https://queue.example/replies")


def completed(world: World) -> str:
    order = world.submit(dict(ORDER), options=TELL)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    return order


def standing(world: World, order: str) -> set[str]:
    return {effect.step for effect in world.services.ledger.standing(order)}


def partly_undone(world: World) -> None:
    order = completed(world)
    world.operator.undo(order, "pick[1]", "charge")
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert standing(world, order) == {"reserve", "pick[0]", "pick[2]"}


def test_the_named_steps_are_undone_and_the_application_is_told() -> None:
    world = World(SHOP)
    partly_undone(world)
    world.check_all_ended()
    assert [status.name for status in world.statuses("ord-1")] == [
        *("received", "started", "completed", PARTLY_UNDONE)
    ]


@at_every_call
def test_a_part_is_undone_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        partly_undone, lambda faults: World(SHOP, faults=faults), faults=kinds
    ).runs


def test_the_rest_is_undone_later() -> None:
    world = World(SHOP)
    partly_undone(world)
    world.operator.undo("ord-1")
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert standing(world, "ord-1") == set()


def test_an_undo_that_failed_goes_on_when_it_is_resubmitted_and_the_rest_stands() -> None:
    world = World(SHOP)
    order = completed(world)
    world.on("charge", "undo").refuses()
    world.operator.undo(order, "charge")
    world.run()
    assert world.task(order).state is TaskState.ARCHIVED
    world.on("charge", "undo").is_up()
    world.operator.resubmit(order)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert standing(world, order) == {"reserve", "pick[0]", "pick[1]", "pick[2]"}
    world.check_all_ended()


def test_what_is_refused_is_in_the_history_and_changes_nothing() -> None:
    world = World(SHOP)
    order = completed(world)
    world.operator.undo(order, "reserve")
    world.run()
    assert len(standing(world, order)) == 5
    refused = [row for row in world.history(order) if row.kind == "refused"]
    assert [row.reason.partition(" refused: ")[0] for row in refused] == ["undo-part by operator"]
    assert "took effect after a step that is named" in refused[0].reason


def test_a_part_may_be_taken_back_while_a_service_is_down() -> None:
    world = World(SHOP)
    order = completed(world)
    world.on("charge", "undo").is_down()
    world.operator.undo(order, "charge")
    world.run(for_=timedelta(minutes=1))
    assert world.task(order).step("charge").process_state is ProcessState.UNDOING
    world.on("charge", "undo").is_up()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert "charge" not in standing(world, order)


@pytest.mark.parametrize(
    "undoes",
    [lambda ending, step: ending.undo, lambda ending, step: step == "pick[1]"],
    ids=["all of it is undone", "less of it is undone"],
)
def test_an_engine_that_undoes_other_steps_than_are_named_is_found(
    undoes: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Termination, "undoes", undoes)
    with pytest.raises(InvariantBroken) as broken:
        partly_undone(World(SHOP))
    assert Invariant.TAKEN_BACK in {one.invariant for one in broken.value.broken}
