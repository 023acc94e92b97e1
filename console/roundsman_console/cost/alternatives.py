"""The same order on AWS's own orchestrators, at their list prices, and how it was counted.

Both are given the best case: no retries, a state or an operation a step and none besides, one
Lambda function a step at no duration. What their functions log and compute is not counted, while
Roundsman's is.
"""

from dataclasses import dataclass

from roundsman_console.cost.figures import Figures
from roundsman_console.cost.model import DAYS, GB, Wanted
from roundsman_console.cost.prices import Prices

MILLION = 1_000_000
RETAINED_DAYS = 14  # of a durable execution after its end, by default


@dataclass(frozen=True, slots=True)
class Rival:
    """Another way to run the same order: its price for a million, and how that was counted."""

    name: str
    usd_per_million: float
    counted: str


def rivals_of(wanted: Wanted, figures: Figures, prices: Prices) -> tuple[Rival, ...]:
    """Step Functions Standard, and Lambda durable functions."""
    steps = wanted.steps
    invocations = prices.usd("lambda.request", steps * MILLION)
    transitions = prices.usd("stepfunctions.transition", steps * MILLION)
    row = wanted.order_bytes or figures.record.order_row
    written = (row + steps * wanted.result_bytes) * MILLION / GB
    durable = (
        prices.usd("durable.operation", (steps + 1) * MILLION)
        + prices.usd("durable.written", written)
        + prices.usd("durable.retained", written * RETAINED_DAYS / DAYS)
        + prices.usd("lambda.request", MILLION)
    )
    return (
        Rival(
            "Step Functions Standard",
            transitions + invocations,
            f"{steps} state transitions and {steps} invocations an order",
        ),
        Rival(
            "Lambda durable functions",
            durable,
            f"{steps + 1} operations (the start and each step), what they write, and one "
            "invocation an order",
        ),
    )
