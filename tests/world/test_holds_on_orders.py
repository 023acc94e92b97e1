"""A hold on a workflow or on everything: what waits, what goes on, and in which share."""

from dataclasses import replace
from datetime import timedelta

from roundsman.errors import PermanentError
from roundsman.model.holds import is_in_share
from roundsman.model.instants import milliseconds
from roundsman.model.situations import Parked
from roundsman_testing import TaskState, World
from roundsman_testing.world.services import CallEnd
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow, requests_sent

HOURS = timedelta(hours=3)
"""Longer than the two hours that an order has."""
reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, retry=ONCE)
STORY = a_workflow(reserve, charge)
SECOND = timedelta(seconds=1)


def states(world: World, orders: list[str]) -> set[TaskState]:
    return {world.task(order).state for order in orders}


def begun(world: World) -> str:
    """An order whose first step is at its agent."""
    world.on("reserve").takes(timedelta(seconds=30))
    order = world.submit()
    world.run(for_=SECOND)
    world.run(until=lambda: world.task(order).step("reserve").locked_by is not None)
    return order


def test_new_orders_are_accepted_and_wait_and_go_on_with_all_their_time() -> None:
    world = World(STORY)
    world.hold_all(HOURS, "bad weather")
    world.run(for_=SECOND)
    sent = requests_sent(world)
    order = world.submit()
    world.run(for_=HOURS - 2 * MINUTE)
    step = world.task(order).step("reserve")
    assert isinstance(step.situation, Parked)
    assert (step.failure_count, step.started_at, sent) == (0, None, [])
    assert step.error is not None
    assert "everything is on hold by operator until" in step.error.message
    assert step.error.message.endswith("bad weather")
    assert world.statuses(order) == []
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    has = world.task(order).complete_by - world.task(order).created_at
    assert has >= milliseconds(HOURS - 2 * MINUTE + timedelta(hours=2))


def test_what_runs_ends_as_always_and_nothing_begins_after_it() -> None:
    world = World(STORY)
    order = begun(world)
    world.hold_all(HOURS)
    sent = requests_sent(world)
    world.run(for_=10 * MINUTE)
    task = world.task(order)
    assert task.step("reserve").finished_at is not None
    assert isinstance(task.step("charge").situation, Parked)
    assert sent == []
    assert world.standing(order) == ["reserve"]
    world.release_all()
    world.run(for_=10 * MINUTE)
    assert world.task(order).state is TaskState.COMPLETED, "within minutes, and not in three hours"


def held_while_undoing(*, undos: bool) -> tuple[World, str]:
    """An order whose second step is refused while everything is on hold."""
    world = World(STORY)
    declined = CallEnd(done=False, takes=30_000, error=PermanentError("CardDeclined"))
    world.on("charge").add(declined)
    order = world.submit()
    world.run(for_=SECOND)
    world.run(until=lambda: world.task(order).step("charge").locked_by is not None)
    world.hold_all(timedelta(hours=1), undos=undos)
    world.run(for_=20 * MINUTE)
    return world, order


def test_undos_go_on() -> None:
    world, order = held_while_undoing(undos=False)
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []


def test_undos_wait_too_if_the_hold_says_so() -> None:
    world, order = held_while_undoing(undos=True)
    assert isinstance(world.task(order).step("reserve").situation, Parked)
    assert world.standing(order) == ["reserve"]
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []


def test_a_hold_on_one_workflow_leaves_the_others_alone() -> None:
    world = World(STORY, replace(a_workflow(a_step("reserve")), name="other"))
    world.hold_workflow("story", HOURS)
    world.run(for_=SECOND)
    held, free = world.submit(), world.submit(workflow="other")
    world.run(for_=10 * MINUTE)
    assert isinstance(world.task(held).step("reserve").situation, Parked)
    assert world.task(free).state is TaskState.COMPLETED
    world.release_workflow("story")
    world.run(for_=10 * MINUTE)
    assert world.task(held).state is TaskState.COMPLETED


def test_a_share_of_the_orders_goes_on_and_each_share_contains_the_one_before() -> None:
    world = World(STORY)
    world.hold_all(timedelta(hours=6))
    world.run(for_=SECOND)
    orders = [world.submit() for _ in range(60)]
    gone: set[str] = set()
    for share in (1, 10, 50):
        world.release_all(share)
        world.run(for_=10 * MINUTE)
        done = {one for one in orders if world.task(one).state is TaskState.COMPLETED}
        assert done == {one for one in orders if is_in_share(one, share)}
        assert gone <= done
        gone = done
    assert 15 <= len(gone) <= 45
    world.release_all()
    world.run(for_=10 * MINUTE)
    assert states(world, orders) == {TaskState.COMPLETED}


def test_a_healthy_order_never_fails_because_of_holds_that_come_and_go() -> None:
    world = World(STORY)
    world.on("charge").takes(timedelta(seconds=50))
    orders = []
    for number in range(12):
        orders.append(world.submit())
        world.hold_all(timedelta(minutes=25), undos=number % 2 == 0)
        world.run(for_=timedelta(seconds=20 + 7 * number))
        world.release_all(10)
        world.run(for_=timedelta(minutes=9))
        if number % 3 == 0:
            world.release_all()
    world.run()
    assert states(world, orders) == {TaskState.COMPLETED}
    assert all(step.failure_count == 0 for o in orders for step in world.task(o).steps.values())


def test_a_deadline_runs_on_while_everything_is_on_hold() -> None:
    world = World(a_workflow(reserve, charge, deadline=timedelta(hours=1)))
    world.hold_all(HOURS)
    world.run(for_=SECOND)
    order = world.submit()
    world.run(for_=timedelta(minutes=70))
    ending = world.task(order).ending
    assert ending is not None
    assert ending.why.startswith("the task's deadline was ")
