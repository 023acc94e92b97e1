"""Parked orders delay nobody: an order of another agent is as fast beside them as alone."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.model.holds import BREAKER
from roundsman.model.states import TaskState
from roundsman_testing import Capacity, World
from tests.world.shop import a_step, a_workflow

HOUR = timedelta(hours=1)
SCHEDULER = Capacity(instances=1, takes=timedelta(seconds=0.5))
"""Two messages a second."""

held = replace(a_workflow(a_step("charge")), name="held")
healthy = replace(a_workflow(a_step("ship")), name="healthy")


def longest_of_99_percent(parked: int, kind: str) -> int:
    """The p99 in ms of the times of a hundred healthy orders, one each 20 s, beside parked ones."""
    world = World(held, healthy, capacity={"scheduler": SCHEDULER})
    world.check_every = 10_000
    world.hold("charge", 20 * HOUR, kind=kind)
    for _ in range(parked):
        world.submit(workflow="held")
    world.run(for_=HOUR / 2)
    orders = []
    for _ in range(100):
        orders.append(world.submit(workflow="healthy"))
        world.run(for_=timedelta(seconds=20))
    tasks = [world.task(order) for order in orders]
    assert {task.state for task in tasks} == {TaskState.COMPLETED}
    times = sorted((task.ended_at or 0) - task.created_at for task in tasks)
    return times[98]


@pytest.mark.verify
@pytest.mark.parametrize("kind", ["operator", BREAKER])
def test_parked_orders_do_not_make_healthy_ones_slower(kind: str) -> None:
    """1,111 for two messages a second are 100,000 for the 180 of the template; this is a part."""
    assert longest_of_99_percent(400, kind) <= 1.2 * longest_of_99_percent(0, kind)
