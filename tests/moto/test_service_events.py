"""Topics, buckets and rules of moto send to a deployed stack, each in the shape of its service."""

import json
from collections.abc import Iterator

import boto3
import pytest

from roundsman_testing import eventbridge_event, sns_notification
from roundsman_testing.stack import Clock, Services, Stack
from tests.moto.orders import ALL_EFFECTS, order
from tests.project import deployed_project

ACCOUNT, REGION = "123456789012", "us-east-1"
TOPIC = f"arn:aws:sns:{REGION}:{ACCOUNT}:orders"
RULE = f"arn:aws:events:{REGION}:{ACCOUNT}:rule/orders"
SOURCES = f"{TOPIC},arn:aws:s3:::uploads,{RULE}"


@pytest.fixture
def listing(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """A deployment that lists a topic, a bucket and a rule."""
    settings = {"Engine.SubmitterSources": SOURCES}
    with deployed_project(roundsman_services, roundsman_clock, settings) as made:
        yield made


def queue_arn(stack: Stack) -> str:
    return stack.source("SubmissionQueue").queue_arn


def subscribe(stack: Stack, *, raw: bool, topic: str = "orders") -> str:
    """Subscribe the queue of order events to a new topic; returns its ARN."""
    sns = boto3.client("sns")
    arn = sns.create_topic(Name=topic)["TopicArn"]
    sns.subscribe(
        TopicArn=arn,
        Protocol="sqs",
        Endpoint=queue_arn(stack),
        Attributes={"RawMessageDelivery": "true" if raw else "false"},
    )
    return arn


@pytest.mark.parametrize("raw", [True, False])
def test_an_order_that_is_published_to_a_topic_completes(listing: Stack, raw: bool) -> None:
    arn = subscribe(listing, raw=raw)
    assert arn == TOPIC
    for _ in range(2):
        boto3.client("sns").publish(TopicArn=arn, Message=json.dumps(order("ord-1")))
    listing.run()
    assert listing.effects("ord-1") == ALL_EFFECTS
    assert listing.rejected() == []
    listing.assert_nothing_is_stuck()


@pytest.mark.exhaustive
def test_an_order_that_a_rule_without_a_role_sends_completes(listing: Stack) -> None:
    events = boto3.client("events")
    pattern = json.dumps({"source": ["shop"]})
    assert events.put_rule(Name="orders", EventPattern=pattern)["RuleArn"] == RULE
    events.put_targets(Rule="orders", Targets=[{"Id": "queue", "Arn": queue_arn(listing)}])
    detail = json.dumps(order("ord-1"))
    events.put_events(Entries=[{"Source": "shop", "DetailType": "OrderPlaced", "Detail": detail}])
    listing.run()
    assert listing.effects("ord-1") == ALL_EFFECTS


def test_a_bucket_sends_a_test_event_which_is_dropped_and_then_its_objects(
    listing: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    """No workflow of the example takes the objects: each is rejected with what to write."""
    s3 = boto3.client("s3", region_name=REGION)
    s3.create_bucket(Bucket="uploads")
    s3.put_bucket_notification_configuration(
        Bucket="uploads",
        NotificationConfiguration={
            "QueueConfigurations": [
                {"QueueArn": queue_arn(listing), "Events": ["s3:ObjectCreated:*"]}
            ]
        },
    )
    assert listing.waiting("SubmissionQueue") == 1
    listing.run()
    assert listing.rejected() == []
    assert '"message":"test event of S3 dropped"' in capsys.readouterr().out
    s3.put_object(Bucket="uploads", Key="one.csv", Body=b"x")
    listing.run()
    [found] = listing.rejected()
    assert found.text("reason").startswith("Records[0]: has no orderId, and no workflow takes")
    listing.assert_nothing_is_stuck()


def test_an_event_of_a_source_that_is_not_listed_is_rejected(listing: Stack) -> None:
    arn = subscribe(listing, raw=False, topic="other")
    boto3.client("sns").publish(TopicArn=arn, Message=json.dumps(order("ord-1")))
    listing.run()
    [found] = listing.rejected()
    assert found.paths() == ["TopicArn"]
    assert not listing.has_order("ord-1")


def test_without_a_list_every_envelope_is_rejected(world: Stack) -> None:
    body = json.dumps(order("ord-1"))
    world.submit(sns_notification(body, topic="orders"))
    world.submit(eventbridge_event(order("ord-1"), source="shop", detail_type="x"))
    world.run()
    assert sorted(one.paths() for one in world.rejected()) == [["TopicArn"], ["detail-type"]]
    assert not world.has_order("ord-1")


def test_the_policy_of_the_queue_is_read_once_and_not_for_an_order(listing: Stack) -> None:
    listing.submit(order("ord-0"))
    listing.run()
    assert not [one for one in listing.aws.calls if one.operation == "GetQueueAttributes"]
    for number in range(3):
        listing.submit(sns_notification(order(f"ord-{number}"), topic="orders"))
    listing.run()
    asked = [one for one in listing.aws.calls if one.operation == "GetQueueAttributes"]
    assert len(asked) == 1
