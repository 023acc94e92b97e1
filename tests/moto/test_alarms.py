"""Alarms watch metrics that the functions write, and two stacks of one account share none."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from roundsman_dev.check.reading import mappings_in
from roundsman_dev.template import Document, Template, mapping_of
from roundsman_testing.stack import Stack
from roundsman_testing.stack.resources import StackOnMoto, create_stack_on_moto
from tests.console.operators import at_each_call
from tests.moto.orders import order
from tests.moto.test_bad_messages import request
from tests.moto.test_metric_filters import measured
from tests.project import SERVICE_URLS, TEMPLATE, translate
from tests.support.alarms import MetricKey, emitted, metric_key, resolved_alarms
from tests.support.template_reading import alarms

OF_THE_ACCOUNT = {"AccountConcurrencyAlarm"}
"""Alarms that watch the whole account on purpose."""


@pytest.fixture
def troubles(world: Stack, capsys: pytest.CaptureFixture[str]) -> dict[MetricKey, list[float]]:
    """The metrics of functions that met everything for which they have an alarm."""
    world.faults({"orderId": "unwritten", "service": "mail", "status": 400})
    world.submit(order("unwritten"), order("spoiled"))
    world.run_one_batch("SubmissionQueue")
    world.clock.sleep(61)
    world.supervise()  # while the scheduler has not begun what it was sent
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "spoiled"}},
        UpdateExpression="REMOVE CompleteBy",
    )
    unknown = request(step="paint_it", idempotencyKey="ord-1/paint_it/perform")
    world.send("InventoryRequestQueue", unknown)

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AuthorizationError", "Message": "no"}}, "Publish")

    with at_each_call("sns.Publish", refuse):
        world.pass_time(400)
    found: dict[MetricKey, list[float]] = defaultdict(list)
    for key, values in emitted(json.loads(line) for line in capsys.readouterr().out.splitlines()):
        found[key] += values
    return found


@pytest.mark.exhaustive
def test_each_alarm_on_the_stacks_own_metrics_watches_what_its_functions_write(
    world: Stack, troubles: dict[MetricKey, list[float]]
) -> None:
    found = [
        alarm
        for alarm in resolved_alarms(world.stack, translate())
        if alarm.metric.namespace.startswith("Roundsman")
    ]
    assert {alarm.logical for alarm in found} == {
        "ArchivedTasksAlarm",
        "TroubledTasksAlarm",
        "HandlerErrorsAlarm",
        "StepsWithoutHandlerAlarm",
        "AlertsFailedAlarm",
        "SupervisorLagAlarm",
        "SchedulerBehindAlarm",
    }
    for alarm in found:
        assert alarm.metric in troubles, alarm
        assert max(troubles[alarm.metric]) > 0, alarm


@pytest.mark.exhaustive
def test_a_metric_of_all_functions_counts_what_each_of_them_counts(
    troubles: dict[MetricKey, list[float]],
) -> None:
    for name in ("HandlerErrors", "TasksArchived", "AlertsFailed", "StepsWithoutHandler"):
        by_service = sum(
            sum(values) for key, values in troubles.items() if key.name == name and key.dimensions
        )
        [together] = [
            sum(values)
            for key, values in troubles.items()
            if key.name == name and not key.dimensions
        ]
        assert together == by_service > 0, name


@pytest.fixture
def two_stacks() -> Iterator[tuple[StackOnMoto, StackOnMoto]]:
    """Two deployments of the template in one account and region."""
    with mock_aws():
        shop, stage = (
            create_stack_on_moto(Template.read(TEMPLATE), SERVICE_URLS, stack_name=name)
            for name in ("shop", "shop-stage")
        )
        yield shop, stage


@pytest.mark.exhaustive
def test_two_stacks_in_one_account_share_no_metric_and_no_alarm(
    two_stacks: tuple[StackOnMoto, StackOnMoto],
) -> None:
    template = translate()
    shop, stage = (resolved_alarms(stack, template) for stack in two_stacks)
    assert len(shop) == len(stage) > 50
    assert not {alarm.name for alarm in shop} & {alarm.name for alarm in stage}
    shared = {alarm.metric for alarm in shop} & {alarm.metric for alarm in stage}
    named = {alarm.logical for alarm in shop if alarm.metric in shared}
    assert named == OF_THE_ACCOUNT
    namespaces = [
        {each["POWERTOOLS_METRICS_NAMESPACE"] for each in stack.function_environments.values()}
        for stack in two_stacks
    ]
    assert namespaces == [{"Roundsman/shop"}, {"Roundsman/shop-stage"}]
    client = boto3.client("cloudwatch")
    for alarm in (*shop, *stage):  # CloudWatch replaces an alarm by another of the same name
        client.put_metric_alarm(
            AlarmName=alarm.name,
            Namespace=alarm.metric.namespace,
            MetricName=alarm.metric.name,
            Dimensions=[{"Name": k, "Value": v} for k, v in sorted(alarm.metric.dimensions)],
            Statistic="Sum",
            ComparisonOperator="GreaterThanThreshold",
            Threshold=0,
            Period=60,
            EvaluationPeriods=1,
        )
    pages = client.get_paginator("describe_alarms").paginate()
    assert sum(len(page["MetricAlarms"]) for page in pages) == 2 * len(shop)


SHARE = "UndoneShareAlarm"


@pytest.mark.exhaustive
def test_the_share_of_undone_orders_is_of_metrics_that_the_scheduler_writes(
    world: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    undone = [order(f"undone-{number}") | {"paymentToken": "tok_declined"} for number in range(6)]
    world.submit(*undone, *(order(f"done-{number}") for number in range(2)))
    world.pass_time(120)
    values = sums_of(world, capsys.readouterr().out)
    assert values == {"undone": 6, "completed": 2}
    assert share_of(values) == 75


@pytest.mark.parametrize(
    ("undone", "completed", "percent"),
    [
        (5, None, 100),  # all: nothing was completed, and CloudWatch has no value
        (5, 5, 50),
        (4, None, 0),  # too few
        (20, 980, 2),
        (None, 10, 0),
    ],
)
def test_the_alarm_is_about_the_share_of_at_least_five_undone_orders(
    undone: int | None, completed: int | None, percent: int
) -> None:
    assert share_of({"undone": undone, "completed": completed}) == percent


@cache
def share_alarm() -> Document:
    return alarms(translate())[SHARE]


def part_of_share(identifier: str) -> Document:
    """The metric or the expression of the alarm that has this id."""
    [found] = [one for one in mappings_in(share_alarm()["Metrics"]) if one["Id"] == identifier]
    return found


def share_of(values: Mapping[str, float | None]) -> float:
    """The value of the alarm's expression, as CloudWatch's documentation of metric math has it.

    A metric without a value in the period is missing, and what is computed of a missing value is
    missing: 0 here, as the alarm treats it.
    """
    expression = str(part_of_share("share")["Expression"])
    functions = {
        "IF": lambda condition, then, other: then if condition else other,
        "FILL": lambda value, instead: instead if value is None else value,
    }
    assert share_alarm()["TreatMissingData"] == "notBreaching"
    if values["undone"] is None:
        return 0
    known: dict[str, object] = {"__builtins__": {}, **functions, **values}
    return float(eval(expression, known))  # noqa: S307  # our own template's


def sums_of(world: Stack, written: str) -> dict[str, float]:
    """The sum of each metric that the alarm reads, in these lines of the functions."""
    found: dict[MetricKey, float] = defaultdict(float)
    for key, numbers in emitted(json.loads(line) for line in written.splitlines()):
        found[key] += sum(numbers)
    for (name, services), numbers in measured(world, written).items():
        if len(services) == 1:
            dimensions = frozenset({("service", services[0])})
            found[MetricKey(f"Roundsman/{world.stack.name}", name, dimensions)] += sum(numbers)
    watched = {
        name: mapping_of(mapping_of(part_of_share(name)["MetricStat"])["Metric"])
        for name in ("undone", "completed")
    }
    return {name: found[metric_key(world.stack, metric)] for name, metric in watched.items()}
