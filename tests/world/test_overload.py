"""Overload delays and never destroys: long queues, open circuits, held agents."""

from datetime import timedelta

import pytest

from roundsman.model.holds import BREAKER, OPERATOR
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing import FOR_EVER, Capacity, World
from roundsman_testing.world.queues import REQUESTS
from tests.world.shop import (
    FENCED,
    MINUTE,
    ONCE,
    a_step,
    a_workflow,
    requests_sent,
    since_morning,
)

SECONDS = timedelta(seconds=1)

careful = a_step("charge", compensation=FENCED, retry=ONCE)
"""One attempt and no more: whatever counts against it undoes the order."""


def one_reader(each: timedelta) -> World:
    """A world whose agent has one instance, and calls that take their time."""
    world = World(a_workflow(careful), capacity={"charge": Capacity(takes=SECONDS / 10)})
    world.on("charge").takes(each, FOR_EVER)
    return world


def test_every_order_of_a_backlog_longer_than_its_time_completes_and_none_is_undone() -> None:
    world = one_reader(each=10 * SECONDS)
    orders = [world.submit() for _ in range(30)]
    world.run()
    assert since_morning(world) > 5 * MINUTE, "five times as long as one of them may take"
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}
    assert {world.task(order).step("charge").failure_count for order in orders} == {0}


def test_an_order_of_a_backlog_whose_calls_take_long_has_one_request_and_waits_in_its_queue() -> (
    None
):
    world = one_reader(each=25 * SECONDS)
    sent = requests_sent(world)
    orders = [world.submit() for _ in range(12)]
    world.run()
    assert since_morning(world) > 5 * MINUTE, "five times as long as one of them may take"
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}
    assert {world.task(order).step("charge").failure_count for order in orders} == {0}
    assert len(sent) == len(orders)


def test_a_request_that_is_always_read_too_late_is_given_the_time_of_its_queue() -> None:
    world = World(a_workflow(careful))
    world.mail(REQUESTS).arrives().is_late(90 * SECONDS, times=1_000)
    world.submit()  # is read at once; then the queue grows
    world.run(for_=MINUTE)
    sent = requests_sent(world)
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert len(sent) == 2, "it was sent again before it was known that the queue is behind"
    assert world.task(order).step("charge").failure_count == 0
    assert since_morning(world) < 6 * MINUTE


def test_ten_minutes_of_an_open_circuit_burn_no_attempt() -> None:
    world = World(a_workflow(careful))
    sent = requests_sent(world)
    world.hold("charge", 10 * MINUTE, "its circuit is open", BREAKER)
    order = world.submit()
    world.run(for_=9 * MINUTE)
    assert not sent
    world.run()
    assert sent == ["charge"]
    assert world.task(order).state is TaskState.COMPLETED


def test_what_was_sent_before_its_circuit_opened_is_given_back_and_burns_none_either() -> None:
    world = World(a_workflow(careful))
    sent = requests_sent(world)
    world.mail(REQUESTS).is_late(10 * SECONDS)
    order = world.submit()
    world.run(for_=5 * SECONDS)
    world.hold("charge", 10 * MINUTE, "its circuit is open", BREAKER)
    world.run()
    assert sent == ["charge", "charge"]
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 11 * MINUTE


@pytest.mark.parametrize("kind", [OPERATOR, BREAKER])
def test_a_task_whose_time_runs_out_while_its_agent_is_held_completes(kind: str) -> None:
    hour = timedelta(hours=1)
    first = a_step("reserve", compensation=FENCED)
    last = a_step("charge", first, compensation=FENCED, retry=ONCE)
    world = World(a_workflow(first, last, complete_within=hour))
    world.hold("charge", 3 * hour, "the bank is closed", kind)
    order = world.submit()
    world.run(for_=2.5 * hour)
    assert world.task(order).state is TaskState.RETRY
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 3 * hour + MINUTE


@pytest.mark.parametrize("lost", [0, 100], ids=["nothing is lost", "every Inspect is lost"])
def test_a_held_step_is_woken_by_the_end_of_its_hold_without_a_message(lost: int) -> None:
    world = World(a_workflow(careful))
    world.mail("commands", '"kind":"inspect"').is_lost(times=lost)
    world.hold("charge", timedelta(days=1), "until further notice")
    order = world.submit()
    world.run(for_=30 * MINUTE)
    assert world.task(order).step("charge").process_state is ProcessState.PENDING
    world.release("charge")
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert since_morning(world) < 30 * MINUTE + 7 * MINUTE


def test_an_undo_whose_agent_is_held_is_made_when_the_hold_ends() -> None:
    world = World(a_workflow(careful, a_step("ship", careful), complete_within=timedelta(hours=1)))
    world.on("ship").refuses("AddressUndeliverable")
    order = world.submit()
    world.run(until=lambda: bool(world.standing(order)))
    world.hold("charge", timedelta(hours=2))
    sent = requests_sent(world)
    world.run(for_=timedelta(hours=1.5))
    assert world.task(order).state is TaskState.UNDOING
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []
    assert sent == ["ship", "charge"], "the undo is asked for once, when it can be made"
    assert world.now - world.task(order).created_at < (2 * 3600 + 60) * SECOND
