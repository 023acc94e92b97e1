"""A completed order is taken back, whatever fails meanwhile: nothing of it stands in the end."""

from dataclasses import replace
from datetime import timedelta

from roundsman.model.states import TaskState
from roundsman_testing import World, crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MONEY, a_step, a_workflow

reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=MONEY)
ship = a_step("ship", charge)
SHOP = a_workflow(reserve, charge, ship)


def taken_back(world: World) -> None:
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    world.operator.undo(order)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    standing = [effect.step for effect in world.services.ledger.standing(order)]
    assert standing == ["ship"], "it has no compensation"


def test_what_can_be_undone_is_undone() -> None:
    world = World(SHOP)
    taken_back(world)
    world.check_all_ended()


@at_every_call
def test_it_is_undone_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        taken_back, lambda faults: World(SHOP, faults=faults), faults=kinds
    ).runs


def test_once_its_retention_is_over_there_is_nothing_to_take_back() -> None:
    world = World(SHOP)
    order = world.submit()
    world.run(for_=timedelta(days=8))
    world.operator.undo(order)
    world.run()
    assert {effect.step for effect in world.services.ledger.standing(order)} == {
        "reserve",
        "charge",
        "ship",
    }


def test_what_the_service_may_have_forgotten_is_not_undone_but_given_to_a_person() -> None:
    forgetful = replace(MONEY, key_lifetime=timedelta(days=2))
    world = World(a_workflow(reserve, a_step("charge", reserve, compensation=forgetful)))
    order = world.submit()
    world.run(for_=timedelta(days=3))
    world.operator.undo(order)
    world.run()
    assert world.task(order).state is TaskState.ARCHIVED
    assert [effect.step for effect in world.services.ledger.standing(order)] == ["charge"]
    assert not [one for one in world.services.ledger.count if "charge/undo" in str(one)]
    error = world.task(order).step("charge").error
    assert error is not None
    assert error.type == "KeyExpired"
