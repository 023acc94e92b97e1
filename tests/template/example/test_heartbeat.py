"""The heartbeat of the alerts: what the schedule publishes is an alert that SNS accepts."""

import json
import re

import boto3
import pytest
from moto import mock_aws
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman.wire.alert import SUBJECT_LIMIT
from roundsman_dev.check.reading import (
    at,
    of_type,
)
from roundsman_dev.template import Document, Json, mapping_of
from tests.console.schemas import assert_schema
from tests.project import TEMPLATE, translate

LONGEST_NAME = "s" * 32


def published(topic: str, **given: str) -> dict[str, Json]:
    """The request of SNS that EventBridge Scheduler makes, with its placeholders replaced."""
    whole = translate({f"Engine.{name}": value for name, value in given.items()})
    schedule = of_type(whole, "AWS::Scheduler::Schedule")["AlertHeartbeat"]
    text = str(at(schedule, "Target", "Input", "Fn::Sub"))
    values = {"AlertTopic": topic, "AWS::StackName": LONGEST_NAME}
    text = re.sub(r"\$\{([\w:]+)\}", lambda found: values[found[1]], text)
    return mapping_of(json.loads(text.replace("<aws.scheduler.scheduled-time>", "2026-11-23")))


def test_what_is_published_is_an_alert_for_people_and_programs() -> None:
    with mock_aws():
        sns, sqs = boto3.client("sns"), boto3.client("sqs")
        topic = sns.create_topic(Name="alerts")["TopicArn"]
        queue = sqs.create_queue(QueueName="pager")["QueueUrl"]
        arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]
        sns.subscribe(
            TopicArn=topic,
            Protocol="sqs",
            Endpoint=arn["QueueArn"],
            Attributes={"FilterPolicy": '{"kind": ["heartbeat"]}'},
        )
        request = published(topic, AlertHeartbeatSchedule="rate(1 day)")
        sns.publish(**request)  # type: ignore[arg-type]  # as it was read
        [message] = sqs.receive_message(QueueUrl=queue)["Messages"]
    alert = json.loads(json.loads(message["Body"])["Message"])
    assert_schema("alert-message", alert)
    assert (alert["alert"], alert["severity"]) == ("heartbeat", "info")
    assert (alert["stack"], alert["schedule"]) == (LONGEST_NAME, "rate(1 day)")
    assert alert["do"] == {"look": ["roundsman doctor"]}
    email = json.loads(str(request["Message"]))["email"]
    assert "If it does not arrive" in email
    assert "roundsman doctor" in email
    assert len(str(request["Subject"])) <= SUBJECT_LIMIT


@pytest.fixture(scope="module")
def engine() -> Document:
    text = (TEMPLATE.parent / "stacks" / "engine.yaml").read_text(encoding="utf-8")
    return mapping_of(yaml_parse(text))


@pytest.mark.parametrize(
    ("parameter", "value", "allowed"),
    [
        ("AlertHeartbeatSchedule", "", True),
        ("AlertHeartbeatSchedule", "rate(7 days)", True),
        ("AlertHeartbeatSchedule", "every Monday", False),
        ("AlertHeartbeatSchedule", 'cron(0 9 ? * "MON" *)', False),  # it stands in JSON
        ("AlertEndpoint", "", True),
        ("AlertEndpoint", "https://pager.example.com/roundsman", True),
        ("AlertEndpoint", "arn:aws:sqs:eu-west-1:123456789012:pager", True),
        ("AlertEndpoint", "arn:aws-us-gov:lambda:us-gov-west-1:123456789012:function:f", True),
        ("AlertEndpoint", "http://pager.example.com", False),
        ("AlertEndpoint", "arn:aws:s3:::bucket", False),
    ],
)
def test_a_parameter_accepts_what_aws_does(
    engine: Document, parameter: str, value: str, *, allowed: bool
) -> None:
    pattern = str(at(engine, "Parameters", parameter, "AllowedPattern"))
    assert (re.fullmatch(pattern, value) is not None) is allowed


def test_an_endpoint_is_subscribed_with_its_protocol() -> None:
    given = {
        "AlertEndpoint": "arn:aws:sqs:eu-west-1:123456789012:p",
        "AlertEndpointProtocol": "sqs",
    }
    whole = translate({f"Engine.{name}": value for name, value in given.items()})
    found = of_type(whole, "AWS::SNS::Subscription")["AlertEndpointSubscription"]
    assert (found["Endpoint"], found["Protocol"]) == tuple(given.values())
