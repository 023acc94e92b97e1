"""The tables are down for a time: orders are late, and nothing is lost."""

from datetime import timedelta

import pytest

from roundsman.model.states import TaskState
from roundsman_testing import World
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow, requests_sent

charge = a_step("charge", compensation=FENCED)
ship = a_step("ship", charge, compensation=FENCED)


def test_what_comes_while_the_tables_are_down_waits_until_they_are_up() -> None:
    world = World(a_workflow(charge, ship))
    first = world.submit()
    world.run(until=lambda: bool(world.standing(first)))
    sent = requests_sent(world)
    world.tables_down(30 * MINUTE)
    second = world.submit()
    world.run(for_=29 * MINUTE)
    assert (world.standing(first), sent) == (["charge"], [])
    with pytest.raises(LookupError):
        world.task(second)
    world.run(for_=5 * MINUTE)
    for order in (first, second):
        assert world.task(order).state is TaskState.COMPLETED
        assert {one.failure_count for one in world.task(order).steps.values()} == {0}
    assert world.queues.dead == []


def test_an_order_that_waits_for_longer_than_its_deliveries_is_a_dead_letter() -> None:
    world = World(a_workflow(charge))
    world.tables_down(timedelta(hours=3))
    order = world.submit()
    world.run()
    assert [mail.queue for mail in world.queues.dead] == ["orders"]
    world.redrive()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
