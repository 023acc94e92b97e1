"""The cost of what a deployed stack has used, from its metrics in CloudWatch."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from roundsman.inspector.clock import now
from roundsman.inspector.read.stack import DeployedStack
from roundsman_console.arguments import read_duration
from roundsman_console.cost.prices import Prices
from roundsman_console.cost.usage import Spent, sizes_of, spent_of
from roundsman_console.cost.usage_metrics import metrics_of, parts_of, sums

HOUR = 3_600
LONGEST = 90 * 24 * HOUR
DEFAULT_SINCE = "7d"
USD_PER_METRIC = 0.01 / 1_000
"""What CloudWatch charges for each metric that is read, in USD."""


@dataclass(frozen=True, slots=True)
class UsageRead:
    """The cost of a stack's usage, and what it took to find it out."""

    spent: Spent
    metrics: int
    """The number of metrics that were read."""

    @property
    def usd_of_reading(self) -> float:
        """What CloudWatch charges for the reading, in USD."""
        return self.metrics * USD_PER_METRIC


def read_since(text: str) -> int:
    """Return the length of a past period in seconds. Raises ConsoleError if it is not 1h to 90d."""
    return read_duration(text, least=HOUR, most=LONGEST)


def read_usage(stack: DeployedStack, seconds: int, prices: Prices) -> UsageRead:
    """Read the metrics of the last `seconds` and price them.

    The start of the period is rounded down to a full hour.
    """
    until = datetime.fromtimestamp(now() // 1000, tz=UTC)
    start = (until - timedelta(seconds=seconds)).replace(minute=0, second=0)
    metrics = list(metrics_of(parts_of(stack.name)))
    used = sums(metrics, start, until)
    days = (until - start) / timedelta(days=1)
    return UsageRead(spent_of(used, days, sizes_of(stack.parameters), prices), len(metrics))
