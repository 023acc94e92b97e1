"""Events of SNS, S3 and EventBridge in a world: they run, are repeated, and are rejected."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman import From, Workflow
from roundsman.definition.workflow import Signal
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
from tests.world.shop import a_step, a_workflow

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


@pytest.mark.exhaustive
def test_a_crash_at_any_call_loses_no_record_and_makes_no_order_twice() -> None:
    def make(faults: Faults) -> World:
        return World(BY_BUCKET, faults=faults, sources=SOURCES)

    def story(world: World) -> None:
        world.send(s3_notification("one", "two", bucket="uploads"))
        world.run()
        assert [world.task(one).state for one in ("one", "two")] == [TaskState.COMPLETED] * 2

    crash_everywhere(story, make)
