"""Which messages become dead letters, and when: what says nothing about a message waits its end."""

from collections.abc import Callable, Sequence
from datetime import timedelta

from roundsman.model.states import TaskState
from roundsman_testing import Fault, World
from roundsman_testing.faults import CALLS, MESSAGES, Crash
from roundsman_testing.world.capacity import SimulatedInvocation
from roundsman_testing.world.outbox import WorldOutbox
from roundsman_testing.world.queues import COMMANDS, MOST_RECEIVES, REPLIES, QueuedMessage
from roundsman_testing.world.world import MORNING
from tests.world.shop import FENCED, MINUTE, ONCE, a_step, a_workflow, since_morning, waiting

HOUR = timedelta(hours=1)
A_MOMENT = timedelta(seconds=1)
OF_NO_TABLE = {*MESSAGES, "send_command", "send_status", "publish", "reject"}


def shop(**more: object) -> World:
    first = a_step("charge", compensation=FENCED, **more)
    return World(a_workflow(first, a_step("ship", first, compensation=FENCED, **more)))


def under_way(world: World, orders: int) -> list[str]:
    """Submit orders: half of them wait for a reply, the others for their start."""
    world.mail(REPLIES).is_late(A_MOMENT, times=orders // 2)
    submitted = [world.submit() for _ in range(orders // 2)]
    world.run(until=lambda: len(waiting(world, REPLIES)) == orders // 2)
    submitted += [world.submit() for _ in range(orders // 2)]
    world.run(until=lambda: bool(waiting(world, COMMANDS)))
    return submitted


def dies(world: World, when: Callable[[QueuedMessage], bool]) -> None:
    """Let an invocation for such a message die before the code of its function runs."""
    handle, handle_replies = world.processes.handle, world.processes.handle_replies

    def dying(mail: QueuedMessage, post: WorldOutbox, run: SimulatedInvocation) -> str:
        if when(mail):
            raise Crash("out of memory")
        return handle(mail, post, run)

    def dying_together(batch: Sequence[QueuedMessage], post: WorldOutbox) -> list[str | Exception]:
        if any(map(when, batch)):
            raise Crash("out of memory")
        return handle_replies(batch, post)

    world.processes.handle = dying  # type: ignore[method-assign]
    world.processes.handle_replies = dying_together  # type: ignore[method-assign]


def throttled_for_ten_minutes() -> tuple[World, list[str]]:
    """Forty orders of one attempt a step, and tables that refuse every call for ten minutes."""
    world = shop(retry=ONCE)
    orders = under_way(world, 40)
    for name in {*CALLS} - OF_NO_TABLE:
        world.faults.on(name, Fault.NOT_DONE)
    world.run(for_=10 * MINUTE)
    assert waiting(world, REPLIES)
    world.all_is_well()
    world.run()
    return world, orders


def test_tables_that_are_throttled_for_ten_minutes_fail_no_order_and_make_no_dead_letter() -> None:
    world, orders = throttled_for_ten_minutes()
    assert world.queues.dead == []
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}


def without_scheduler_for_an_hour(**more: object) -> tuple[World, list[str]]:
    """Orders under way, and a scheduler of which each invocation dies for an hour."""
    world = shop(**more)
    orders = under_way(world, 8)
    up_again = world.now + 60 * 60_000
    dies(world, lambda mail: mail.queue in (COMMANDS, REPLIES) and world.now < up_again)
    while world.now < up_again:  # in parts, since each has a limit of events
        world.run(for_=10 * MINUTE)
    assert max(mail.receives for mail in waiting(world, REPLIES)) >= 59
    world.run()
    return world, orders


def test_a_deployment_of_the_scheduler_that_fails_for_an_hour_loses_no_message_and_no_order() -> (
    None
):
    world, orders = without_scheduler_for_an_hour(retry=ONCE)
    assert world.queues.dead == []
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}


def test_a_command_that_kills_its_process_is_a_dead_letter_after_three_hours_and_alone() -> None:
    world = shop(retry=ONCE)
    orders = under_way(world, 20)
    poison = waiting(world, COMMANDS)[0]
    received_at = list[int]()

    def kills(mail: QueuedMessage) -> bool:
        if mail.message_id == poison.message_id:
            received_at.append(world.now)
        return mail.message_id == poison.message_id

    dies(world, kills)
    world.run()
    assert world.queues.dead == [poison]
    assert len(received_at) == MOST_RECEIVES[COMMANDS] == 180
    assert 3 * HOUR <= since_morning(world) < 3 * HOUR + MINUTE
    assert received_at[-1] < MORNING + 3 * 60 * 60_000
    assert {world.task(order).state for order in orders} == {TaskState.COMPLETED}
