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
    PERIOD,
    PERIODS,
    AttemptTimes,
    Throughput,
    read_attempt_times,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.faces.web.drawings.columns import HEIGHT, WIDTH, chart
from roundsman_console.faces.web.pages import agents
from tests.web.browsers import Browser
from tests.web.test_requests_to_aws import requests_counted

START = 1_800_000_000_000 - 1_800_000_000_000 % PERIOD


def day(**counts: dict[int, int]) -> Throughput:
    """A day with so many ends in some of its periods."""
    return Throughput(
        START,
        (0,) * PERIODS,
        {
            state: tuple(counts.get(state.lower(), {}).get(n, 0) for n in range(PERIODS))
            for state in ENDS
        },
    )


def test_bars_of_one_period_stand_on_each_other_and_the_highest_has_the_whole_height() -> None:
    drawn = chart(day(completed={3: 6, 4: 2}, archived={3: 2}))
    first, second, third = drawn.bars
    assert (first.state, second.state) == ("Completed", "Archived")
    assert first.x == second.x < third.x
    assert first.y + first.height == third.y + third.height == HEIGHT
    assert (second.y, second.y + second.height) == (0, first.y)
    assert first.height == 3 * second.height
    assert drawn.most == 8
    assert all(0 <= bar.x <= bar.x + bar.width <= WIDTH for bar in drawn.bars)


def test_a_day_without_orders_has_no_bars() -> None:
    drawn = chart(day())
    assert (drawn.bars, drawn.most) == ((), 0)
    assert day().completed_share is None


def test_the_last_hour_is_the_last_two_periods() -> None:
    found = day(completed={PERIODS - 1: 5, PERIODS - 2: 7, PERIODS - 3: 100})
    assert found.last_hour == (0, 12)
    assert found.completed_share == 1


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


@pytest.mark.exhaustive
def test_the_overview_has_the_orders_of_the_day(browser: Browser) -> None:
    browser.operator.world.clock.now += 24 * HOUR  # away from the figures of other tests
    assert "CloudWatch has no order that ended." in browser.page("/")
    measured(browser, "OrdersAccepted", "submission", 90, 20 * MINUTE)
    measured(browser, "TasksCompleted", "scheduler", 30, 20 * MINUTE)
    measured(browser, "TasksCompleted", "scheduler", 45, 5 * HOUR)
    measured(browser, "TasksArchived", None, 5, 5 * HOUR)
    with requests_counted() as found:
        assert "CloudWatch has no order that ended." in browser.page("/"), "remembered"
    assert found["GetMetricData"] <= 1, "that of the queues"
    browser.operator.world.clock.now += 5 * MINUTE
    page = browser.page("/")
    assert "Accepted, last hour 90 Ended, last hour 30 Accepted 90" in page
    assert "Completed 75" in page
    assert "Archived 5" in page
    assert "Completed of ended 93.8 %" in page
    assert browser.html("/").count('class="end-completed"') == 2
    assert browser.html("/").count('class="end-archived"') == 1


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
