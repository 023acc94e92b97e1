"""The pages on workflows: from CloudWatch's metrics where the stack has them, else from records."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import boto3
import pytest
from botocore.exceptions import ClientError

from roundsman.model.instants import DAY, MINUTE
from roundsman.model.states import TaskState
from roundsman_console.aws.metrics import (
    AT_ONCE,
    Ends,
    StepTimes,
    has_step_metrics,
    period_until,
    read_ends,
    read_step_times,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.readings import step_health
from roundsman_console.facts.workflow.health import Health
from tests.moto.orders import order
from tests.web.browsers import Browser
from tests.web.test_requests_to_aws import requests_counted

END = 1_800_000_000_000
START = END - DAY
WORKFLOW = "order_fulfilment"
Series = tuple[str, str, tuple[str, ...]]


@dataclass
class CloudWatch:
    """A CloudWatch with the values of some metrics; moto has no percentiles."""

    values: dict[Series, list[float]]
    """By name, statistic and the values of the dimensions; two values are two parts of the day."""
    requests: list[int] = field(default_factory=list)
    """How many metrics each request read."""

    def get_paginator(self, _name: str) -> "CloudWatch":
        return self

    def paginate(self, **asked: object) -> list[dict[str, object]]:
        queries = cast("list[dict[str, dict[str, dict[str, object]]]]", asked["MetricDataQueries"])
        self.requests.append(len(queries))
        results = []
        for query in queries:
            stat = query["MetricStat"]
            metric = stat["Metric"]
            assert metric["Namespace"] == "Roundsman/shop"
            dimensions = cast("list[dict[str, str]]", metric["Dimensions"])
            key = (
                str(metric["MetricName"]),
                str(stat["Stat"]),
                tuple(d["Value"] for d in dimensions),
            )
            found = self.values.get(key, [])
            at = [datetime.fromtimestamp(START / 1000 + n, tz=UTC) for n in range(len(found))]
            results.append({"Id": query["Id"], "Timestamps": at, "Values": found})
        return [{"MetricDataResults": results}]


def stack_with(cloudwatch: CloudWatch) -> DeployedStack:
    stack = DeployedStack("shop", {}, {})
    stack.__dict__["cloudwatch"] = cloudwatch
    return stack


def test_a_step_has_its_percentiles_and_its_failures() -> None:
    pay, ship = (WORKFLOW, "pay"), (WORKFLOW, "ship")
    cloudwatch = CloudWatch(
        {
            ("StepMs", "SampleCount", pay): [30.0],
            ("StepMs", "p50", pay): [1_200.4],
            ("StepMs", "p99", pay): [9_000.0],
            ("StepFailures", "Sum", pay): [10.0],
            ("StepFailures", "Sum", ship): [2.0],
        }
    )
    steps = [pay, ship, (WORKFLOW, "mail")]
    found = read_step_times(stack_with(cloudwatch), steps, START, END)
    assert found == {pay: StepTimes(30, 10, 1_200, 9_000), ship: StepTimes(0, 2, None, None)}
    assert cloudwatch.requests == [12]


def test_of_a_period_in_two_parts_the_median_is_that_of_the_larger_part() -> None:
    pay = (WORKFLOW, "pay")
    cloudwatch = CloudWatch(
        {
            ("StepMs", "SampleCount", pay): [5.0, 40.0],
            ("StepMs", "p50", pay): [9_000.0, 1_000.0],
            ("StepMs", "p99", pay): [12_000.0, 3_000.0],
        }
    )
    found = read_step_times(stack_with(cloudwatch), [pay], START, END)
    assert found == {pay: StepTimes(45, 0, 1_000, 12_000)}


def test_more_steps_than_one_request_may_read_are_read_in_several() -> None:
    cloudwatch = CloudWatch({("StepFailures", "Sum", (WORKFLOW, "step129")): [1.0]})
    steps = [(WORKFLOW, f"step{n}") for n in range(130)]
    found = read_step_times(stack_with(cloudwatch), steps, START, END)
    assert [*found] == [steps[129]]
    assert cloudwatch.requests == [AT_ONCE, 20]
    assert read_step_times(stack_with(cloudwatch), [], START, END) == {}


def test_the_ends_of_a_workflow_are_counted_by_state() -> None:
    cloudwatch = CloudWatch(
        {
            ("WorkflowEnds", "Sum", (WORKFLOW, "Completed")): [90.0, 5.0],
            ("WorkflowEnds", "Sum", (WORKFLOW, "Undone")): [5.0],
        }
    )
    found = read_ends(stack_with(cloudwatch), [WORKFLOW, "gift"], START, END)
    assert [*found] == [WORKFLOW]
    assert found[WORKFLOW].counts[TaskState.COMPLETED] == 95
    assert (found[WORKFLOW].ended, found[WORKFLOW].completed_share) == (100, 0.95)
    assert Ends({}).completed_share is None
    assert read_ends(stack_with(cloudwatch), [], START, END) == {}


def test_a_period_ends_with_a_whole_minute_that_is_not_over() -> None:
    start, end = period_until(END + 12_345, DAY)
    assert end % MINUTE == 0
    assert (end - start, end > END + 12_345) == (DAY, True)


def test_a_stack_that_was_deployed_before_its_metrics_has_none() -> None:
    assert not has_step_metrics(DeployedStack("shop", {}, {}))
    assert not has_step_metrics(DeployedStack("shop", {}, {"StepMetrics": "false"}))
    assert has_step_metrics(DeployedStack("shop", {}, {"StepMetrics": "true"}))


@pytest.fixture
def completed(browser: Browser) -> Browser:
    world = browser.operator.world
    world.clock.now += 60 * DAY  # away from the figures of other tests
    world.submit(order("ord-1"))
    world.run()
    return browser


@pytest.mark.exhaustive
def test_without_figures_of_cloudwatch_the_records_are_shown_and_named(completed: Browser) -> None:
    page = completed.page("/workflows")
    assert "CloudWatch has no order that ended in this period." in page
    assert "From the records of all 1 order." in page
    plan = completed.operator.world.task("ord-1").plan
    page = completed.page(f"/workflows/{plan}")
    assert "CloudWatch has no figure of this stack in this period." in page
    assert "From the records of all 1 order of the workflow." in page
    assert "Median" in page


def test_the_workflows_show_how_the_orders_of_a_period_ended(completed: Browser) -> None:
    at = datetime.fromtimestamp((completed.operator.world.clock.now - 2 * DAY) / 1000, tz=UTC)
    for state, value in (("Completed", 90), ("Undone", 10)):
        boto3.client("cloudwatch").put_metric_data(
            Namespace="Roundsman/roundsman",
            MetricData=[
                {
                    "MetricName": "WorkflowEnds",
                    "Dimensions": [
                        {"Name": "workflow", "Value": WORKFLOW},
                        {"Name": "state", "Value": state},
                    ],
                    "Timestamp": at,
                    "Value": value,
                }
            ],
        )
    with requests_counted() as found:
        assert "order_fulfilment 100 90 0 10 90.0 %" in completed.page("/workflows?period=7d")
    assert found["GetMetricData"] == 1
    assert "no order that ended in this period" in completed.page("/workflows?period=24h")


@pytest.mark.exhaustive
def test_a_viewer_who_may_not_read_metrics_sees_the_records_and_why(
    completed: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_given: object) -> Health:
        raise ClientError(
            {"Error": {"Code": "AccessDenied", "Message": "not authorized to perform"}},
            "GetMetricData",
        )

    monkeypatch.setattr(step_health, "read_health", refused)
    plan = completed.operator.world.task("ord-1").plan
    page = completed.page(f"/workflows/{plan}?period=30d")
    assert "GetMetricData" in page
    assert "From the records of all 1 order of the workflow." in page


@pytest.mark.exhaustive
def test_a_stack_without_the_metrics_shows_the_records(
    completed: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(completed.inspector.stack.parameters, "StepMetrics", "false")
    plan = completed.operator.world.task("ord-1").plan
    with requests_counted() as found:
        page = completed.page(f"/workflows/{plan}")
        assert "Period:" not in completed.page("/workflows")
    assert "How the steps did is not known: not measured: the parameter StepMetrics" in page
    assert "From the records of all 1 order of the workflow." in page
    assert not found["GetMetricData"]
