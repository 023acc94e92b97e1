"""Reads from CloudWatch how many orders were accepted and ended, and how long attempts took.

AWS charges 0.01 USD per thousand metrics that are read. A request reads one metric for what was
accepted, one for each end of an order, and two for each agent.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.instants import DAY, MINUTE
from roundsman.model.states import TaskState
from roundsman_console.aws.metrics import metric_query, own_metrics, read_metrics
from roundsman_console.aws.stack import DeployedStack

HOUR = 60 * MINUTE
PERIOD = HOUR // 2
"""The length of a period in ms."""
PERIODS = 48
"""The number of periods that are read: a day."""
ENDS: Mapping[TaskState, str] = {
    TaskState.COMPLETED: "TasksCompleted",
    TaskState.UNDONE: "TasksUndone",
    TaskState.CANCELLED: "TasksCancelled",
    TaskState.ARCHIVED: "TasksArchived",
}
"""The metric that counts the tasks that came to each end."""


@dataclass(frozen=True, slots=True)
class Throughput:
    """The orders that a stack accepted and ended, by periods of PERIOD ms, the oldest first."""

    start: int
    """The beginning of the first period, in epoch ms."""
    accepted: tuple[int, ...]
    ends: Mapping[TaskState, tuple[int, ...]]

    @property
    def ended(self) -> int:
        """The number of orders that ended."""
        return sum(map(sum, self.ends.values()))

    @property
    def last_hour(self) -> tuple[int, int]:
        """How many orders were accepted and ended in the last two periods, the present one too."""
        last = HOUR // PERIOD
        return sum(self.accepted[-last:]), sum(sum(counts[-last:]) for counts in self.ends.values())

    @property
    def completed_share(self) -> float | None:
        """The share of the ended orders that completed; None if none has ended."""
        return sum(self.ends[TaskState.COMPLETED]) / self.ended if self.ended else None


@dataclass(frozen=True, slots=True)
class AttemptTimes:
    """How long the attempts of an agent took in the last day, in ms."""

    average: int
    slow: int
    """19 of 20 attempts took no longer."""


def read_throughput(stack: DeployedStack, at: int) -> Throughput:
    """Read the orders of the day until `at` (epoch ms), with one request."""
    start = at - at % PERIOD - (PERIODS - 1) * PERIOD
    own, of_submission = own_metrics(stack), {"service": "submission"}
    wanted = [
        metric_query(own, "accepted", "OrdersAccepted", of_submission, PERIOD),
        *(
            metric_query(
                own,
                state.lower(),
                name,
                # A supervisor archives too, so this one is without the function's name.
                {} if state is TaskState.ARCHIVED else {"service": "scheduler"},
                PERIOD,
            )
            for state, name in ENDS.items()
        ),
    ]
    found = read_metrics(stack, wanted, start, at)
    return Throughput(
        start,
        _by_period(found.get("accepted", ()), start),
        {state: _by_period(found.get(state.lower(), ()), start) for state in ENDS},
    )


def read_attempt_times(
    stack: DeployedStack, agents: Sequence[str], at: int
) -> dict[str, AttemptTimes]:
    """Read how long the attempts of the agents took in the day until `at` (epoch ms).

    An agent without attempts is left out. One request, two metrics for each agent.
    """
    if not agents:
        return {}
    queries = [
        metric_query(
            own_metrics(stack),
            f"{kind}{place}",
            "StepAttemptMs",
            {"service": agent},
            DAY,
            statistic,
        )
        for place, agent in enumerate(agents)
        for kind, statistic in (("average", "Average"), ("slow", "p95"))
    ]
    found = read_metrics(stack, queries, at - DAY, at)
    return {
        agent: AttemptTimes(round(average[-1][1]), round(slow[-1][1]))
        for place, agent in enumerate(agents)
        if (average := found.get(f"average{place}")) and (slow := found.get(f"slow{place}"))
    }


def _by_period(points: Sequence[tuple[int, float]], start: int) -> tuple[int, ...]:
    counts = [0] * PERIODS
    for instant, value in points:
        place = (instant - start) // PERIOD
        if 0 <= place < PERIODS:
            counts[place] += round(value)
    return tuple(counts)
