"""Reads from CloudWatch how steps did and how orders ended: the metrics of `StepMetrics`.

They are metrics of the scheduler's decisions (decision 0050). The time of a step is that from the
request of an attempt that succeeded to its reply.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.instants import MINUTE
from roundsman.model.states import END_STATES, TaskState
from roundsman_console.aws.metrics import metric_query, own_metrics, read_metrics
from roundsman_console.aws.stack import DeployedStack

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

    @property
    def success_share(self) -> float | None:
        """The share of the attempts that succeeded; None if there was none."""
        attempts = self.succeeded + self.failed
        return self.succeeded / attempts if attempts else None


@dataclass(frozen=True, slots=True)
class Ends:
    """How the orders of a workflow ended in a period."""

    counts: Mapping[TaskState, int]

    @property
    def ended(self) -> int:
        """The number of orders that ended."""
        return sum(self.counts.values())

    @property
    def completed_share(self) -> float | None:
        """The share of the ended orders that completed; None if none has ended."""
        return self.counts.get(TaskState.COMPLETED, 0) / self.ended if self.ended else None


def has_step_metrics(stack: DeployedStack) -> bool:
    """Whether the stack has metrics by workflow and step; not if it was deployed before them."""
    return stack.parameters.get("StepMetrics") == "true"


def read_step_times(
    stack: DeployedStack, workflow: str, steps: Sequence[str], start: int, end: int
) -> dict[str, StepTimes]:
    """Read the attempts of the steps from `start` to `end` (epoch ms, whole minutes).

    A step without attempts is left out. It is one request for each 125 steps, with four metrics a
    step.
    """
    queries = [
        metric_query(
            own_metrics(stack),
            f"{figure}{place}",
            metric,
            {"workflow": workflow, "step": step},
            end - start,
            statistic,
        )
        for place, step in enumerate(steps)
        for figure, (metric, statistic) in STATISTICS.items()
    ]
    if not queries:
        return {}
    read = read_metrics(stack, queries, start, end)
    found = {}
    for place, step in enumerate(steps):
        counts, failed = read.get(f"count{place}", []), read.get(f"failed{place}", [])
        if counts or failed:
            found[step] = StepTimes(
                _sum(counts),
                _sum(failed),
                _of_most(read.get(f"half{place}", []), counts),
                _longest(read.get(f"most{place}", [])),
            )
    return found


def read_ends(
    stack: DeployedStack, workflows: Sequence[str], start: int, end: int
) -> dict[str, Ends]:
    """Read how orders of the workflows ended from `start` to `end` (epoch ms, whole minutes).

    A workflow without ended orders is left out. It is one request for each 125 workflows, with
    four metrics a workflow.
    """
    states = sorted(END_STATES)
    queries = [
        metric_query(
            own_metrics(stack),
            f"{state.lower()}{place}",
            "WorkflowEnds",
            {"workflow": workflow, "state": state.value},
            end - start,
        )
        for place, workflow in enumerate(workflows)
        for state in states
    ]
    if not queries:
        return {}
    read = read_metrics(stack, queries, start, end)
    found = {}
    for place, workflow in enumerate(workflows):
        counts = {state: _sum(read.get(f"{state.lower()}{place}", [])) for state in states}
        if any(counts.values()):
            found[workflow] = Ends(counts)
    return found


def period_until(at: int, length: int) -> tuple[int, int]:
    """The start and the end of a period of `length` ms that ends with the minute after `at`."""
    end = at - at % MINUTE + MINUTE
    return end - length, end


def _sum(points: Sequence[tuple[int, float]]) -> int:
    return round(sum(value for _, value in points))


def _of_most(
    points: Sequence[tuple[int, float]], counts: Sequence[tuple[int, float]]
) -> int | None:
    """The value at the instant with the largest count.

    CloudWatch may divide the period in two, and a percentile of both does not follow from theirs.
    """
    by_count = dict(counts)
    most = max(points, key=lambda point: by_count.get(point[0], 0), default=None)
    return None if most is None else round(most[1])


def _longest(points: Sequence[tuple[int, float]]) -> int | None:
    return round(max(value for _, value in points)) if points else None
