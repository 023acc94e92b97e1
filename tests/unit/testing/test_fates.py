"""Messages that a test wants late, twice, or never."""

from datetime import timedelta

import pytest

from roundsman import Retry, Step, Workflow
from roundsman.model.states import TaskState
from roundsman_testing import World
from roundsman_testing.world.queues import REPLIES, REQUESTS

pack = Step(
    name="pack",
    agent="packer",
    complete_within=timedelta(seconds=30),
    retry=Retry(max_attempts=3),
)
WORKFLOW = Workflow(name="parcel", steps=(pack,), complete_within=timedelta(hours=1))


def test_a_request_that_is_lost_is_sent_again_when_its_complete_by_has_passed() -> None:
    world = World(WORKFLOW)
    world.submit()
    world.run()
    world.mail(REQUESTS).is_lost(times=2)
    order_id = world.submit()
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    count = world.task(order_id).step("pack").failure_count
    assert count == 0, "what was never read has not failed"


def test_a_reply_that_is_late_is_taken_all_the_same() -> None:
    world = World(WORKFLOW)
    world.mail(REPLIES, '"succeeded"').is_late(timedelta(seconds=40))
    order_id = world.submit()
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.services.ledger.count == {f"{order_id}/pack/perform": 1}


def test_a_message_that_comes_twice_has_one_id_and_one_effect() -> None:
    world = World(WORKFLOW)
    world.mail(REQUESTS).comes_twice(after=timedelta(seconds=5))
    order_id = world.submit()
    world.run(until=lambda: any(mail.queue == REQUESTS for mail in world.queues.waiting))
    first, second = (mail for mail in world.queues.waiting if mail.queue == REQUESTS)
    assert first.message_id == second.message_id
    assert second.visible_at - first.visible_at == 5_000
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED
    assert world.services.ledger.count == {f"{order_id}/pack/perform": 1}


def test_a_rule_is_about_the_messages_that_it_names_and_in_their_order() -> None:
    world = World(WORKFLOW)
    world.mail(REQUESTS, "ord-2").arrives().is_lost()
    world.mail(REQUESTS, "ord-9").is_lost(times=100)
    one, two = world.submit(), world.submit()
    world.run()
    assert world.task(one).step("pack").failure_count == 0
    assert world.task(two).step("pack").failure_count == 0, "its first request arrives"


def test_a_queue_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="queue must be one of orders, commands"):
        World(WORKFLOW).mail("payments")
