"""The cost of the same order on AWS's own orchestrators, at list prices.

Both are calculated for their best case: no retries, one state or operation per step and no others,
and one Lambda invocation per step without duration. The logs and the compute time of their
functions are not counted; those of Roundsman are.
"""

from dataclasses import dataclass

from roundsman_console.cost.figures import Figures
from roundsman_console.cost.model import DAYS, GB, Wanted
from roundsman_console.cost.prices import Prices

MILLION = 1_000_000
RETAINED_DAYS = 14  # the default retention of a durable execution after its end


@dataclass(frozen=True, slots=True)
class Rival:
    """Another service that can run the same order, and its cost."""

    name: str
    usd_per_million: float
    """The cost of a million orders in USD."""
    counted: str
    """What was counted, in words."""


def rivals_of(wanted: Wanted, figures: Figures, prices: Prices) -> tuple[Rival, ...]:
    """Return the costs on Step Functions Standard and on Lambda durable functions."""
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
            f"{steps} state transitions and {steps} invocations per order",
        ),
        Rival(
            "Lambda durable functions",
            durable,
            f"{steps + 1} operations (the start and each step), what they write, and one "
            "invocation per order",
        ),
    )
