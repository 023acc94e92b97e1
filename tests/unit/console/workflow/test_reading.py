"""Which metrics are read of steps, with how many requests, and what is missing."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import cast

import pytest

from roundsman.model.instants import MINUTE
from roundsman_console.aws.metrics import HOUR
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.course.reading import LEAN, LOCAL, NO_STEP_METRICS
from roundsman_console.facts.workflow import reading
from roundsman_console.facts.workflow.health import PERIODS, window_of
from roundsman_console.facts.workflow.reading import StepsToRead, read_health

AT = 1_800_000_000_000 + 20 * MINUTE
MOST_VALUES = 100_800
"""The largest number of values in one answer of GetMetricData."""
MOST_REQUESTS = 10


@dataclass
class CloudWatch:
    """A CloudWatch that has values of some steps in the last hour, and starts of the supervisor.

    As the real one, it answers in pages if a request may have more than MOST_VALUES values.
    """

    failing: str = ""
    """The step of which one half fails in the last hour."""
    requests: int = 0
    metrics: int = 0
    names: set[str] = field(default_factory=set)

    def get_paginator(self, _name: str) -> "CloudWatch":
        return self

    def paginate(self, **asked: object) -> Iterator[dict[str, object]]:
        queries = cast("list[dict[str, dict[str, object]]]", asked["MetricDataQueries"])
        start, end = (cast("datetime", asked[name]) for name in ("StartTime", "EndTime"))
        every = cast("int", queries[0]["MetricStat"]["Period"])
        values = len(queries) * -(-round((end - start).total_seconds()) // every)
        self.metrics += len(queries)
        found = [self._values(query, start, end, every) for query in queries]
        for page in range(-(-values // MOST_VALUES)):
            self.requests += 1
            yield {"MetricDataResults": found if page == 0 else []}

    def _values(
        self, query: dict[str, dict[str, object]], start: datetime, end: datetime, every: int
    ) -> dict[str, object]:
        metric = cast("dict[str, object]", query["MetricStat"]["Metric"])
        name, stat = str(metric["MetricName"]), str(query["MetricStat"]["Stat"])
        self.names.add(name)
        parts = range(round(start.timestamp()), round(end.timestamp()), every)
        of = {
            one["Name"]: one["Value"] for one in cast("list[dict[str, str]]", metric["Dimensions"])
        }
        hurts = of.get("step") == self.failing and self.failing != ""
        points: dict[int, float] = {}
        if name == "Invocations":
            points = dict.fromkeys(parts, 60.0)
        elif hurts and stat == "SampleCount":
            points = dict.fromkeys(parts, 50.0)
        elif hurts and name == "StepFailures":
            points = {parts[-1]: 50.0}
        times = [datetime.fromtimestamp(one, tz=UTC) for one in points]
        return {"Id": query["Id"], "Timestamps": times, "Values": [*points.values()]}


def stack(cloudwatch: CloudWatch, endpoint: str = "", **parameters: str) -> DeployedStack:
    outputs = {"SupervisorFunctionName": "shop-Supervisor"}
    found = DeployedStack("shop", outputs, parameters, endpoint=endpoint)
    found.__dict__["cloudwatch"] = cloudwatch
    return found


def steps(many: int) -> StepsToRead:
    return {("purchase", f"step{place}"): (("payment",), 30_000) for place in range(many)}


@pytest.fixture
def no_versions(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The agents whose versions were read; there are none."""
    read: list[str] = []

    def versions(_stack: DeployedStack, agent: str) -> list[object]:
        read.append(agent)
        return []

    monkeypatch.setattr(reading, "read_versions_of", versions)
    return read


@pytest.mark.parametrize("period", PERIODS)
def test_300_steps_take_at_most_ten_requests_and_seven_metrics_each(
    period: str, no_versions: list[str]
) -> None:
    cloudwatch = CloudWatch()
    found = read_health(stack(cloudwatch, StepMetrics="true"), steps(300), period, AT)
    assert cloudwatch.requests <= MOST_REQUESTS
    assert cloudwatch.metrics == 300 * 7 + 1
    assert len(found.steps) == 300
    assert not no_versions


def test_four_steps_take_two_requests() -> None:
    cloudwatch = CloudWatch()
    read_health(stack(cloudwatch, StepMetrics="true"), steps(4), "7d", AT)
    assert (cloudwatch.requests, cloudwatch.metrics) == (2, 29)


def test_an_hour_in_which_the_supervisor_was_started_was_measured() -> None:
    found = read_health(stack(CloudWatch(), StepMetrics="true"), steps(1), "24h", AT)
    assert found.steps[0].attempts == 0
    assert found.steps[0].attempts_by_part == [0] * 24


def test_only_of_a_step_that_is_worse_the_versions_of_its_agents_are_read(
    no_versions: list[str],
) -> None:
    cloudwatch = CloudWatch(failing="step1")
    found = read_health(stack(cloudwatch, StepMetrics="true"), steps(3), "24h", AT)
    assert found.steps[0].step == "step1"
    assert found.steps[0].worse is not None
    assert found.steps[0].worse.since == window_of("24h", AT).until - HOUR
    assert no_versions == ["payment"]


@pytest.mark.parametrize(
    ("endpoint", "parameters", "why"),
    [
        ("", {"Profile": "lean", "StepMetrics": "true"}, LEAN),
        ("", {"StepMetrics": "false"}, NO_STEP_METRICS),
        ("", {}, NO_STEP_METRICS),
        ("http://127.0.0.1:4510", {"StepMetrics": "true"}, LOCAL),
    ],
)
def test_a_stack_without_the_metrics_is_not_asked_and_says_why(
    endpoint: str, parameters: dict[str, str], why: str
) -> None:
    cloudwatch = CloudWatch()
    found = read_health(stack(cloudwatch, endpoint, **parameters), steps(2), "24h", AT)
    assert (found.missing, cloudwatch.requests) == (why, 0)
    assert {one.attempts for one in found.steps} == {None}
    assert why in found.sentence


def test_without_a_step_nothing_is_asked() -> None:
    cloudwatch = CloudWatch()
    assert not read_health(stack(cloudwatch, StepMetrics="true"), {}, "24h", AT).steps
    assert cloudwatch.requests == 0
