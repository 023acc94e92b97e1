"""Messages that come twice, at once or not at all, and statuses that cannot be sent."""

from datetime import timedelta
from itertools import count
from typing import cast

import pytest

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman_testing import Fault, World
from roundsman_testing.world.queues import MOST_RECEIVES, ORDERS, REPLIES
from tests.world.shop import (
    FENCED,
    MINUTE,
    a_step,
    a_workflow,
    meanwhile,
    requests_sent,
    waiting,
)

STATUSES = ProcessingOptions(reply_to="https://queue/of/the/shop")
NO_TIMER = timedelta(hours=1)
SECOND = timedelta(seconds=1)


def one_step(**more: object) -> World:
    return World(a_workflow(a_step("charge", compensation=FENCED)), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("kept", [timedelta(days=7), timedelta()], ids=["kept", "not kept"])
@pytest.mark.parametrize("dead", [False, True], ids=["redelivered", "in the dead letters"])
def test_completed_is_sent_though_the_function_dies_between_its_write_and_the_status(
    kept: timedelta, dead: bool
) -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED), retain_for=kept))
    if not dead:
        world = World(*world.workflows.values(), interval=NO_TIMER)
    world.faults.on("send_status", Fault.CRASH_BEFORE, nth=3)  # received, started, completed
    order = world.submit(options=STATUSES)
    world.run(until=lambda: Fault.CRASH_BEFORE in world.faults.count)
    assert world.task(order).state is TaskState.COMPLETED
    assert "completed" not in [status.name for status in world.statuses(order)]
    if dead:
        [reply] = waiting(world, REPLIES)
        reply.receives = MOST_RECEIVES[REPLIES]
    world.run()
    assert [status.name for status in world.statuses(order)] == ["received", "started", "completed"]
    assert bool(world.queues.dead) is dead


def test_a_reply_queue_that_its_customer_has_deleted_stops_no_healthy_order() -> None:
    first = a_step("charge", compensation=FENCED)
    world = World(a_workflow(first, a_step("ship", first, compensation=FENCED)))
    world.post.dead_queues.add("https://queue/of/the/shop")
    order = world.submit(options=STATUSES)
    world.run(for_=SECOND)
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["charge", "ship"]
    assert not world.task(order).owed, "a status that can never be sent is given up"


def test_statuses_that_fail_for_now_delay_no_step_and_are_sent_in_the_end() -> None:
    first = a_step("charge", compensation=FENCED)
    world = World(a_workflow(first, a_step("ship", first, compensation=FENCED)))
    world.faults.on("send_status", Fault.NOT_DONE)
    order = world.submit(options=STATUSES)
    world.run(for_=SECOND)
    assert world.task(order).state is TaskState.COMPLETED
    world.run(for_=5 * MINUTE)
    assert not world.statuses(order)
    world.all_is_well()
    world.run()
    names = {status.name for status in world.statuses(order)}
    assert names == {"received", "started", "completed"}


@pytest.mark.parametrize("kept", [timedelta(), MINUTE], ids=["not kept", "a minute"])
def test_an_order_event_that_comes_again_when_its_task_is_gone_creates_nothing(
    kept: timedelta,
) -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED), retain_for=kept))
    sent = requests_sent(world)
    order = world.submit({"orderId": "ord-1", "total": "39.80"})
    world.run(for_=5 * MINUTE)
    assert world.processes.store.load(order, world.now) is None
    world.submit({"orderId": "ord-1", "total": "39.80"})
    world.run()
    assert world.processes.store.load(order, world.now) is None
    assert sent == ["charge"]
    assert "its task has ended and was removed" in str(world.trace)


def test_an_order_that_comes_twice_is_the_same_though_its_input_function_numbers_it() -> None:
    numbers = count()

    def numbered(order: dict[str, Json]) -> Json:
        cast("list[Json]", order["lines"]).append({"number": next(numbers)})
        return order

    world = World(a_workflow(a_step("charge", compensation=FENCED), input=numbered))
    world.mail(ORDERS).comes_twice(after=MINUTE)
    order = world.submit({"orderId": "ord-1", "lines": []})
    world.run()
    assert next(numbers) == 2
    assert world.task(order).state is TaskState.COMPLETED
    assert world.post.put_aside == []


def test_two_copies_of_an_order_at_once_are_one_task_and_both_are_taken() -> None:
    world = one_step()
    sent = requests_sent(world)
    world.mail(ORDERS).comes_twice()
    met = meanwhile(world, "create", lambda: world.run(for_=SECOND))
    world.submit({"total": "39.80"})
    world.run(for_=SECOND)
    assert met
    assert sent == ["charge"]
    assert not world.post.put_aside


def test_an_order_whose_write_was_in_conflict_is_not_taken_for_one_that_exists() -> None:
    world = one_step()
    world.faults.on("create", Fault.NOT_DONE, nth=1)  # what a TransactionConflict becomes
    order = world.submit({"total": "39.80"})
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_a_reply_that_comes_twice_does_not_multiply_the_requests_of_the_steps_behind_it() -> None:
    first = a_step("pick")
    world = World(a_workflow(first, *(a_step(f"pack_{n}", first) for n in range(20))))
    sent = requests_sent(world)
    world.mail("requests", '"step":"pick"').comes_twice()  # so its agent answers twice
    world.mail("requests", '"step":"pack').is_late(10 * SECOND, times=20)
    world.mail("replies", '"step":"pick"').arrives().comes_twice()
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert len(sent) == 21


def test_a_redelivered_reply_sends_again_only_what_it_has_claimed_itself() -> None:
    first, beside = a_step("pick"), a_step("weigh")
    world = World(a_workflow(first, beside, a_step("pack", first), a_step("label", beside)))
    sent = requests_sent(world)
    for name in ("pack", "label"):
        world.mail("requests", f'"step":"{name}"').is_late(MINUTE / 3)
    world.mail("replies", '"step":"pick"').comes_twice(after=SECOND)
    world.submit()
    world.run()
    assert sorted(sent) == ["label", "pack", "pack", "pick", "weigh"]


@pytest.mark.parametrize("nth", [1, 2])
def test_a_write_that_fails_its_own_condition_for_having_succeeded_is_known_by_its_claims(
    nth: int,
) -> None:
    first = a_step("charge", compensation=FENCED)
    world = World(a_workflow(first, a_step("ship", first, compensation=FENCED)))
    sent = requests_sent(world)
    world.faults.on("save", Fault.ANSWER_LOST, nth=nth)
    order = world.submit()
    world.run(for_=SECOND)
    assert world.faults.count == {Fault.ANSWER_LOST: 1}
    assert world.task(order).state is TaskState.COMPLETED, "and not a redelivery later"
    assert sent == ["charge", "ship"]


WIDTH = 10


def wide() -> World:
    """Ten steps side by side, each with another one behind it; nothing is overdue for long."""
    five = 5 * MINUTE
    first = [a_step(f"a{n}", compensation=FENCED, complete_within=five) for n in range(WIDTH)]
    behind = [
        a_step(f"b{n}", before, compensation=FENCED, complete_within=five)
        for n, before in enumerate(first)
    ]
    return World(a_workflow(*first, *behind))


def saves(world: World) -> int:
    return world.faults.calls.count("save")


def test_the_replies_of_a_wide_task_that_are_there_together_are_one_write() -> None:
    world = wide()
    order = world.submit()
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert saves(world) == 3, "the start, the first ten, and the ten behind them"
    assert world.task(order).version == 1 + 1 + 2 * WIDTH


@pytest.mark.parametrize("fault", [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.ANSWER_LOST])
def test_ten_replies_whose_scheduler_dies_around_their_write_cost_no_attempt(fault: Fault) -> None:
    world = wide()
    world.faults.on("save", fault, nth=2)
    sent = requests_sent(world)
    order = world.submit()
    world.run()
    task = world.task(order)
    assert world.faults.count == {fault: 1}
    assert task.state is TaskState.COMPLETED
    assert {record.failure_count for record in task.steps.values()} == {0}
    assert set(world.services.ledger.count.values()) == {1}
    assert sorted(sent) == sorted(f"{row}{n}" for row in "ab" for n in range(WIDTH))


@pytest.mark.verify
def test_ten_replies_whose_scheduler_dies_while_it_sends_claim_nothing_twice() -> None:
    for nth in range(1, WIDTH + 1):
        world = wide()
        world.faults.on("send_requests", Fault.CRASH_AFTER, nth=1 + nth)
        order = world.submit()
        world.run()
        task = world.task(order)
        assert task.state is TaskState.COMPLETED
        assert {record.failure_count for record in task.steps.values()} == {0}
        assert set(world.services.ledger.count.values()) == {1}
