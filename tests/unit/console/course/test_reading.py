"""Which metrics are read for the course of orders, with how many requests, and what is missing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import cast

import pytest

from roundsman.model.failure import NO_STEP
from roundsman.model.instants import MINUTE
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.course.course import SPANS
from roundsman_console.facts.course.reading import (
    LEAN,
    LOCAL,
    NO_STEP_METRICS,
    Measured,
    group_course,
    read_stack,
    read_steps,
    stack_course,
)

AT = 1_800_000_000_000
LONG_AGO = AT - 30 * MINUTE


class CloudWatch:
    """A CloudWatch with values by the name of a metric, each at some minutes before now."""

    def __init__(self, **values: dict[int, float]) -> None:
        self.values = values
        self.requests = 0
        self.asked: list[str] = []

    def get_paginator(self, _name: str) -> "CloudWatch":
        return self

    def paginate(self, **asked: object) -> list[dict[str, object]]:
        self.requests += 1
        found = []
        for query in cast("Sequence[dict[str, object]]", asked["MetricDataQueries"]):
            stat = cast("dict[str, dict[str, str]]", query["MetricStat"])
            name = stat["Metric"]["MetricName"]
            self.asked.append(name)
            points = self.values.get(name, {})
            times = [datetime.fromtimestamp((AT - ago * MINUTE) / 1000, tz=UTC) for ago in points]
            found.append({"Id": query["Id"], "Timestamps": times, "Values": [*points.values()]})
        return [{"MetricDataResults": found}]


def stack(cloudwatch: CloudWatch, endpoint: str = "", **parameters: str) -> DeployedStack:
    outputs = {"SupervisorFunctionName": "shop-Supervisor"}
    found = DeployedStack("shop", outputs, parameters, endpoint=endpoint)
    found.__dict__["cloudwatch"] = cloudwatch
    return found


def missing(measured: Measured) -> dict[str, str | None]:
    return {one.name: one.missing for one in measured.series}


STARTED = dict.fromkeys(range(1, 62), 1.0)


def test_all_series_take_one_request_and_a_measured_minute_without_a_value_is_0() -> None:
    cloudwatch = CloudWatch(
        Invocations=STARTED,
        OrdersAccepted={30: 4, 29: 1},
        TasksArchived={20: 2},
        TasksUndone={20: 1},
    )
    found = read_stack(stack(cloudwatch), AT, SPANS["1h"])
    assert cloudwatch.requests == 1
    told = stack_course(found, (), AT)
    assert told.sentence.startswith("Orders of the last 1 h: 5 accepted, 0 completed, 3 failed.")
    assert told.of("failed").counts[39] == 3
    assert told.of("accepted").counts[-3:] == (None, None, None)
    assert "not everything" not in told.sentence


def test_without_any_value_of_the_stack_nothing_is_known() -> None:
    found = read_stack(stack(CloudWatch()), AT, SPANS["1h"])
    assert {count for one in found.series for count in one.counts} == {None}
    assert [one.total for one in found.series] == [None] * 4


def test_lean_measures_only_how_orders_failed_and_were_cancelled() -> None:
    cloudwatch = CloudWatch(Invocations=STARTED)
    found = read_stack(stack(cloudwatch, Profile="lean", StepMetrics="true"), AT, SPANS["1h"])
    assert missing(found) == {
        "accepted": LEAN,
        "completed": LEAN,
        "failed": None,
        "cancelled": None,
    }
    assert "OrdersAccepted" not in cloudwatch.asked
    assert found.series[2].total == 0
    steps = read_steps(stack(cloudwatch, Profile="lean", StepMetrics="true"), "w", "s", AT, MINUTE)
    assert {*missing(steps).values()} == {LEAN}


@pytest.mark.parametrize("profile", ["standard", "full"])
def test_the_other_profiles_measure_everything(profile: str) -> None:
    cloudwatch = CloudWatch(Invocations=STARTED, StepMs={3: 5.0})
    one = stack(cloudwatch, Profile=profile, StepMetrics="true")
    assert {*missing(read_stack(one, AT, MINUTE)).values()} == {None}
    assert {*missing(read_steps(one, "w", "s", AT, MINUTE)).values()} == {None}
    assert cloudwatch.requests == 2


def test_without_step_metrics_only_what_was_accepted_is_known_beside_a_group() -> None:
    found = read_steps(stack(CloudWatch(Invocations=STARTED)), "w", "s", AT, MINUTE)
    assert missing(found) == {
        "accepted": None,
        "completed": NO_STEP_METRICS,
        "stepSucceeded": NO_STEP_METRICS,
        "stepFailed": NO_STEP_METRICS,
    }


def test_a_local_aws_is_not_asked() -> None:
    cloudwatch = CloudWatch()
    found = read_stack(stack(cloudwatch, "http://127.0.0.1:4566"), AT, SPANS["1h"])
    assert {*missing(found).values()} == {LOCAL}
    assert cloudwatch.requests == 0


def test_a_group_has_its_own_failures_whatever_is_measured() -> None:
    for one in (stack(CloudWatch(), "http://127.0.0.1:4566"), stack(CloudWatch())):
        measured = read_steps(one, "purchase", NO_STEP, AT, SPANS["1h"])
        assert [each.name for each in measured.series] == ["accepted", "completed"]
        told = group_course(
            measured,
            (),
            step=NO_STEP,
            failed_at=[LONG_AGO, AT],
            first_at=LONG_AGO,
            last_at=AT,
            since_is_known=True,
            more=False,
            at=AT,
        )
        assert told.of("failed").total == 2
        assert told.of("failed").counts[-31] == 1
