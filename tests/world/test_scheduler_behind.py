"""A scheduler that is behind or down delays orders and fails none: a timeout needs evidence."""

from datetime import timedelta

import pytest

from roundsman import Callback, StepRequest
from roundsman.agents.agent import Agent
from roundsman.model.instants import milliseconds
from roundsman.model.states import ProcessState, TaskState
from roundsman.wire.commands import INSPECT, START, read_command
from roundsman_testing import World
from roundsman_testing.world.queues import COMMANDS, REPLIES
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow, requests_sent, waiting

HOUR = timedelta(hours=1)

charge = a_step("charge", compensation=FENCED, retry=ONCE)
ship = a_step("ship", charge, compensation=FENCED, retry=ONCE)
"""One attempt and no more: whatever counts against it undoes the order."""


def states(world: World, orders: list[str]) -> set[TaskState]:
    return {world.task(order).state for order in orders}


def under_way(world: World, orders: int) -> list[str]:
    """Orders whose first reply waits in its queue, and as many whose Start waits."""
    world.mail(REPLIES).is_late(timedelta(seconds=1), times=orders)
    first = [world.submit() for _ in range(orders)]
    world.run(until=lambda: len(waiting(world, REPLIES)) == orders)
    second = [world.submit() for _ in range(orders)]
    world.run(until=lambda: len(waiting(world, COMMANDS)) >= orders)
    return [*first, *second]


def test_replies_that_wait_for_longer_than_their_steps_have_time_fail_no_order() -> None:
    world = World(a_workflow(charge, ship))
    sent = requests_sent(world)
    world.mail(REPLIES).is_late(15 * MINUTE, times=20)
    orders = [world.submit() for _ in range(20)]
    world.run()
    assert states(world, orders) == {TaskState.COMPLETED}
    assert len(sent) == 40, "none was sent again"
    for order in orders:
        task = world.task(order)
        moved = task.complete_by - task.start_at - milliseconds(2 * HOUR)
        assert milliseconds(14 * MINUTE) <= moved <= milliseconds(20 * MINUTE)
        assert task.step("charge").failure_count == 0


@pytest.mark.parametrize("hours", [1, 3])
def test_a_scheduler_that_was_down_finds_few_messages_and_fails_no_order(hours: int) -> None:
    world = World(a_workflow(charge, ship, complete_within=HOUR))
    orders = under_way(world, 10)
    world.down("scheduler", hours * HOUR)
    world.run(for_=hours * HOUR - MINUTE)
    kinds = [read_command(mail.body).kind for mail in waiting(world, COMMANDS)]
    assert kinds.count(START) <= hours * len(orders)
    assert kinds.count(INSPECT) <= len(orders)
    assert len(waiting(world, REPLIES)) <= len(orders)
    world.run()
    assert states(world, orders) == {TaskState.COMPLETED}
    assert sum(world.task(o).step("charge").failure_count for o in orders) == 0


def test_scheduler_and_supervisor_that_were_down_for_three_hours_fail_no_order() -> None:
    world = World(a_workflow(charge, ship, complete_within=HOUR))
    orders = under_way(world, 10)
    world.down("scheduler", 3 * HOUR)
    world.down("supervisor", 3 * HOUR)
    world.run()
    assert states(world, orders) == {TaskState.COMPLETED}


def test_an_agent_that_says_nothing_is_counted_though_the_scheduler_was_down() -> None:
    world = World(a_workflow(charge, ship))
    world.mail(REPLIES).is_lost()
    order = world.submit()
    world.run(for_=timedelta(seconds=1))
    assert world.task(order).step("charge").under_way
    world.down("scheduler", HOUR)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    (failed,) = [row for row in world.history(order) if row.kind == "failed"]
    assert "attempt 1 of 1 overdue" in failed.reason


def test_a_lost_reply_is_counted_at_its_end_where_nothing_waits() -> None:
    world = World(a_workflow(a_step("charge", compensation=FENCED)))
    world.mail(REPLIES).is_lost()
    order = world.submit()
    world.run()
    (requeued,) = [row for row in world.history(order) if row.kind == "requeued"]
    late = requeued.at - world.task(order).created_at - milliseconds(MINUTE)
    assert late < milliseconds(2 * timedelta(seconds=1))


def test_an_order_that_is_undone_while_replies_wait_is_undone_once_they_are_read() -> None:
    world = World(a_workflow(charge, ship))
    world.mail(REPLIES).arrives().is_late(10 * MINUTE, times=10)
    order = world.submit()
    world.run(for_=timedelta(seconds=1))
    assert world.task(order).step("ship").under_way
    world.operator.undo(order)
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []


def test_an_answer_that_was_given_in_time_counts_though_the_scheduler_reads_it_later() -> None:
    asked = a_step("approve", compensation=FENCED, retry=ONCE)
    agent = Agent("approve")

    @agent.performs(asked)
    def ask(request: StepRequest) -> Callback:
        return Callback(within=10 * MINUTE)

    @agent.compensates(asked)
    def withdraw(request: StepRequest) -> None: ...

    world = World(a_workflow(asked), agents=[agent])
    order = world.submit()
    world.run(until=lambda: world.waits_for_answer(order, "approve"))
    world.run(for_=8 * MINUTE)
    world.down("scheduler", HOUR)
    world.answer(order, "approve", {"approved": True})
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("approve").process_state is ProcessState.PROCESSED
