"""Events of SNS, S3 and EventBridge in a world: they run, are repeated, and are rejected."""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict

import pytest

from roundsman import From, Workflow
from roundsman.definition.workflow import Signal, Step
from roundsman.errors import DefinitionError
from roundsman.model.json import Json
from roundsman_testing import (
    Faults,
    TaskState,
    World,
    crash_everywhere,
    eventbridge_event,
    s3_notification,
    s3_test_event,
    sns_notification,
)
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import MINUTE, a_step, a_workflow, deliver, meanwhile

TOPIC = "arn:aws:sns:us-east-1:123456789012:orders"
SOURCES = (TOPIC, "arn:aws:s3:::uploads", "arn:aws:events:us-east-1:123456789012:rule/orders")


BY_TOPIC = a_workflow(a_step("pick"), events=(From(topic="orders", id="number"),))
BY_BUCKET = a_workflow(a_step("pick"), events=(From(bucket="uploads", id="s3.object.key"),))


def taking(*events: From) -> Workflow:
    return replace(
        a_workflow(a_step("pick"), Signal("paid", within=timedelta(hours=1), after=("pick",))),
        events=events,
    )


def test_an_event_of_a_topic_runs_to_its_end_however_often_it_is_delivered() -> None:
    world = World(taking(From(topic="orders", id="number")), sources=SOURCES)
    world.send(sns_notification({"number": 7}, topic="orders", message_id="m-1"))
    world.send(sns_notification({"number": 7}, topic="orders", message_id="m-2"))
    paid = {"orderId": "7", "signal": {"name": "paid"}}
    world.send(eventbridge_event(paid, source="shop", detail_type="Paid", event_id="e-1"))
    world.send(eventbridge_event(paid, source="shop", detail_type="Paid", event_id="e-1"))
    world.run()
    assert world.task("7").state is TaskState.COMPLETED
    assert world.post.put_aside == []


def test_each_record_of_a_bucket_is_an_order_and_a_test_event_is_none() -> None:
    world = World(BY_BUCKET, sources=SOURCES)
    world.send(s3_test_event("uploads"))
    world.send(s3_notification("one", "two", bucket="uploads"))
    world.run()
    assert [world.task(one).state for one in world.orders()] == [TaskState.COMPLETED] * 2
    assert world.orders() == ["one", "two"]
    assert world.post.put_aside == []


def test_an_event_of_a_source_that_is_not_listed_is_a_rejected_message() -> None:
    world = World(taking(From(topic="*", id="number")), sources=SOURCES)
    world.send(sns_notification({"number": 7}, topic="other"))
    world.run()
    [found] = world.post.put_aside
    assert "TopicArn: is a topic of SNS that SubmitterSources does not list" in str(found)


def test_the_same_id_with_another_event_is_rejected_and_the_first_goes_on() -> None:
    world = World(BY_TOPIC, sources=SOURCES)
    world.send(sns_notification({"number": 7}, topic="orders"))
    world.send(sns_notification({"number": 7, "more": 1}, topic="orders"))
    world.run()
    assert world.task("7").state is TaskState.COMPLETED
    [found] = world.post.put_aside
    assert "orderId: already used" in str(found)


def test_a_cancellation_by_an_envelope_cancels() -> None:
    world = World(taking(From(topic="orders", id="number")), sources=SOURCES)
    world.send(sns_notification({"number": 7}, topic="orders"))
    world.run(for_=timedelta(minutes=1))
    world.send(sns_notification({"orderId": "7", "cancel": {}}, topic="orders"))
    world.run()
    assert world.task("7").state is TaskState.CANCELLED


PAID = From(topic="paid", id="order", input="{amount: amount}", signal="paid")
ADDED = From(topic="added", id="order", signal="added")
BEGINS = replace(
    a_workflow(
        Signal("added", within=timedelta(hours=1)),
        Signal("paid", within=timedelta(hours=1), after=("added",)),
        Step(name="pick", agent="pick", complete_within=MINUTE, after=("paid",)),
    ),
    events=(ADDED, PAID),
)
LISTED = ("arn:aws:sns:us-east-1:123456789012:*",)


def tells(world: World, topic: str, times: int = 1, **more: Json) -> None:
    for _ in range(times):
        world.send(sns_notification({"order": 7, **more}, topic=topic))


def begins_or_finds(world: World) -> None:
    tells(world, "added", 2, what="first")
    world.run(for_=MINUTE)
    tells(world, "paid", 2, amount=40)
    world.run()
    assert world.orders() == ["7"]
    task = world.task("7")
    assert task.state is TaskState.COMPLETED
    assert (task.results()["added"], task.results()["paid"]) == (
        {"order": 7, "what": "first"},
        {"amount": 40},
    )
    assert world.post.put_aside == []


def test_an_event_begins_its_order_and_is_its_signal_and_the_next_one_finds_it() -> None:
    begins_or_finds(World(BEGINS, sources=LISTED))


@at_every_call
def test_it_does_so_whatever_call_fails(kinds: Kinds) -> None:
    def make(faults: Faults) -> World:
        return World(BEGINS, faults=faults, sources=LISTED)

    assert crash_everywhere(begins_or_finds, make, faults=kinds).runs


def test_whichever_event_comes_first_begins_the_order() -> None:
    world = World(BEGINS, sources=LISTED)
    tells(world, "paid", amount=40)
    tells(world, "added", what="then")
    world.run()
    assert world.task("7").state is TaskState.COMPLETED
    assert world.post.put_aside == []


def test_two_events_that_meet_make_one_order_with_both_signals() -> None:
    world = World(BEGINS, sources=LISTED)
    tells(world, "paid", amount=40)
    met = meanwhile(world, "create", lambda: deliver(world, world.queues.visible()[0]))
    tells(world, "added", what="meanwhile")
    world.run()
    assert met
    assert world.orders() == ["7"]
    assert world.task("7").state is TaskState.COMPLETED
    assert world.post.put_aside == []


def test_an_event_for_an_order_that_has_ended_is_rejected_with_the_reason() -> None:
    world = World(BEGINS, sources=LISTED)
    begins_or_finds(world)
    tells(world, "paid", 1, amount=40)
    world.run()
    assert world.post.put_aside == [], "the same event is nothing also after the end"
    tells(world, "paid", 1, amount=41)
    world.run()
    [found] = world.post.put_aside
    assert "paid is refused: the task is completed" in str(found)


def test_an_event_for_an_order_whose_task_was_removed_is_rejected_unless_it_has_begun_it() -> None:
    world = World(replace(BEGINS, retain_for=timedelta()), sources=LISTED)
    begins_or_finds(world)
    tells(world, "added", 1, what="first")
    world.run()
    assert world.post.put_aside == []
    tells(world, "added", 1, what="second")
    world.run()
    [found] = world.post.put_aside
    assert "its order has ended, and its task was removed" in str(found)


def test_an_event_that_is_no_valid_order_is_a_signal_to_one_that_is_there() -> None:
    class Placed(TypedDict):
        order: int
        what: str

    workflow = replace(BEGINS, input=Placed)
    world = World(workflow, sources=LISTED)
    tells(world, "paid", amount=40)
    world.run()
    [found] = world.post.put_aside
    assert "Message.order" in str(found) or "order" in str(found)
    assert world.orders() == []
    tells(world, "added", what="first")
    world.run(for_=MINUTE)
    tells(world, "paid", amount=40)
    world.run()
    assert world.task("7").state is TaskState.COMPLETED


def test_data_that_no_signal_may_have_is_rejected_by_its_size() -> None:
    world = World(BEGINS, sources=LISTED)
    tells(world, "added", what="x" * 5_000)
    world.run()
    [found] = world.post.put_aside
    assert "bytes as a signal; at most 4096 are allowed" in str(found)


def test_a_signal_that_no_step_waits_for_and_an_event_without_an_id_are_refused() -> None:
    with pytest.raises(DefinitionError, match="no step waits for the signal 'shipped' of From"):
        replace(BEGINS, events=(From(topic="x", id="order", signal="shipped"),))
    with pytest.raises(DefinitionError, match="must have id, an expression"):
        From(topic="x", signal="paid")
    with pytest.raises(DefinitionError, match="signal: the name must be"):
        From(topic="x", id="order", signal="Paid!")


@pytest.mark.verify
def test_a_crash_at_any_call_loses_no_record_and_makes_no_order_twice() -> None:
    def make(faults: Faults) -> World:
        return World(BY_BUCKET, faults=faults, sources=SOURCES)

    def story(world: World) -> None:
        world.send(s3_notification("one", "two", bucket="uploads"))
        world.run()
        assert [world.task(one).state for one in ("one", "two")] == [TaskState.COMPLETED] * 2

    crash_everywhere(story, make)
