"""What waits for a hold or an open circuit asks nothing, and is woken by its end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.holds import BREAKER
from roundsman.model.instants import SECOND
from roundsman.model.priority import Priority
from roundsman.model.states import TaskState
from roundsman.supervisor.parked import A_SECOND
from roundsman_testing import FOR_EVER, World
from roundsman_testing.world.queues import COMMANDS
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow

SECONDS = timedelta(seconds=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

charge = a_step("charge", compensation=FENCED)
ship = a_step("ship", compensation=FENCED)


def ended_after(world: World, orders: Sequence[str], since: int) -> list[int]:
    """When each order completed, in seconds since an instant."""
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}
    return [((world.task(order).ended_at or 0) - since) // SECOND for order in orders]


def test_a_parked_order_asks_nothing_for_ten_days_and_is_woken_when_its_hold_runs_out() -> None:
    world = World(a_workflow(charge))
    world.hold("charge", 10 * DAY)
    order = world.submit()
    world.run(for_=HOUR)
    began, before = world.now - 3_600_000, world.functions.read["scheduler"]
    world.run(for_=9.5 * DAY)
    assert world.functions.read["scheduler"] - before <= 10, "one message a day"
    world.run()
    assert ended_after(world, [order], began)[0] <= 10 * 86_400 + 60


@pytest.mark.parametrize("lost", [False, True], ids=["nothing is lost", "every Inspect is lost"])
def test_a_release_wakes_within_half_a_minute_and_again_after_five_minutes(lost: bool) -> None:
    world = World(a_workflow(charge))
    if lost:
        world.mail(COMMANDS, '"kind":"inspect"').is_lost(times=FOR_EVER)
    world.hold("charge", 10 * DAY)
    orders = [world.submit() for _ in range(5)]
    world.run(for_=3 * HOUR)
    released = world.now
    world.release("charge")
    world.run()
    assert max(ended_after(world, orders, released)) <= (330 if lost else 30)


def test_an_order_whose_wake_is_lost_checks_its_hold_itself_within_a_day() -> None:
    world = World(a_workflow(charge))
    world.wakes_are_lost()
    world.hold("charge", 10 * DAY)
    order = world.submit()
    world.run(for_=3 * DAY)
    released = world.now
    world.release("charge")
    world.run()
    assert 330 < ended_after(world, [order], released)[0] <= 1.1 * 86_400


@pytest.mark.verify
def test_urgent_orders_are_woken_first_then_those_that_have_waited_longest_at_the_rate() -> None:
    world = World(a_workflow(charge))
    world.check_every = 50
    world.hold("charge", 10 * DAY)
    normal = []
    for _ in range(4 * A_SECOND):
        normal.append(world.submit())
        world.run(for_=SECONDS)
    urgent = world.submit(options=ProcessingOptions(priority=Priority.URGENT))
    world.run(for_=HOUR)
    released = world.now
    world.release("charge")
    world.run()
    assert ended_after(world, [urgent], released)[0] <= 12
    times = ended_after(world, normal, released)
    assert times == sorted(times)
    assert times[-1] - times[0] >= 3, "four seconds at the rate"


@pytest.mark.verify
def test_a_new_hold_stops_the_waking() -> None:
    world = World(a_workflow(charge))
    world.check_every = 50
    world.hold("charge", 10 * DAY)
    orders = [world.submit() for _ in range(20 * A_SECOND)]
    world.run(for_=MINUTE)
    world.release("charge")
    world.run(for_=13 * SECONDS)
    world.hold("charge", 2 * HOUR)
    world.run(for_=HOUR)
    done = sum(world.task(order).ended for order in orders)
    assert 0 < done < 12 * A_SECOND
    world.run()
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}


def test_a_share_of_the_orders_is_woken_and_the_others_are_with_the_rest() -> None:
    world = World(a_workflow(charge))
    world.check_every = 20
    world.hold_all(10 * DAY)
    orders = [world.submit() for _ in range(40)]
    world.run(for_=HOUR)
    world.release_all(share=40)
    world.run(for_=MINUTE)
    some = sum(world.task(order).ended for order in orders)
    assert 4 < some < 36
    world.run(for_=HOUR)
    assert sum(world.task(order).ended for order in orders) == some
    world.release_all()
    world.run(for_=MINUTE)
    assert all(world.task(order).ended for order in orders)


def test_the_rest_of_a_share_and_a_second_workflow_are_woken_when_their_holds_run_out() -> None:
    other = replace(a_workflow(charge), name="other")
    world = World(a_workflow(charge), other)
    world.check_every = 20
    world.hold_workflow("story", 4 * HOUR)
    world.hold_workflow("other", 5 * HOUR)
    orders = [world.submit(workflow=name) for name in ("story", "other") for _ in range(10)]
    began = world.now
    world.run(for_=HOUR)
    world.release_workflow("story", share=50)
    world.run(for_=3 * HOUR + MINUTE)
    assert all(world.task(order).ended for order in orders[:10])
    world.run(for_=HOUR)
    assert max(ended_after(world, orders, began)) <= 5 * 3_600 + 60


def test_a_task_of_two_agents_is_woken_by_the_end_of_either_hold() -> None:
    world = World(a_workflow(charge, ship))
    world.hold("charge", 10 * DAY)
    world.hold("ship", 10 * DAY)
    order = world.submit()
    world.run(for_=HOUR)
    for agent in ("ship", "charge"):
        world.release(agent)
        world.run(for_=30 * SECONDS)
        assert world.standing(order)[-1] == agent
    assert world.task(order).state is TaskState.COMPLETED


def test_an_open_circuit_is_tried_by_one_order_a_recovery_time_and_its_success_wakes_all() -> None:
    world = World(a_workflow(charge))
    world.check_every = 20
    world.on("charge").is_down()
    orders = []
    for _ in range(20):
        orders.append(world.submit())
        world.run(for_=2 * SECONDS)
    world.run(for_=10 * MINUTE)
    calls = world.functions.read["charge"]
    world.run(for_=10 * MINUTE)
    assert 10 <= world.functions.read["charge"] - calls <= 25, "one each 30 s or a little more"
    back = world.now
    world.on("charge").is_up()
    world.run()
    assert max(ended_after(world, orders, back)) <= 80


def test_a_circuit_whose_trials_are_all_lost_is_tried_by_the_supervisors_own_visits() -> None:
    world = World(a_workflow(charge))
    world.mail(COMMANDS, '"kind":"inspect"').is_lost(times=FOR_EVER)
    world.hold("charge", HOUR, "its circuit is open", BREAKER)
    orders = [world.submit() for _ in range(3)]
    world.run()
    began = min(world.task(order).created_at for order in orders)
    assert max(ended_after(world, orders, began)) <= 3_600 + 420


def test_each_trial_of_a_circuit_wakes_twice_as_many_orders_until_one_calls() -> None:
    """Those that have waited longest may still wait for others, and not call."""
    pack = replace(a_step("pack"), agent="", agents=("first", "second"))
    world = World(a_workflow(pack), replace(a_workflow(charge), name="other"))
    for agent in pack.agents:
        world.hold(agent, DAY)
    for _ in range(5):
        world.submit()
    world.run(for_=MINUTE)
    world.hold("charge", 5 * MINUTE, "its circuit is open", BREAKER)
    order, began = world.submit(workflow="other"), world.now
    world.run(for_=10 * MINUTE)
    assert ended_after(world, [order], began)[0] <= 300 + 150
