"""The figures of CloudWatch on the pages: orders over time, and how long attempts take."""

from datetime import UTC, datetime
from typing import cast

import boto3
import pytest

from roundsman.model.instants import MINUTE
from roundsman.model.states import END_STATES
from roundsman_console.aws.metrics import (
    ENDS,
    HOUR,
    AttemptTimes,
    read_attempt_times,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.pages import agents
from tests.web.browsers import Browser
from tests.web.test_requests_to_aws import requests_counted

START = 1_800_000_000_000


def measured(browser: Browser, name: str, service: str | None, value: float, ago: int) -> None:
    """A metric as the functions write it, some ms ago."""
    at = datetime.fromtimestamp((browser.operator.world.clock.now - ago) / 1000, tz=UTC)
    boto3.client("cloudwatch").put_metric_data(
        Namespace="Roundsman/roundsman",
        MetricData=[
            {
                "MetricName": name,
                "Dimensions": [{"Name": "service", "Value": service}] if service else [],
                "Timestamp": at,
                "Value": value,
            }
        ],
    )


def started(browser: Browser, since: int, until: int) -> None:
    """The supervisor was started in each minute from `since` to `until`, both in ms before now."""
    function = browser.inspector.stack.output("SupervisorFunctionName")
    at = browser.operator.world.clock.now
    boto3.client("cloudwatch").put_metric_data(
        Namespace="AWS/Lambda",
        MetricData=[
            {
                "MetricName": "Invocations",
                "Dimensions": [{"Name": "FunctionName", "Value": function}],
                "Timestamp": datetime.fromtimestamp((at - ago) / 1000, tz=UTC),
                "Value": 1.0,
            }
            for ago in range(until, since + 1, MINUTE)
        ],
    )


@pytest.mark.exhaustive
def test_the_overview_has_the_orders_of_some_hours(browser: Browser) -> None:
    browser.operator.world.clock.now += 24 * HOUR  # away from the figures of other tests
    page = browser.page("/")
    assert "How many orders were accepted and ended in the last 3 h is not known." in page
    assert "Completed not known" in page
    measured(browser, "OrdersAccepted", "submission", 90, 20 * MINUTE)
    measured(browser, "TasksCompleted", "scheduler", 30, 20 * MINUTE)
    measured(browser, "TasksCompleted", "scheduler", 45, 5 * HOUR)
    measured(browser, "TasksArchived", None, 5, 5 * HOUR)
    with requests_counted() as found:
        assert "How many orders were accepted and ended" in browser.page("/"), "remembered"
    assert found["GetMetricData"] <= 1, "that of the queues"
    browser.operator.world.clock.now += MINUTE
    assert "Of 175 minutes not everything is known." in browser.page("/")
    started(browser, 13 * HOUR, 0)
    page = browser.page("/?period=12h")
    assert "Orders of the last 12 h: 90 accepted, 75 completed, 5 failed." in page
    assert "Since then 30 orders completed." in page
    assert "Completed 75" in page
    assert "Archived 5" in page
    assert "Completed of ended 93.8 %" in page
    assert "not everything is known" not in page
    browser.operator.world.clock.now += MINUTE
    page = browser.page("/?period=nonsense")
    assert "Orders of the last 3 h: 90 accepted, 30 completed, 0 failed." in page


class CloudWatch:
    """A CloudWatch with the times of one agent; moto has no percentiles."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def get_paginator(self, _name: str) -> "CloudWatch":
        return self

    def paginate(self, **asked: object) -> list[dict[str, object]]:
        queries = cast("list[dict[str, dict[str, str]]]", asked["MetricDataQueries"])
        self.asked += [one["MetricStat"]["Stat"] for one in queries]
        at = [asked["StartTime"]]
        values = {"m2": [1_500.4], "m3": [4_000.0], "m0": []}
        return [
            {
                "MetricDataResults": [
                    {"Id": one["Id"], "Timestamps": at, "Values": values[str(one["Id"])]}
                    for one in queries
                    if values.get(str(one["Id"]))
                ]
            }
        ]


def test_an_agent_has_the_average_and_the_percentile_of_its_attempts() -> None:
    stack, cloudwatch = DeployedStack("shop", {}, {}), CloudWatch()
    stack.__dict__["cloudwatch"] = cloudwatch
    assert read_attempt_times(stack, ["mail", "payment"], START) == {
        "payment": AttemptTimes(1_500, 4_000)
    }
    assert cloudwatch.asked == ["Average", "p95", "Average", "p95"]
    assert read_attempt_times(stack, [], START) == {}


def test_the_agents_have_the_times_of_their_attempts(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "no figure" in browser.page("/agents")
    browser.operator.world.clock.now += 5 * MINUTE
    found = {"payment": AttemptTimes(90_000, 240_000)}
    monkeypatch.setattr(agents, "read_attempt_times", lambda *_: found)
    assert "90 s 4 min" in browser.page("/agents")


def test_every_end_of_a_task_is_counted() -> None:
    assert {*ENDS} == END_STATES
