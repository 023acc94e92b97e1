"""A rate for each tenant at an agent: what is above it waits, and takes no place of the others."""

from collections.abc import Iterable, Iterator
from datetime import timedelta

import pytest

from roundsman.aws.dynamodb.tenant_rates import DynamoTenantRates
from roundsman.model.priority import Priority
from roundsman.model.situations import Parked
from roundsman.model.task import Task
from roundsman.model.tenant_rate import tenant_lane
from roundsman_testing import Circuit, TaskState, World
from roundsman_testing.memory import TABLES
from tests.world.shop import FENCED, ONCE, a_step, a_workflow, requests_sent, since_morning

SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
SLOW = Circuit(tenant_calls_per_second=1 / 60)
LANE = tenant_lane("charge", "shop-1")


def a_shop(circuit: Circuit | None = None) -> World:
    """A world whose agent `charge` makes a call in two seconds for each tenant."""
    circuit = circuit or Circuit(tenant_calls_per_second=0.5)
    return World(a_workflow(a_step("charge")), circuits={"charge": circuit})


def submit(world: World, tenant: str | None, number: int = 1) -> list[str]:
    of_tenant = {} if tenant is None else {"tenant": tenant}
    return [world.submit({"processing": {**of_tenant}}) for _ in range(number)]


def tasks(world: World, orders: Iterable[str]) -> Iterator[Task]:
    return (world.task(one) for one in orders)


def all_completed(world: World, orders: Iterable[str]) -> bool:
    return {task.state for task in tasks(world, orders)} == {TaskState.COMPLETED}


def parked(world: World, order: str) -> Parked:
    record = world.task(order).step("charge")
    assert isinstance(record.situation, Parked)
    return record.situation


def test_a_flood_of_one_tenant_is_slowed_and_the_others_go_on_at_once() -> None:
    world = a_shop()
    flood = submit(world, "shop-1", 20)
    others = [*submit(world, "shop-2"), *submit(world, "shop-3"), *submit(world, None, 3)]
    world.run(for_=5 * SECOND)
    assert all_completed(world, others)
    assert sum(task.ended for task in tasks(world, flood)) <= 3
    world.run()
    assert all_completed(world, flood)
    assert since_morning(world) >= timedelta(seconds=2 * 19)


def test_one_above_the_rate_waits_without_an_attempt_and_its_time_stands_still() -> None:
    world = a_shop(SLOW)
    [_, order] = submit(world, "shop-1", 2)
    world.run(for_=5 * SECOND)
    record = world.task(order).step("charge")
    assert (record.failure_count, record.locked_by) == (0, None)
    assert record.at_rate
    assert record.error is not None
    assert record.error.message == (
        "charge has reached its limit of 0.0166667 calls per second for the tenant of the order"
    )
    by = world.task(order).complete_by
    world.run()
    assert all_completed(world, [order])
    assert world.task(order).complete_by >= by + 50_000


def test_nothing_is_asked_before_its_time_by_those_that_wait() -> None:
    """Not at a pass of the supervisor either, which looks at what is due soon."""
    world = a_shop(Circuit(tenant_calls_per_second=1 / 600))
    orders = submit(world, "shop-1", 20)
    world.run(for_=5 * SECOND)
    sent, waits = requests_sent(world), [one for one in orders if not world.task(one).ended]
    assert len(waits) == 19
    world.run(for_=9 * MINUTE)
    assert sent == []
    latest = max(parked(world, one).not_before for one in waits) - world.now
    assert latest <= 60 * 60_000 + 10_000, "an hour and the spread"


def test_a_flood_asks_few_times_for_each_order() -> None:
    world = a_shop()
    sent = requests_sent(world)
    orders = submit(world, "shop-1", 60)
    world.run()
    assert all_completed(world, orders)
    assert len(sent) <= 3 * len(orders)


def test_no_release_of_the_agent_wakes_those_in_the_lane_of_a_tenant() -> None:
    world = a_shop(SLOW)
    [first, order] = submit(world, "shop-1", 2)
    world.run(for_=5 * SECOND)
    shard, at = world.task(order).shard, parked(world, order).not_before
    lane = world.processes.store.parked(LANE, Priority.NORMAL, shard, after=0)
    assert [one.task_id for one in lane] == [order]
    world.hold("charge", 10 * SECOND)
    world.release("charge")
    world.run(for_=20 * SECOND)
    assert parked(world, order).not_before == at
    assert all_completed(world, [first])


def test_one_whose_agent_is_held_at_its_time_waits_for_the_release() -> None:
    world = a_shop(SLOW)
    [_, order] = submit(world, "shop-1", 2)
    world.run(for_=5 * SECOND)
    world.hold("charge", 30 * MINUTE)
    world.run(for_=5 * MINUTE)
    assert parked(world, order).held_for == "charge"
    world.release("charge")
    world.run(for_=5 * MINUTE)
    assert all_completed(world, [order])


def test_an_undo_above_the_rate_waits_as_well() -> None:
    charge = a_step("charge", compensation=FENCED)
    world = World(a_workflow(charge, a_step("ship", charge, retry=ONCE)), circuits={"charge": SLOW})
    world.on("ship").refuses("NoStock")
    [order] = submit(world, "shop-1")
    world.run(for_=30 * SECOND)
    assert world.task(order).state is TaskState.UNDOING
    assert world.task(order).step("charge").at_rate
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert since_morning(world) >= MINUTE


def test_a_rate_that_is_lifted_lets_one_go_on_that_is_run() -> None:
    world = a_shop(SLOW)
    orders = submit(world, "shop-1", 5)
    world.run(for_=5 * SECOND)
    rates = DynamoTenantRates(world.processes.tables.client, control_table=TABLES.control)
    until = world.now + 60_000
    rates.lift("charge", "shop-1", until=until, by="amy", now=world.now)
    for order in orders[1:]:
        world.operator.run_now(order)
    world.run(for_=5 * SECOND)
    assert all_completed(world, orders)


def test_the_rate_of_a_tenant_must_be_more_than_nothing() -> None:
    with pytest.raises(ValueError, match="tenant_calls_per_second must be more than 0"):
        Circuit(tenant_calls_per_second=0)
