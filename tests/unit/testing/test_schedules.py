"""`roundsman check` of schedules: AWS's rules of rate and cron, and the order that is sent."""

import json
from datetime import date, timedelta
from typing import Annotated, TypedDict

import pytest
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

from roundsman import Archive, Step, Text, Workflow
from roundsman.definition.recurrence import expression_problems, once_problems
from roundsman_dev.changes.values import with_values
from roundsman_dev.check import schedules
from roundsman_dev.check.schedules import RUN, schedule_problems
from roundsman_dev.template import Document, Json
from tests.project import TEMPLATE

TODAY = date(2026, 11, 29)


class Paper(TypedDict):
    customer: Annotated[str, Text(10)]


class Other(TypedDict):
    amount: int


def workflow(name: str, kind: object) -> Workflow:
    step = Step(name=f"send_{name}", agent="mail", complete_within=timedelta(seconds=5))
    return Workflow(
        name=name,
        input=kind,  # type: ignore[arg-type]
        steps=(step,),
        complete_within=timedelta(minutes=5),
        on_failure=Archive(),
        retain_for=timedelta(days=1),
    )


def fails(given: Paper) -> Paper:
    raise KeyError(given["customer"])


WORKFLOWS = (workflow("paper", Paper), workflow("other", Other), workflow("broken", fails))
ORDER: dict[str, Json] = {"orderId": "weekly", "customer": "us", "processing": {"run": RUN}}


@pytest.mark.parametrize(
    "expression",
    [
        "rate(1 minute)",
        "rate(5 minutes)",
        "rate(1 hour)",
        "rate(24 hours)",
        "rate(1 day)",
        "rate(7 days)",
        "cron(0 9 ? * MON *)",
        "cron(15 10 * * ? *)",
        "cron(0 18 ? * MON-FRI *)",
        "cron(0/15 * * * ? *)",
        "cron(*/10 8-17/2 1,15 JAN-MAR,12 ? 2026-2030)",
        "cron(0 0 L * ? *)",
        "cron(0 0 15W * ? *)",
        "cron(0 0 ? * FRI#2 *)",
        "cron(0 0 ? * 6#5 *)",
        "cron(0 0 ? * 5L *)",
        "cron(0 0 ? * L *)",
        "cron(59 23 31 12 ? 2199)",
        "cron(0 0 1 1 ? 1970-2199)",
        "cron(0  9 ? DEC SUN,SAT *)",
    ],
)
def test_what_aws_takes_has_no_problem(expression: str) -> None:
    assert expression_problems(expression, TODAY) == []


FORM = "write it as rate(1 day) or cron(0 9 ? * MON *), with nothing before and after"
RATE = "a rate is a whole number of minutes, hours or days, as in rate(5 minutes)"
SIX = "a cron expression has six fields, minutes hours day-of-month month day-of-week year"
ONE_OF_DAYS = (
    "exactly one of day-of-month and day-of-week must be ?; "
    "write ? for the one that does not matter"
)


@pytest.mark.parametrize(
    ("expression", "problems"),
    [
        ("", [FORM]),
        ("every day", [FORM]),
        ("0 9 ? * MON *", [FORM]),
        ("Rate(1 day)", [FORM]),
        ("rate(1 day) ", [FORM]),
        ("at(2026-12-01T09:00:00)", [FORM]),
        ("rate()", [RATE]),
        ("rate(day)", [RATE]),
        ("rate(1.5 hours)", [RATE]),
        ("rate(-1 days)", [RATE]),
        ("rate(30 seconds)", [RATE]),
        ("rate(1 week)", [RATE]),
        ("rate(5minutes)", [RATE]),
        ("rate(٣ days)", [RATE]),
        ("rate(0 minutes)", ["the shortest rate is rate(1 minute); write 1 or more"]),
        ("rate(1 days)", ["write day after 1: rate(1 day)"]),
        ("rate(5 minute)", ["write minutes after 5: rate(5 minutes)"]),
        ("rate(2 hour)", ["write hours after 2: rate(2 hours)"]),
        ("cron(0 9 * * 1)", [f"{SIX}, and this has 5; add the year, * for every one"]),
        ("cron(0 0 9 ? * MON *)", [f"{SIX}, and this has 7"]),
        ("cron(0 9)", [f"{SIX}, and this has 2"]),
        ("cron(0 9 * * * *)", [ONE_OF_DAYS]),
        ("cron(0 9 1 * MON *)", [ONE_OF_DAYS]),
        (
            "cron(0 9 ? * ? *)",
            ["day-of-month and day-of-week are both ?; write * for one of them"],
        ),
        ("cron(60 9 ? * MON *)", ["minutes: '60' is not a number from 0 to 59"]),
        ("cron(0 24 ? * MON *)", ["hours: '24' is not a number from 0 to 23"]),
        ("cron(0 8-25 ? * MON *)", ["hours: '25' is not a number from 0 to 23"]),
        ("cron(0 9 ? 13 MON *)", ["month: '13' is not from 1 (JAN) to 12 (DEC)"]),
        ("cron(0 9 ? MAI MON *)", ["month: 'MAI' is not from 1 (JAN) to 12 (DEC)"]),
        ("cron(0 9 ? * MON 1969)", ["year: '1969' is not a number from 1970 to 2199"]),
        ("cron(0 9 ? * MON 2200)", ["year: '2200' is not a number from 1970 to 2199"]),
        ("cron(? 9 ? * MON *)", ["minutes cannot be ?; write * for every one"]),
        ("cron(0 9 ? ? MON *)", ["month cannot be ?; write * for every one"]),
        ("cron(L 9 ? * MON *)", ["minutes: 'L' is not a number from 0 to 59"]),
        ("cron(0,,5 9 ? * MON *)", ["minutes: '' is not a number from 0 to 59"]),
        ("cron(1- 9 ? * MON *)", ["minutes: '' is not a number from 0 to 59"]),
        ("cron(1-2-3 9 ? * MON *)", ["minutes: '2-3' is not a number from 0 to 59"]),
        (
            "cron(*/0 9 ? * MON *)",
            ["minutes: what follows / in '*/0' must be a number from 1 to 59"],
        ),
        ("cron(0/ 9 ? * MON *)", ["minutes: what follows / in '0/' must be a number from 1 to 59"]),
        (
            "cron(0 */99 ? * MON *)",
            ["hours: what follows / in '*/99' must be a number from 1 to 23"],
        ),
        (
            "cron(0 9 32 * ? *)",
            ["day-of-month: '32' is not a number from 1 to 31, nor alone one of ? L 15W"],
        ),
        (
            "cron(0 9 LW * ? *)",
            ["day-of-month: 'LW' is not a number from 1 to 31, nor alone one of ? L 15W"],
        ),
        (
            "cron(0 9 1,L * ? *)",
            ["day-of-month: 'L' is not a number from 1 to 31, nor alone one of ? L 15W"],
        ),
        (
            "cron(0 9 ? * 0 *)",
            ["day-of-week: '0' is not from 1 (SUN) to 7 (SAT), nor alone one of ? L 6L FRI#2"],
        ),
        (
            "cron(0 9 ? * MON#6 *)",
            ["day-of-week: 'MON#6' is not from 1 (SUN) to 7 (SAT), nor alone one of ? L 6L FRI#2"],
        ),
        (
            "cron(0 9 ? * 8 *)",
            ["day-of-week: '8' is not from 1 (SUN) to 7 (SAT), nor alone one of ? L 6L FRI#2"],
        ),
        (
            "cron(61 25 ? * MON *)",
            [
                "minutes: '61' is not a number from 0 to 59",
                "hours: '25' is not a number from 0 to 23",
            ],
        ),
    ],
)
def test_each_fault_of_an_expression_is_one_sentence(expression: str, problems: list[str]) -> None:
    assert expression_problems(expression, TODAY) == problems


def problems(
    order: Json = "{}",
    expression: Json = "rate(1 day)",
    zone: Json = "UTC",
    parameters: dict[str, Json] | None = None,
    values: dict[str, str] | None = None,
    name: str = f"Weekly{schedules.RECURRING_ORDER}",
) -> list[str]:
    """The problems of a template with one schedule that sends an order."""
    schedule: dict[str, Json] = {
        "ScheduleExpression": expression,
        "ScheduleExpressionTimezone": zone,
        "Target": {"Arn": {"Fn::GetAtt": ["SubmissionQueue", "Arn"]}, "Input": order},
    }
    resource: dict[str, Json] = {"Type": "AWS::Scheduler::Schedule", "Properties": schedule}
    declared: dict[str, Json] = {k: {"Default": v} for k, v in (parameters or {}).items()}
    declared["NoDefault"] = {"Type": "String"}
    document: Document = {"Parameters": declared, "Resources": {name: resource}}
    if values is not None:
        document = {"Resources": {**with_values(document, values)}}
    return schedule_problems(document, WORKFLOWS)


def test_an_order_of_its_workflow_with_the_time_of_its_run_has_no_problem() -> None:
    assert problems(json.dumps(ORDER)) == []
    other = {"orderId": "o", "amount": 5, "processing": {"workflow": "other", "run": RUN}}
    assert problems(json.dumps(other, indent=2)) == []


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"customer": "more than ten characters"}, "customer: "),
        ({"customer": 5}, "customer: "),
        ({"extra": 1}, "extra: "),
        ({"orderId": "no spaces"}, "orderId: "),
        ({"orderId": "x" * 128}, "orderId: has 145 characters with the time of its run"),
        ({"processing": {"run": RUN, "workflow": "none"}}, "processing.workflow: unknown workflow"),
        ({"processing": {"run": RUN, "workflow": "other"}}, "amount: "),
        ({"processing": {"run": RUN, "retention": -1}}, "processing.retention: "),
    ],
)
def test_an_order_that_its_workflow_would_reject_is_found(
    change: dict[str, Json], sentence: str
) -> None:
    found = problems(json.dumps({**ORDER, **change}))
    assert found
    assert all(each.startswith("Weekly: Order would be rejected: ") for each in found)
    assert f"Weekly: Order would be rejected: {sentence}" in found[0]


@pytest.mark.parametrize(
    "processing", [{}, {"run": "2026-12-01T09:00:00Z"}, {"run": "now"}, {"run": f"{RUN} "}, None]
)
def test_an_order_without_the_time_of_its_run_is_one_problem(processing: Json) -> None:
    assert problems(json.dumps({**ORDER, "processing": processing})) == [
        'Weekly: Order: processing.run must be "<aws.scheduler.scheduled-time>", without which '
        "every run would be the same order"
    ]


@pytest.mark.parametrize("placeholder", ["execution-id", "attempt-number"])
def test_what_differs_at_each_delivery_of_a_run_may_not_be_in_the_order(placeholder: str) -> None:
    (found,) = problems(json.dumps({**ORDER, "customer": f"<aws.scheduler.{placeholder}>"}))[:1]
    assert found.startswith(f"Weekly: Order has <aws.scheduler.{placeholder}>, which is another")


@pytest.mark.parametrize(
    ("order", "sentence"),
    [
        ("orderId: weekly", "Weekly: Order would be rejected: not JSON: "),
        ("[]", "Weekly: Order would be rejected: must be an object"),
        (
            json.dumps(ORDER | {"customer": "x" * 4096}),
            "Weekly: Order has 4190 characters: shorten it to 4096 at most",
        ),
        (ORDER, "Weekly: Order must be a text: write the JSON of the order between single quotes"),
        (
            '{"orderId": "weekly", "cancel": {}}',
            "Weekly: Order is a cancellation: write an order event, without the field cancel",
        ),
        (
            json.dumps({**ORDER, "processing": {"run": RUN, "workflow": "broken"}}),
            "Weekly: Order fails in the workflow's input: KeyError: 'us'",
        ),
        ("{}", "Weekly: Order: processing.run must be "),
    ],
)
def test_an_event_that_is_no_order_is_found(order: Json, sentence: str) -> None:
    assert problems(order)[0].startswith(sentence)


def test_a_cancellation_and_what_is_no_json_are_one_problem_each() -> None:
    for event in ('{"orderId": "weekly", "cancel": {}}', "{", "5"):
        assert len(problems(event)) == 1


def test_the_heartbeat_alone_may_have_no_expression() -> None:
    assert problems({"Ref": "NoDefault"}, "", name="AlertHeartbeat") == []
    (found,) = problems({"Ref": "NoDefault"}, "rate(1 days)", name="AlertHeartbeat")
    assert found.startswith("AlertHeartbeatSchedule is 'rate(1 days)': ")
    assert problems(json.dumps(ORDER), "") == [f"Weekly: Schedule is '': {FORM}"]


def test_orders_of_two_schedules_with_one_id_are_found() -> None:
    target: dict[str, Json] = {
        "Arn": {"Fn::GetAtt": ["SubmissionQueue", "Arn"]},
        "Input": json.dumps(ORDER),
    }
    schedule: Json = {
        "Type": "AWS::Scheduler::Schedule",
        "Properties": {"ScheduleExpression": "rate(1 day)", "Target": target},
    }
    names = ("WeeklyRecurringOrder", "Nightly", "DailyRecurringOrder")
    document: Document = {"Resources": dict.fromkeys(names, schedule)}
    assert schedule_problems(document, WORKFLOWS) == [
        "Weekly and Nightly and Daily send orders with the id weekly: give each its own, since two "
        "runs at the same time would be one order"
    ]


def test_a_block_with_another_output_of_the_engine_is_found() -> None:
    schedule: dict[str, Json] = {
        "ScheduleExpression": "rate(1 day)",
        "Target": {"Arn": {"Ref": "AWS::StackName"}, "Input": json.dumps(ORDER)},
    }
    resource: Json = {"Type": "AWS::Scheduler::Schedule", "Properties": schedule}
    document: Document = {"Resources": {"WeeklyRecurringOrder": resource}}
    assert schedule_problems(document, WORKFLOWS) == [
        "Weekly: Engine must be !GetAtt Engine.Outputs.ForSchedules"
    ]
    document = {"Resources": {"Nightly": resource}}
    assert schedule_problems(document, WORKFLOWS) == []


def test_the_defaults_of_parameters_are_read_or_the_values_that_a_deployment_gives_them() -> None:
    order: Json = {"Ref": "Order"}
    expression: Json = {"Ref": "When"}
    parameters: dict[str, Json] = {"Order": json.dumps(ORDER), "When": "rate(1 day)"}
    assert problems(order, expression, parameters=parameters) == []
    values = {"Order": json.dumps({**ORDER, "extra": 1}), "When": "rate(1 days)"}
    rate, extra = problems(order, expression, parameters=parameters, values=values)
    assert rate == "Weekly: Schedule is 'rate(1 days)': write day after 1: rate(1 day)"
    assert "extra: " in extra
    assert problems(order, expression, parameters={"Order": values["Order"], "When": "x"}) != []


def test_what_only_the_deployment_knows_is_not_checked() -> None:
    unknown: list[Json] = [{"Ref": "NoDefault"}, {"Fn::Sub": "${X}"}, {"Fn::If": ["C"]}, None, 5]
    for value in unknown:
        assert problems(value, value, value) == []


@pytest.mark.parametrize("zone", ["Europe/Brussels", "UTC", "America/Argentina/Buenos_Aires"])
def test_a_time_zone_of_the_database_is_taken(zone: str) -> None:
    assert problems(json.dumps(ORDER), zone=zone) == []


@pytest.mark.parametrize("zone", ["Europe/Brussel", "CEST", "+01:00"])
def test_another_time_zone_is_found(zone: str) -> None:
    assert problems(json.dumps(ORDER), zone=zone) == [
        f"Weekly: Schedule has the time zone '{zone}': write one of the IANA database, as "
        "Europe/Rome"
    ]


def test_a_schedule_of_the_applications_own_is_checked_under_its_name() -> None:
    own = json.dumps({**ORDER, "extra": 1})
    rate, extra = problems(own, "rate(2 day)", name="Nightly")
    assert rate.startswith("Nightly.ScheduleExpression is 'rate(2 day)': ")
    assert extra.startswith("Nightly.Target.Input would be rejected: extra: ")
    assert problems(json.dumps(ORDER), "at(2026-12-01T09:00:00)", name="Once") == []
    assert problems(json.dumps(ORDER), "at(2026-12-01T09:00:00)") != []
    assert problems(json.dumps(ORDER), "", name="Nightly") != []
    rule: dict[str, Json] = {
        "Type": "AWS::Events::Rule",
        "Properties": {"ScheduleExpression": "cron(0 9 * * * *)"},
    }
    (found,) = schedule_problems({"Resources": {"Clean": rule}}, WORKFLOWS)
    assert found == f"Clean.ScheduleExpression is 'cron(0 9 * * * *)': {ONE_OF_DAYS}"


def test_the_longest_event_is_that_of_the_template_of_a_recurring_order() -> None:
    text = (TEMPLATE.parent / "stacks" / "schedule.yaml").read_text()
    longest = yaml_parse(text)["Parameters"]["Order"]["MaxLength"]
    assert longest == schedules.LONGEST_EVENT


NEVER = "it never runs, because no day that is to come has this date"


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("cron(0 9 31 2 ? *)", NEVER),
        ("cron(0 9 30,31 FEB ? *)", NEVER),
        ("cron(0 9 31 4/2 ? 2027)", None),  # August
        ("cron(0 9 31 4,6,9,11 ? *)", NEVER),
        ("cron(0 9 29 2 ? 2027)", NEVER),
        ("cron(0 9 29 2 ? 2027-2028)", None),
        ("cron(0 9 29 2 ? *)", None),
        ("cron(0 9 31W 2 ? *)", NEVER),
        ("cron(0 9 L 2 ? *)", None),
        ("cron(0 9 1 1 ? 2020)", "it never runs, because the year 2020 is past"),
        ("cron(0 9 1 1 ? 2018,2020-2025)", "it never runs, because the year 2025 is past"),
        ("cron(0 9 27 11 ? 2026)", NEVER),
        ("cron(0 9 28 11 ? 2026)", None),  # it may still be yesterday there
        ("cron(0 9 ? 10 * 2026)", NEVER),
        ("cron(0 9 ? 2 SUN#5 2027)", NEVER),
        ("cron(0 9 ? 5 SUN#5 2027)", None),
        ("cron(0 9 ? 12 SAT-SUN 2026)", None),
        ("cron(0 9 ? 12 6L 2026)", None),
        ("cron(0 9 28/2 2 ? *)", None),
        ("cron(0 9 29-30 2 ? 2027)", NEVER),
        ("rate(1 day)", None),
    ],
)
def test_a_schedule_that_never_runs_is_found(expression: str, problem: str | None) -> None:
    assert expression_problems(expression, TODAY) == ([] if problem is None else [problem])


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("at(2026-12-01T09:00:00)", None),
        ("at(2026-11-28T09:00:00)", None),
        ("at(2026-11-27T09:00:00)", "it never runs, because that is past"),
        (
            "at(2026-02-31T09:00:00)",
            "write it as at(2026-12-01T09:00:00), with nothing before and after",
        ),
        ("at(soon)", "write it as at(2026-12-01T09:00:00), with nothing before and after"),
    ],
)
def test_a_schedule_for_one_run_has_an_instant_that_is_to_come(
    expression: str, problem: str | None
) -> None:
    assert once_problems(expression, TODAY) == ([] if problem is None else [problem])
