"""World.tables_down: who notices, and how it ends."""

from datetime import timedelta

import pytest

from roundsman.errors import Throttled, TryAgain
from roundsman.model.states import TaskState
from roundsman_testing import World
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow

charge = a_step("charge", compensation=FENCED)
ship = a_step("ship", charge, compensation=FENCED)


def test_a_call_fails_as_it_does_in_the_adapter_and_the_test_still_sees_the_tables() -> None:
    world = World(a_workflow(charge))
    order = world.submit()
    world.run()
    with world.processes.tables.down(), pytest.raises(TryAgain) as failed:
        world.processes.store.load(order, world.now)
    assert not isinstance(failed.value, Throttled)
    assert "InternalServerError" in str(failed.value)
    world.tables_down(MINUTE)
    assert world.processes.store.load(order, world.now) is not None


def test_the_watch_of_an_agents_calls_sees_the_holds_although_the_agent_cannot_read_them() -> None:
    world = World(a_workflow(charge, ship))
    world.mail("requests").arrives().is_late(timedelta(seconds=3))
    first, second = world.submit(), world.submit()
    world.run(for_=timedelta(seconds=1))
    assert world.standing(second) == []
    world.hold("ship", MINUTE)
    world.tables_down(MINUTE)
    world.run(for_=timedelta(seconds=4))
    assert world.standing(second) == ["charge"], "its agent knows the holds for five seconds"
    world.run()
    assert {world.task(order).state for order in (first, second)} == {TaskState.COMPLETED}


def test_all_is_well_ends_the_outage() -> None:
    world = World(a_workflow(charge))
    world.tables_down(timedelta(days=1))
    order = world.submit()
    world.run(for_=MINUTE)
    world.all_is_well()
    world.run(for_=2 * MINUTE)
    assert world.task(order).state is TaskState.COMPLETED
