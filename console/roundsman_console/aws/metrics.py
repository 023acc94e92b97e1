"""Reads metrics from CloudWatch: orders over time, how orders ended, how steps and attempts did.

They are metrics of the functions' own decisions (decision 0050), in a namespace of the stack. The
time of a step is that from the request of an attempt that succeeded to its reply. AWS charges 0.01
USD per thousand metrics that are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.states import END_STATES, TaskState
from roundsman_console.aws.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

Key = TypeVar("Key")
Points: TypeAlias = Sequence[tuple[int, float]]
"""Instants (epoch ms) with values, the oldest first."""

StepKey: TypeAlias = tuple[str, str]
"""The names of a workflow and of one of its steps."""

AT_ONCE = 500
"""The largest number of metrics in one GetMetricData request."""
HOUR = 60 * MINUTE
ENDS: Mapping[TaskState, str] = {
    TaskState.COMPLETED: "TasksCompleted",
    TaskState.UNDONE: "TasksUndone",
    TaskState.CANCELLED: "TasksCancelled",
    TaskState.ARCHIVED: "TasksArchived",
}
"""The metric that counts the tasks that came to each end."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of CloudWatch, and what is read of it."""

    namespace: str
    name: str
    dimensions: Mapping[str, str] = field(default_factory=dict)
    statistic: str = "Sum"


def own_metrics(stack_name: str) -> str:
    """Return the namespace of the metrics of a stack's functions."""
    return f"Roundsman/{stack_name}"


def read_metrics(
    stack: DeployedStack, wanted: Mapping[Key, Metric], start: int, end: int, period: int
) -> dict[Key, Points]:
    """Read metrics from `start` to `end` (epoch ms), by periods of `period` ms, under their keys.

    A metric without values is left out. It is one request for each AT_ONCE metrics.
    """
    found: dict[Key, list[tuple[int, float]]] = {}
    keys = [*wanted]
    for first in range(0, len(keys), AT_ONCE):
        some = keys[first : first + AT_ONCE]
        pages = stack.cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[
                _query(f"m{place}", wanted[key], period) for place, key in enumerate(some)
            ],
            StartTime=_instant(start),
            EndTime=_instant(end),
        )
        for result in (one for page in pages for one in page["MetricDataResults"]):
            times = [round(one.timestamp() * SECOND) for one in result.get("Timestamps", [])]
            points = zip(times, result.get("Values", []), strict=True)
            found.setdefault(some[int(result["Id"].removeprefix("m"))], []).extend(points)
    return {key: sorted(points) for key, points in found.items() if points}


def sum_of(points: Points) -> float:
    """Return the sum of the values."""
    return sum(value for _, value in points)


def _query(name: str, metric: Metric, period: int) -> "MetricDataQueryTypeDef":
    return {
        "Id": name,
        "MetricStat": {
            "Metric": {
                "Namespace": metric.namespace,
                "MetricName": metric.name,
                "Dimensions": [
                    {"Name": key, "Value": value} for key, value in metric.dimensions.items()
                ],
            },
            "Period": period // SECOND,
            "Stat": metric.statistic,
        },
    }


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / SECOND, tz=UTC)


# --- Orders --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ends:
    """How many orders came to each end in a period."""

    counts: Mapping[TaskState, int]

    @property
    def ended(self) -> int:
        """The number of orders that ended."""
        return sum(self.counts.values())

    @property
    def completed_share(self) -> float | None:
        """The share of the ended orders that completed; None if none has ended."""
        return self.counts.get(TaskState.COMPLETED, 0) / self.ended if self.ended else None


def accepted_orders(stack: str) -> Metric:
    """The orders that were accepted. A stack of the profile lean does not count them."""
    return Metric(own_metrics(stack), "OrdersAccepted", {"service": "submission"})


def ended_orders(stack: str, state: TaskState) -> Metric:
    """The orders that came to this end. A stack of the profile lean does not count Completed."""
    # A supervisor archives too, so that metric is without the function's name.
    of = {} if state is TaskState.ARCHIVED else {"service": "scheduler"}
    return Metric(own_metrics(stack), ENDS[state], of)


def ends_of_workflow(stack: str, workflow: str, state: TaskState) -> Metric:
    """The orders of a workflow that came to this end, if the stack has metrics by step."""
    of = {"workflow": workflow, "state": state.value}
    return Metric(own_metrics(stack), "WorkflowEnds", of)


def starts_of_supervisor(function: str) -> Metric:
    """The starts of the supervisor. Lambda counts them in each profile, with and without orders."""
    return Metric("AWS/Lambda", "Invocations", {"FunctionName": function})


def read_ends(
    stack: DeployedStack, workflows: Sequence[str], start: int, end: int
) -> dict[str, Ends]:
    """Read how orders of the workflows ended from `start` to `end` (epoch ms, whole minutes).

    A workflow without ended orders is left out. It is one request for each 125 workflows, with
    four metrics a workflow.
    """
    wanted = {
        (workflow, state): ends_of_workflow(stack.name, workflow, state)
        for workflow in workflows
        for state in sorted(END_STATES)
    }
    read = read_metrics(stack, wanted, start, end, end - start)
    found = {}
    for workflow in workflows:
        counts = {state: round(sum_of(read.get((workflow, state), ()))) for state in END_STATES}
        if any(counts.values()):
            found[workflow] = Ends(counts)
    return found


# --- Steps and attempts --------------------------------------------------------------------------

STATISTICS: Mapping[str, tuple[str, str]] = {
    "count": ("StepMs", "SampleCount"),
    "half": ("StepMs", "p50"),
    "most": ("StepMs", "p99"),
    "failed": ("StepFailures", "Sum"),
}
"""What is read of each step: the name of the figure, its metric and its statistic."""


@dataclass(frozen=True, slots=True)
class StepTimes:
    """The attempts of a step that ended in a period. Times are in ms."""

    succeeded: int
    failed: int
    half: int | None
    """Half of the attempts that succeeded took no longer; None if none succeeded."""
    nearly_all: int | None
    """99 of 100 attempts that succeeded took no longer; None if none succeeded."""


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """How long the attempts of an agent took in the last day, in ms."""

    average: int
    slow: int
    """19 of 20 attempts took no longer."""


def has_step_metrics(stack: DeployedStack) -> bool:
    """Whether the stack has metrics by workflow and step; not if it was deployed before them."""
    return stack.parameters.get("StepMetrics") == "true"


def succeeded_attempts(stack: str, workflow: str, step: str) -> Metric:
    """The attempts of a step that succeeded, if the stack has metrics by step."""
    return _of_step(stack, workflow, step, *STATISTICS["count"])


def failed_attempts(stack: str, workflow: str, step: str) -> Metric:
    """The attempts of a step that failed, if the stack has metrics by step."""
    return _of_step(stack, workflow, step, *STATISTICS["failed"])


def _of_step(stack: str, workflow: str, step: str, metric: str, statistic: str) -> Metric:
    return Metric(own_metrics(stack), metric, {"workflow": workflow, "step": step}, statistic)


def period_until(at: int, length: int) -> tuple[int, int]:
    """The start and the end of a period of `length` ms that ends with the minute after `at`."""
    end = at - at % MINUTE + MINUTE
    return end - length, end


def read_step_times(
    stack: DeployedStack, steps: Sequence[StepKey], start: int, end: int
) -> dict[StepKey, StepTimes]:
    """Read the attempts of the steps from `start` to `end` (epoch ms, whole minutes).

    A step without attempts is left out. It is one request for each 125 steps, with four metrics a
    step.
    """
    wanted = {
        (step, figure): _of_step(stack.name, *step, metric, statistic)
        for step in steps
        for figure, (metric, statistic) in STATISTICS.items()
    }
    read = read_metrics(stack, wanted, start, end, end - start)
    found = {}
    for step in steps:
        count, half, most, failed = (read.get((step, figure), ()) for figure in STATISTICS)
        if count or failed:
            found[step] = StepTimes(
                round(sum_of(count)), round(sum_of(failed)), _of_most(half, count), _longest(most)
            )
    return found


@dataclass(frozen=True, slots=True)
class StepSeries:
    """The attempts of a step by parts of a time: values by when each part begins (epoch ms)."""

    succeeded: Mapping[int, float] = field(default_factory=dict)
    failed: Mapping[int, float] = field(default_factory=dict)
    nearly_all: Mapping[int, float] = field(default_factory=dict)
    """99 of 100 attempts that succeeded took no longer, in ms."""


_BY_PART = ("count", "failed", "most")
_STARTS = ("", "")
"""The key of the starts of the supervisor among those of steps."""


def read_step_series(
    stack: DeployedStack, steps: Sequence[StepKey], start: int, end: int, every: int
) -> tuple[dict[StepKey, StepSeries], frozenset[int]]:
    """Read the attempts of the steps by parts of `every` ms from `start` to `end` (epoch ms).

    Also returns the parts that were measured: those for which CloudWatch has any of these values,
    or a start of the supervisor, which Lambda counts in each profile. A step without attempts is
    left out. It is one request for each 166 steps, with three metrics a step, and a further one for
    each 100,800 values.
    """
    wanted = {
        (step, figure): _of_step(stack.name, *step, *STATISTICS[figure])
        for step in steps
        for figure in _BY_PART
    }
    supervisor = stack.outputs.get("SupervisorFunctionName")
    if wanted and supervisor:
        wanted[_STARTS, ""] = starts_of_supervisor(supervisor)
    read = {
        key: dict(points) for key, points in read_metrics(stack, wanted, start, end, every).items()
    }
    measured = frozenset(part for values in read.values() for part in values)
    found = {
        step: StepSeries(*(read.get((step, figure), {}) for figure in _BY_PART))
        for step in steps
        if any((step, figure) in read for figure in _BY_PART)
    }
    return found, measured


def _of_most(points: Points, counts: Points) -> int | None:
    """The value at the instant with the largest count.

    CloudWatch may divide the period in two, and a percentile of both does not follow from theirs.
    """
    by_count = dict(counts)
    most = max(points, key=lambda point: by_count.get(point[0], 0), default=None)
    return None if most is None else round(most[1])


def _longest(points: Points) -> int | None:
    return round(max(value for _, value in points)) if points else None


def read_attempt_times(
    stack: DeployedStack, agents: Sequence[str], at: int
) -> dict[str, AttemptTimes]:
    """Read how long the attempts of the agents took in the day until `at` (epoch ms).

    An agent without attempts is left out. One request, two metrics for each agent.
    """
    wanted = {
        (agent, statistic): Metric(
            own_metrics(stack.name), "StepAttemptMs", {"service": agent}, statistic
        )
        for agent in agents
        for statistic in ("Average", "p95")
    }
    found = read_metrics(stack, wanted, at - DAY, at, DAY)
    return {
        agent: AttemptTimes(round(average[-1][1]), round(slow[-1][1]))
        for agent in agents
        if (average := found.get((agent, "Average"))) and (slow := found.get((agent, "p95")))
    }
