"""A block of stacks/schedule.yaml sends an event again and again, and each run is another order."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from roundsman.errors import RejectedOrder
from roundsman.submission.events import EventReader
from roundsman.submission.submission import ValidOrder
from roundsman_dev.check.reading import at, chosen, of_type, reference
from roundsman_dev.check.schedules import schedule_problems
from roundsman_dev.template import Document, Json, Template, mapping_of
from tests.project import SERVICE_URLS, TEMPLATE
from tests.support.template_reading import allowed_to, statements
from tests.template.conftest import nested_template
from workflows.registry import WORKFLOWS

PLACEHOLDER = "<aws.scheduler.scheduled-time>"
ORDER: Mapping[str, Json] = {
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
def recurring() -> Document:
    """The template of a recurring order, whose parameters these are."""
    return nested_template("schedule.yaml")


def allows(recurring: Document, parameter: str, value: str) -> bool:
    found = mapping_of(mapping_of(recurring["Parameters"])[parameter])
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
        ("", False),
        ("rate(1 day)", True),
        ("cron(0 9 ? * MON *)", True),
        ("at(2026-12-01T09:00:00)", False),
        ("every day", False),
        ("rate()", False),
        ("rate(1 day) ", False),
    ],
)
def test_when_it_is_sent_is_a_rate_or_a_cron_expression(
    recurring: Document, schedule: str, allowed: bool
) -> None:
    assert allows(recurring, "Schedule", schedule) is allowed


@pytest.mark.parametrize(
    ("event", "allowed"),
    [
        ("{}", False),
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
    recurring: Document, event: str, allowed: bool
) -> None:
    assert allows(recurring, "Order", event) is allowed


def test_each_run_is_an_order_of_its_own_and_a_run_that_is_sent_twice_is_one() -> None:
    first, again, following = (
        submitted(json.dumps(ORDER).replace(PLACEHOLDER, time))
        for time in ("2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z", "2026-12-08T09:00:00Z")
    )
    assert first.order_id == "weekly-paper-20261201T090000Z"
    assert following.order_id == "weekly-paper-20261208T090000Z"
    assert (again.order_id, again.content_hash) == (first.order_id, first.content_hash)


def test_a_run_without_its_time_is_no_order() -> None:
    with pytest.raises(
        RejectedOrder, match=r"processing\.run: is not a valid date and time such as "
    ):
        submitted(json.dumps(ORDER))


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
def test_the_time_zone_is_a_name_of_one(recurring: Document, zone: str, allowed: bool) -> None:
    assert allows(recurring, "TimeZone", zone) is allowed


def test_the_role_of_schedules_may_send_to_submission_and_its_dead_letters_and_nothing_else() -> (
    None
):
    engine = nested_template("engine.yaml")
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


def block(order: Mapping[str, Json], **more: str) -> str:
    values = {
        "Engine": "!GetAtt Engine.Outputs.ForSchedules",
        "Schedule": "cron(0 9 ? * MON *)",
        "Order": f"'{json.dumps(order)}'",
        **more,
    }
    return (
        "    Type: AWS::Serverless::Application\n    Properties:\n"
        "      Location: stacks/schedule.yaml\n      Parameters:\n"
        + "".join(f"        {name}: {value}\n" for name, value in values.items())
    )


@pytest.fixture
def whole(tmp_path: Path) -> Document:
    """The example with two recurring orders, one of which is off, in plain CloudFormation."""
    weekly = block(ORDER, TimeZone="Europe/Brussels")
    nightly = block({**ORDER, "orderId": "nightly"}, Enabled="'false'")
    blocks = f"  Weekly:\n{weekly}  Nightly:\n{nightly}"
    (tmp_path / "stacks").symlink_to(TEMPLATE.parent / "stacks")
    path, text = tmp_path / TEMPLATE.name, TEMPLATE.read_text(encoding="utf-8")
    path.write_text(text.replace("\nOutputs:\n", f"\n{blocks}\nOutputs:\n"))
    return Template.read(path).translate(SERVICE_URLS)


def test_each_block_is_a_schedule_that_sends_its_event_to_the_submission_queue(
    whole: Document,
) -> None:
    schedules = of_type(whole, "AWS::Scheduler::Schedule")
    for name, order_id in (("Weekly", "weekly-paper"), ("Nightly", "nightly")):
        schedule = schedules[f"{name}RecurringOrder"]
        assert schedule["ScheduleExpression"] == "cron(0 9 ? * MON *)"
        target = mapping_of(schedule["Target"])
        assert reference(target["Arn"]) == "SubmissionQueue"
        assert reference(target["RoleArn"]) == "RecurringOrderRole"
        assert reference(at(target, "DeadLetterConfig", "Arn")) == "SubmissionDeadLetterQueue"
        assert json.loads(str(target["Input"])) == {**ORDER, "orderId": order_id}
    assert schedules["WeeklyRecurringOrder"]["ScheduleExpressionTimezone"] == "Europe/Brussels"
    assert schedules["NightlyRecurringOrder"]["ScheduleExpressionTimezone"] == "UTC"


def test_a_block_is_on_unless_it_says_otherwise(whole: Document) -> None:
    schedules = of_type(whole, "AWS::Scheduler::Schedule")
    states = {
        name: chosen(whole, schedules[f"{name}RecurringOrder"]["State"])
        for name in ("Weekly", "Nightly")
    }
    assert states == {"Weekly": "ENABLED", "Nightly": "DISABLED"}


def test_the_events_of_a_template_are_orders_of_its_workflows(whole: Document) -> None:
    assert schedule_problems(whole, WORKFLOWS.values()) == []
