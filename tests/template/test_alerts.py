"""Alerts of our stacks: where they go is optional, and a heartbeat shows that they arrive."""

import json

from roundsman_dev.check.reading import (
    at,
    of_type,
)
from roundsman_dev.template import Document, Json
from tests.template.faults import drop, fails_with, put, ref, sub

SOMETHING_ELSE: Json = {"Fn::Not": [{"Fn::Equals": [ref("LogLevel"), ""]}]}
IF_GIVEN = {
    "AlertEmailSubscription": ("HasAlertEmail", "Endpoint"),
    "AlertEndpointSubscription": ("HasAlertEndpoint", "Endpoint"),
    "AlertHeartbeat": ("HasAlertHeartbeat", "ScheduleExpression"),
}


@fails_with(
    drop("Resources/AlertEmailSubscription/Condition"),
    put("Conditions/HasAlertEmail", SOMETHING_ELSE),
    put("AlertEmailSubscription/Protocol", "https"),
    drop("Resources/AlertEndpointSubscription/Condition"),
    put("Conditions/HasAlertEndpoint", SOMETHING_ELSE),
    put("AlertEndpointSubscription/Protocol", "sms"),
    drop("Resources/AlertHeartbeat"),
    drop("Resources/AlertHeartbeat/Condition"),
    put("Conditions/HasAlertHeartbeat", SOMETHING_ELSE),
)
def test_each_place_for_alerts_exists_if_its_parameter_is_given(template: Document) -> None:
    for name, (condition, place) in IF_GIVEN.items():
        resource = at(template, "Resources", name)
        assert at(resource, "Condition") == condition
        wanted = {"Fn::Not": [{"Fn::Equals": [at(resource, "Properties", place), ""]}]}
        assert at(template, "Conditions", condition) == wanted, name
    found = of_type(template, "AWS::SNS::Subscription")
    assert at(found["AlertEmailSubscription"], "Protocol") == "email"
    assert at(found["AlertEndpointSubscription"], "Protocol") in ("https", "sqs", "lambda")


INPUT = "AlertHeartbeat/Target/Input/Fn::Sub"


@fails_with(
    put(
        "AlertHeartbeat/Target/Arn",
        sub("arn:${AWS::Partition}:scheduler:::aws-sdk:sns:deleteTopic"),
    ),
    put(INPUT, '{"Message": "{"}'),
    put(INPUT, json.dumps({"TopicArn": "${AlertTopic}", "Message": '{"default": "{}"}'})),
)
def test_the_heartbeat_publishes_a_message_with_the_form_of_every_alert(
    template: Document,
) -> None:
    target = at(of_type(template, "AWS::Scheduler::Schedule").get("AlertHeartbeat"), "Target")
    assert str(at(target, "Arn", "Fn::Sub")).endswith(":aws-sdk:sns:publish")
    try:
        request = json.loads(str(at(target, "Input", "Fn::Sub")))
        bodies = json.loads(str(at(request, "Message")))
        document = json.loads(str(at(bodies, "default")))
    except ValueError as error:
        raise AssertionError("no JSON") from error
    assert at(request, "TopicArn") == "${AlertTopic}"
    assert at(request, "MessageStructure") == "json"
    assert at(document, "alert") == "heartbeat"
    assert at(request, "MessageAttributes", "kind", "StringValue") == "heartbeat"
    assert at(bodies, "email")
