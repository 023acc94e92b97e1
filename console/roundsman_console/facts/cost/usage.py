"""Computes the bill of a deployed stack, by part and by workflow, from sums of its metrics.

The functions are pure; `live` reads the sums. The last ones say it in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman_console.base.constraints import Date
from roundsman_console.base.result import HIDDEN, Shown, rounded
from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.memory import SUPERVISOR, FunctionCost, Ran, function_costs
from roundsman_console.facts.cost.model import (
    DEFAULT_MEMORY,
    GB,
    MILLION,
    PER_ORDER,
    STANDING,
    SUPERVISOR_MEMORY,
    Bill,
    BillLine,
    LineKind,
    Rounded,
    Usd,
    UsdPerMillion,
    line_of,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.records import KB

PAYLOADS_LEFT_OUT = (
    "Payloads are not counted; docs/how-to/large-data.md#what-it-costs says what one costs."
)
"""CloudWatch has no number of the requests to a bucket, and an estimate is not told of payloads."""


@dataclass(frozen=True, slots=True)
class OfWorkflow:
    """The cost of the orders of one workflow: its share of the decisions, applied to all costs."""

    workflow: str
    orders: Rounded
    """The number of orders that ended in the period."""
    decisions: Rounded
    """The number of the scheduler's decisions for these orders."""
    usd: Usd
    usd_per_million: UsdPerMillion
    """0 if no order has ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSpent:
    """The cost of what a deployed stack has used."""

    region: str
    prices_dated: Date
    days: Annotated[float, Shown(unit=rounded(4))]
    """The length of the period."""
    orders: Rounded
    """The number of orders that were accepted in the period."""
    usd: Usd
    usd_standing: Annotated[float, HIDDEN]
    """What of it the stack cost while it waited."""
    usd_per_million: UsdPerMillion
    """Without the standing cost; 0 if there was no order."""
    lines: Sequence[BillLine]
    workflows: Sequence[OfWorkflow]
    functions: Sequence[FunctionCost]
    payload_bucket: str | None = None
    """The bucket whose payloads are not counted; null if the stack has none."""


@dataclass(frozen=True)
class Sizes:
    """The memory and the processor architecture of the functions."""

    memory: Mapping[str, int]
    """The memory in MB by the function's logical id."""
    architecture: str = "x86_64"

    def memory_of(self, function: str) -> int:
        """Return the memory of a function (its logical id) in MB; the default if not known."""
        default = SUPERVISOR_MEMORY if function == SUPERVISOR else DEFAULT_MEMORY
        return self.memory.get(function, default)

    def gb_seconds(self, function: str, ms: float) -> float:
        """Return the GB-seconds of a function (its logical id) that ran for `ms`."""
        return ms / 1000 * self.memory_of(function) / KB


def sizes_of(parameters: Mapping[str, str]) -> Sizes:
    """Read the sizes from the stack's parameters and from those of its nested stacks.

    `PaymentMemory` is that of `PaymentFunction`. Without a parameter Architecture, the default of
    Lambda applies: x86_64.
    """
    memory = {
        f"{name.removesuffix('Memory')}Function": int(value)
        for name, value in parameters.items()
        if name.endswith("Memory")
    }
    return Sizes(memory, parameters.get("Architecture", "x86_64"))


def spent_of(
    used: Mapping[str, float],
    days: float,
    sizes: Sizes,
    figures: Figures,
    prices: Prices,
    payload_bucket: str | None = None,
) -> CostSpent:
    """Return the cost of a period of `days`.

    `used` are sums of the metrics of `live.metrics_of`. The first word of a name is the kind of the
    metric, the second the part or the workflow. The workflow with the most decisions is first.
    """
    bill = Bill(used.get("orders", 0.0), tuple(_lines(used, sizes, prices)))
    orders_usd = bill.usd(PER_ORDER)
    decisions = {k.partition(" ")[2]: v for k, v in used.items() if k.startswith("decisions ")}
    total = sum(decisions.values())
    workflows = []
    for workflow, count in decisions.items():
        orders = used.get(f"ended {workflow}", 0.0)
        usd = orders_usd * count / total if total else 0.0
        per_million = usd / orders * MILLION if orders else 0.0
        workflows.append(OfWorkflow(workflow, orders, count, usd, per_million))
    workflows.sort(key=lambda one: -one.decisions)
    return CostSpent(
        region=prices.region,
        prices_dated=prices.dated,
        days=days,
        orders=bill.orders,
        usd=bill.usd(),
        usd_standing=bill.usd(STANDING),
        usd_per_million=bill.usd_per_million,
        lines=bill.lines,
        workflows=workflows,
        functions=function_costs(_ran(used, sizes), sizes.architecture, figures, prices),
        payload_bucket=payload_bucket,
    )


def _lines(used: Mapping[str, float], sizes: Sizes, prices: Prices) -> list[BillLine]:
    """Return the lines of the bill.

    CloudWatch has no metric of the receive and delete requests; each invocation that a queue
    triggers counts as one of each.
    """
    invocations = _by_part(used, "invocations")
    durations = _by_part(used, "duration")
    woken = sum(v for k, v in invocations.items() if k != SUPERVISOR)
    gb_seconds = sum(sizes.gb_seconds(k, v) for k, v in durations.items())
    found: list[tuple[LineKind, str, str, str, float]] = [
        (PER_ORDER, "DynamoDB", "writes", "dynamodb.write", _total(used, "write")),
        (PER_ORDER, "DynamoDB", "reads", "dynamodb.read", _total(used, "read")),
        (PER_ORDER, "SQS", "messages sent, at most a request each", "sqs.request",
         _total(used, "sent")),
        (PER_ORDER, "SQS", "receives and deletes", "sqs.request", 2 * woken),
        (STANDING, "SQS", "waiting for messages", "sqs.request", _total(used, "empty")),
        (PER_ORDER, "Lambda", "invocations", "lambda.request", sum(invocations.values())),
        (PER_ORDER, "Lambda", "time", f"lambda.{sizes.architecture}", gb_seconds),
        (PER_ORDER, "CloudWatch", "logs sent", "logs.ingested", _total(used, "logs") / GB),
    ]  # fmt: skip
    return [line_of(prices, *each) for each in found]


def _ran(used: Mapping[str, float], sizes: Sizes) -> Iterator[Ran]:
    durations = _by_part(used, "duration")
    for name, invocations in _by_part(used, "invocations").items():
        yield Ran(name, invocations, durations.get(name, 0.0), sizes.memory_of(name))


def _by_part(used: Mapping[str, float], kind: str) -> dict[str, float]:
    return {name.split(" ")[1]: v for name, v in used.items() if name.startswith(f"{kind} ")}


def _total(used: Mapping[str, float], kind: str) -> float:
    return sum(v for name, v in used.items() if name.startswith(f"{kind} "))


# --- In words ------------------------------------------------------------------------------------


def amount(value: float) -> str:
    """Format a number: from 100 on without decimals, below with at most two."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")


def no_figures(spent: CostSpent) -> str:
    """Return the sentence about a period of which CloudWatch has no figures; empty if it has."""
    if spent.lines and spent.usd:
        return ""
    return f"CloudWatch has no figures for these {spent.days:.1f} days."


def came_words(spent: CostSpent) -> str:
    """Return the number of orders and the length of the period."""
    return f"{spent.orders:,.0f} orders in {spent.days:.1f} days"


def sum_words(spent: CostSpent) -> str:
    """Return the sums of the bill in words."""
    return (
        f"{spent.usd:,.2f} USD, {spent.usd_standing:,.2f} of it for waiting; "
        f"{spent.usd_per_million:,.2f} per million orders"
    )


def price_words(spent: CostSpent) -> str:
    """Return which prices the bill has, and what it leaves out."""
    payloads = f" {PAYLOADS_LEFT_OUT}" if spent.payload_bucket else ""
    return (
        f"List prices of {spent.region} on {spent.prices_dated}, no free tier. Storage, alarms "
        "and custom metrics are not included; the estimate by --orders-per-month includes "
        f"them.{payloads}"
    )


def line_rows(spent: CostSpent) -> list[tuple[str, str, str]]:
    """Return the part, the amount and the USD of each line, the most expensive first."""
    return [
        (f"{line.service}: {line.what}", amount(line.amount), f"{line.usd:,.2f}")
        for line in sorted(spent.lines, key=lambda line: -line.usd)
    ]


def workflow_rows(spent: CostSpent) -> list[tuple[str, str, str, str, str]]:
    """Return the workflow, its orders, decisions per order, USD, and USD per million orders."""
    return [
        (
            one.workflow,
            f"{one.orders:,.0f}",
            f"{one.decisions / one.orders if one.orders else 0.0:,.1f}",
            f"{one.usd:,.2f}",
            f"{one.usd_per_million:,.2f}",
        )
        for one in spent.workflows
    ]
