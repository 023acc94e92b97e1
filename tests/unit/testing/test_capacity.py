"""A world whose functions have a capacity, or are down."""

from datetime import timedelta

import pytest

from roundsman import Step, Workflow
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.wire.commands import START, read_command
from roundsman_testing import Capacity, Mishaps, World
from roundsman_testing.world.queues import COMMANDS, REPLIES
from roundsman_testing.world.world import MORNING

A_SECOND = timedelta(seconds=1)
AGENTS = {"stock": "reserve", "payment": "charge"}


def world_of(**capacity: Capacity) -> World:
    steps = tuple(
        Step(name=step, agent=agent, complete_within=timedelta(minutes=10))
        for agent, step in AGENTS.items()
    )
    workflow = Workflow(name="order", steps=steps, complete_within=timedelta(hours=8))
    return World(workflow, capacity=capacity)


def test_an_instance_reads_one_batch_after_the_other_and_each_takes_its_time() -> None:
    world = world_of(scheduler=Capacity(takes=A_SECOND))
    for _ in range(5):
        world.submit()
    world.run()
    world.check_all_ended()
    assert world.functions.invocations["scheduler"] == 5 * (1 + 2)
    assert world.now == MORNING + 15 * SECOND, "and nothing else takes time"


@pytest.mark.exhaustive
def test_more_instances_and_batches_take_less_time() -> None:
    def lasts(capacity: Capacity) -> int:
        world = world_of(scheduler=capacity)
        for _ in range(40):
            world.submit()
        world.run(until=lambda: not open_of(world))
        return world.now - MORNING

    def open_of(world: World) -> bool:
        return len(world.processes.watch.tasks) < 40 or bool(world.processes.watch.due)

    one = lasts(Capacity(takes=A_SECOND))
    assert lasts(Capacity(instances=4, takes=A_SECOND)) < one / 3
    assert lasts(Capacity(takes=A_SECOND, batch=10)) < one / 3


def test_a_batch_has_messages_of_one_queue_in_the_order_of_their_arrival() -> None:
    world = world_of(scheduler=Capacity(takes=A_SECOND, batch=3))
    sent = [world.submit() for _ in range(5)]
    world.run(until=lambda: world.functions.read["scheduler"] == 3)
    commands = [mail for mail in world.queues.waiting if mail.queue == COMMANDS]
    read = [read_command(mail.body).task_id for mail in commands if mail.receives]
    assert read == sent[:3]
    assert world.queues.depth(COMMANDS) == QueueDepth(2, 3)


def test_a_batch_has_no_message_that_is_delayed_and_none_comes_early() -> None:
    world = world_of(scheduler=Capacity(takes=A_SECOND, batch=10))
    world.submit()
    world.post.send_inspect("ord-1", delay=MINUTE)
    world.run(until=lambda: world.functions.invocations["scheduler"] == 1)
    assert world.functions.read["scheduler"] == 1
    world.run(until=lambda: world.queues.depth(COMMANDS) == QueueDepth(0, 1))
    world.run(for_=timedelta(seconds=50))
    assert [mail.queue for mail in world.queues.waiting] == [COMMANDS]


def test_a_batch_has_no_message_of_another_queue() -> None:
    world = world_of(scheduler=Capacity(takes=A_SECOND, batch=10))
    world.submit()
    world.run(until=lambda: world.functions.invocations["scheduler"] == 2)
    (read,) = (mail for mail in world.queues.waiting if mail.receives)
    assert read.to == "stock"


def test_messages_that_a_busy_instance_has_read_are_in_flight() -> None:
    world = world_of(scheduler=Capacity(takes=A_SECOND))
    world.submit()
    world.submit()
    world.run(for_=A_SECOND / 2)
    assert world.queues.depth(COMMANDS) == QueueDepth(1, 1)
    world.run(for_=A_SECOND)
    assert world.queues.depth(COMMANDS) == QueueDepth(0, 1)
    assert world.queues.depth(REPLIES, "stock") == QueueDepth(1, 0)
    assert world.queues.depth(REPLIES, "payment") == QueueDepth(1, 0)


def test_a_delayed_message_is_neither_visible_nor_in_flight() -> None:
    world = world_of()
    world.queues.send(COMMANDS, "{}", delay=MINUTE)
    assert world.queues.depth(COMMANDS) == QueueDepth(0, 0)


def test_a_reply_is_sent_when_its_call_ends_and_a_delayed_command_when_it_is_put_aside() -> None:
    world = world_of()
    world.on("charge").takes(timedelta(seconds=20))
    world.submit()
    world.down("scheduler", for_=timedelta(minutes=1))
    world.run(until=lambda: world.queues.depth(COMMANDS).visible > 0)
    world.run(until=lambda: world.functions.invocations["payment"] == 1)
    (reply,) = (mail for mail in world.queues.waiting if mail.to == "payment")
    assert reply.queue == REPLIES
    assert reply.sent_at == world.now + 20 * SECOND == reply.visible_at
    world.post.send_inspect("ord-1", delay=2 * MINUTE)
    assert world.queues.waiting[-1].sent_at == world.now


def test_messages_wait_for_a_function_that_is_down_and_then_come_in_order() -> None:
    world = world_of()
    world.down("scheduler", for_=timedelta(minutes=5))
    sent = [world.submit() for _ in range(3)]
    world.run(for_=timedelta(minutes=5) - A_SECOND)
    assert world.functions.invocations["scheduler"] == 0
    starts = [mail.body for mail in world.queues.visible() if mail.queue == COMMANDS]
    assert [read_command(body).task_id for body in starts[:3]] == sent
    assert read_command(starts[0]).kind == START
    world.run()
    world.check_all_ended()
    assert world.functions.invocations["scheduler"] == 3 * 2, (
        "the replies of an order come together"
    )


def test_a_function_that_is_down_twice_is_down_until_the_later_end() -> None:
    world = world_of()
    world.down("scheduler", for_=timedelta(minutes=5))
    world.down("scheduler", for_=timedelta(minutes=1))
    world.submit()
    world.run(for_=timedelta(minutes=4))
    assert world.functions.invocations["scheduler"] == 0


def test_no_message_overtakes_into_a_function_that_is_down() -> None:
    steps = Step(name="reserve", agent="stock", complete_within=timedelta(minutes=1))
    workflow = Workflow(name="order", steps=(steps,), complete_within=timedelta(hours=8))
    world = World(workflow, mishaps=Mishaps(overtakes=1))
    world.down("scheduler", for_=timedelta(minutes=4))
    for _ in range(5):
        world.submit()
        world.run(for_=timedelta(seconds=30))
    assert world.functions.invocations["scheduler"] == 0


def test_a_supervisor_that_is_down_makes_no_pass() -> None:
    world = world_of()
    world.queues.fate(COMMANDS).is_lost()
    order = world.submit()
    world.down("supervisor", for_=timedelta(hours=1))
    world.run(for_=timedelta(minutes=59))
    assert not world.task(order).ended
    world.run()
    assert world.task(order).ended
    assert world.now >= MORNING + 60 * MINUTE


def test_an_agent_that_is_down_reads_no_request() -> None:
    world = world_of()
    world.down("stock", for_=timedelta(minutes=2))
    world.submit()
    world.run(for_=timedelta(minutes=1))
    assert world.functions.invocations["stock"] == 0
    assert world.functions.invocations["payment"] == 1


def test_invariants_may_be_checked_less_often_and_are_checked_at_the_end_of_a_run() -> None:
    world = world_of()
    world.check_every = 1_000
    looked = list[int]()
    look = world.processes.watch.look
    world.processes.watch.look = lambda *given: (looked.append(world.now), look(*given))[1]  # type: ignore[method-assign, func-returns-value]
    world.submit()
    world.run()
    assert looked == [world.now]


def test_a_capacity_or_a_function_that_makes_no_sense_is_refused_with_a_sentence() -> None:
    with pytest.raises(
        ValueError, match="instances, batch and urgent must be 1 or more, not 0, 1, 1"
    ):
        Capacity(instances=0)
    with pytest.raises(ValueError, match="less than the 60 s for which a message that was read"):
        Capacity(takes=timedelta(minutes=1))
    with pytest.raises(
        ValueError, match="no function 'stok'; there are submission, scheduler, sup"
    ):
        world_of(stok=Capacity())
    with pytest.raises(ValueError, match="no function 'stok'; there are submission"):
        world_of().down("stok", for_=A_SECOND)


def world_in_account(account: int, **capacity: Capacity) -> World:
    every = dict.fromkeys(("submission", "scheduler", "supervisor", *AGENTS), Capacity())
    workflow = Workflow(
        name="order",
        steps=tuple(
            Step(name=step, agent=agent, complete_within=timedelta(minutes=10))
            for agent, step in AGENTS.items()
        ),
        complete_within=timedelta(hours=8),
    )
    return World(workflow, capacity={**every, **capacity}, account=account)


def test_an_invocation_beyond_the_quota_of_the_account_is_refused_and_its_message_comes_again() -> (
    None
):
    world = world_in_account(1, submission=Capacity(instances=2))
    world.submit()
    world.submit()
    world.run(until=lambda: world.functions.throttled["submission"] == 1)
    [refused] = [mail for mail in world.queues.waiting if mail.receives and mail.visible_at > 0][1:]
    assert refused.visible_at == MORNING + MINUTE, "its visibility timeout"
    world.run()
    world.check_all_ended()


def test_a_pass_that_is_refused_comes_again_after_a_second() -> None:
    world = world_in_account(1)
    world.on("reserve").takes(timedelta(minutes=3))
    world.submit()
    world.run()
    world.check_all_ended()
    assert world.functions.throttled["supervisor"] > 0


def test_an_account_needs_an_instance_and_a_capacity_of_each_function() -> None:
    with pytest.raises(ValueError, match="account must be 1 or more, not 0"):
        world_in_account(0)
    steps = (Step(name="reserve", agent="stock", complete_within=A_SECOND),)
    workflow = Workflow(name="order", steps=steps, complete_within=A_SECOND)
    with pytest.raises(ValueError, match="these have none: scheduler, submission, supervisor"):
        World(workflow, capacity={"stock": Capacity()}, account=10)
