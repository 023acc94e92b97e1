"""One order passes the hold on an agent, to see whether its service is well again."""

from datetime import timedelta

import pytest

from roundsman_testing import TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow

reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED)
SHOP = a_workflow(reserve, charge, complete_within=timedelta(hours=8))


def one_passes(world: World) -> None:
    """Of two orders that wait for a held agent, one is let pass; the other goes on after it."""
    world.hold("charge", timedelta(hours=1), "it declines every card")
    tried, other = world.submit(), world.submit()
    world.let_pass("charge", tried)
    world.run(for_=20 * MINUTE)
    assert world.task(other).step("charge").situation_name == "parked"
    assert world.standing(other) == ["reserve"]
    world.run()
    assert world.task(tried).state is world.task(other).state is TaskState.COMPLETED


def test_the_order_that_is_tried_completes_while_the_others_wait() -> None:
    world = World(SHOP)
    one_passes(world)
    ended = [world.task(name).ended_at or 0 for name in world.orders()]
    assert ended[0] < ended[1]
    assert ended[1] - ended[0] > timedelta(minutes=50) // timedelta(milliseconds=1)


@at_every_call
def test_it_does_so_whatever_call_fails(kinds: Kinds) -> None:
    assert crash_everywhere(
        one_passes, lambda faults: World(SHOP, faults=faults), faults=kinds
    ).runs


def test_it_waits_for_an_open_circuit_as_the_others_do() -> None:
    world = World(SHOP)
    world.hold("charge", timedelta(hours=1), "repair")
    world.hold("charge", timedelta(minutes=30), "it answers 503", kind="breaker")
    order = world.submit()
    world.let_pass("charge", order)
    world.run(for_=10 * MINUTE)
    assert world.task(order).step("charge").situation_name == "parked"
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_only_a_held_agent_lets_pass() -> None:
    with pytest.raises(ValueError, match="charge is not held"):
        World(SHOP).let_pass("charge", "ord-1")
