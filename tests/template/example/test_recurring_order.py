"""A recurring order is an option: a schedule sends an event, and each run is another order."""

import json
import re

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman.errors import RejectedOrder
from roundsman.submission.events import EventReader
from roundsman.submission.submission import ValidOrder
from roundsman_console.check.reading import (
    of_type,
    reference,
)
from roundsman_console.template import Document, mapping_of
from tests.project import TEMPLATE, translate
from tests.support.template_reading import allowed_to, statements
from workflows.registry import WORKFLOWS

PLACEHOLDER = "<aws.scheduler.scheduled-time>"
ORDER = {
    "orderId": "weekly-paper",
    "customerId": "c-42",
    "currency": "EUR",
    "lines": [{"sku": "PP-500", "quantity": 1, "unitPrice": "4.90"}],
    "paymentToken": "tok_visa",
    "shippingAddress": {
        "name": "A. Reader",
        "street": "1 Main St",
        "city": "Ghent",
        "postalCode": "9000",
        "country": "BE",
    },
    "processing": {"run": PLACEHOLDER},
}


@pytest.fixture(scope="module")
def engine() -> Document:
    """The engine's own template, whose parameters these are."""
    return mapping_of(yaml_parse((TEMPLATE.parent / "stacks" / "engine.yaml").read_text()))


def allows(engine: Document, parameter: str, value: str) -> bool:
    found = mapping_of(mapping_of(engine["Parameters"])[parameter])
    most = found["MaxLength"]
    assert isinstance(most, int)
    return len(value) <= most and bool(re.fullmatch(str(found["AllowedPattern"]), value))


def submitted(body: str) -> ValidOrder:
    event = EventReader(WORKFLOWS).read(body, 1_800_000_000_000, lambda _: None)
    assert isinstance(event, ValidOrder)
    return event


@pytest.mark.parametrize(
    ("schedule", "allowed"),
    [
        ("", True),
        ("rate(1 day)", True),
        ("cron(0 9 ? * MON *)", True),
        ("at(2026-12-01T09:00:00)", False),
        ("every day", False),
        ("rate()", False),
        ("rate(1 day) ", False),
    ],
)
def test_when_it_is_sent_is_a_rate_or_a_cron_expression_or_never(
    engine: Document, schedule: str, allowed: bool
) -> None:
    assert allows(engine, "RecurringOrderSchedule", schedule) is allowed


@pytest.mark.parametrize(
    ("event", "allowed"),
    [
        ("{}", True),
        ("", False),
        (json.dumps(ORDER), True),
        (json.dumps(ORDER, indent=2), True),
        (json.dumps({**ORDER, "processing": {}}), False),
        (json.dumps({**ORDER, "processing": {"run": "2026-12-01T09:00:00Z"}}), False),
        (json.dumps({**ORDER, "orderId": "a" * 4096}), False),
        (PLACEHOLDER, False),
    ],
)
def test_an_event_without_the_time_of_its_run_would_be_one_order_for_ever_and_is_refused(
    engine: Document, event: str, allowed: bool
) -> None:
    assert allows(engine, "RecurringOrder", event) is allowed


def test_each_run_is_an_order_of_its_own_and_a_run_that_is_sent_twice_is_one() -> None:
    first, again, following = (
        submitted(json.dumps(ORDER).replace(PLACEHOLDER, time))
        for time in ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z", "2026-12-08T09:00:00Z")
    )
    assert first.order_id == "weekly-paper-20261201T090000Z"
    assert following.order_id == "weekly-paper-20261208T090000Z"
    assert (again.order_id, again.content_hash) == (first.order_id, first.content_hash)


def test_a_run_without_its_time_is_no_order() -> None:
    with pytest.raises(RejectedOrder, match=r"processing\.run: must be an instant"):
        submitted(json.dumps(ORDER))


def test_the_schedule_sends_the_event_to_the_submission_queue(engine: Document) -> None:
    schedule = of_type(engine, "AWS::Scheduler::Schedule")["RecurringOrderEvents"]
    assert schedule["ScheduleExpression"] == {"Ref": "RecurringOrderSchedule"}
    target = mapping_of(schedule["Target"])
    assert reference(target["Arn"]) == "SubmissionQueue"
    assert reference(target["RoleArn"]) == "RecurringOrderRole"
    assert target["Input"] == {"Ref": "RecurringOrder"}
    assert schedule["ScheduleExpressionTimezone"] == {"Ref": "RecurringOrderTimeZone"}


@pytest.mark.parametrize(
    ("zone", "allowed"),
    [
        ("UTC", True),
        ("Europe/Brussels", True),
        ("America/Argentina/Buenos_Aires", True),
        ("Etc/GMT+1", True),
        ("", False),
        ("+01:00", False),
        ("Europe/", False),
        ("Europe Brussels", False),
    ],
)
def test_the_time_zone_is_a_name_of_one(engine: Document, zone: str, allowed: bool) -> None:
    assert allows(engine, "RecurringOrderTimeZone", zone) is allowed


def test_its_role_may_send_to_the_submission_queue_and_its_dead_letters_and_nothing_else(
    engine: Document,
) -> None:
    statement, under_a_key = allowed_to(engine, "RecurringOrderRole")
    assert under_a_key["Sid"] == "SendsUnderTheKeyOfItsOwner"  # the rule `key_rights` is for it
    assert (statement["Effect"], statement["Action"]) == ("Allow", "sqs:SendMessage")
    resources = statement["Resource"]
    assert isinstance(resources, list)
    queues = ["SubmissionQueue", "SubmissionDeadLetterQueue"]
    assert [reference(resource) for resource in resources] == queues
    role = of_type(engine, "AWS::IAM::Role")["RecurringOrderRole"]
    (trust,) = statements(role["AssumeRolePolicyDocument"])
    assert trust["Principal"] == {"Service": "scheduler.amazonaws.com"}
    assert trust["Condition"] == {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}


def test_the_blocks_values_are_those_of_the_schedule_in_the_whole_stack() -> None:
    given = {"RecurringOrderSchedule": "rate(1 day)", "RecurringOrder": json.dumps(ORDER)}
    whole = translate({f"Engine.{name}": value for name, value in given.items()})
    schedule = of_type(whole, "AWS::Scheduler::Schedule")["RecurringOrderEvents"]
    assert schedule["ScheduleExpression"] == given["RecurringOrderSchedule"]
    assert mapping_of(schedule["Target"])["Input"] == given["RecurringOrder"]
    assert mapping_of(whole["Conditions"])["HasRecurringOrder"] == {
        "Fn::Not": [{"Fn::Equals": ["rate(1 day)", ""]}]
    }
