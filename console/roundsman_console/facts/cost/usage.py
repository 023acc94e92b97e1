"""Computes the bill of a deployed stack, by part and by workflow, from sums of its metrics.

The functions are pure; `live` reads the sums.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman_console.facts.cost.documents import LineKind
from roundsman_console.facts.cost.model import (
    GB,
    MILLION,
    PER_ORDER,
    STANDING,
    Bill,
    BillLine,
    line_of,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.records import KB

ACTS_OF_NO_ORDER = ("SupervisorFunction",)
DEFAULT_MEMORY = 256


@dataclass(frozen=True, slots=True)
class OfWorkflow:
    """The cost of the orders of one workflow: its share of the decisions, applied to all costs."""

    workflow: str
    orders: float
    """The number of orders that have ended."""
    decisions: float
    """The number of decisions on these orders."""
    usd: float

    @property
    def usd_per_million(self) -> float:
        """The cost of a million orders in USD; 0 if no order has ended."""
        return self.usd / self.orders * MILLION if self.orders else 0.0


@dataclass(frozen=True)
class Spent(Bill):
    """The cost of the orders that a stack accepted over a period."""

    days: float
    """The length of the period."""
    workflows: tuple[OfWorkflow, ...]
    """The workflow with the most decisions is first."""


@dataclass(frozen=True)
class Sizes:
    """The memory and the processor architecture of the functions."""

    memory: Mapping[str, int]
    """The memory in MB of functions that have a parameter of their own, by logical id."""
    of_agents: int = DEFAULT_MEMORY
    """The memory in MB of every other function, which is an agent's."""
    architecture: str = "x86_64"

    def gb_seconds(self, function: str, ms: float) -> float:
        """Return the GB-seconds of a function (its logical id) that ran for `ms`."""
        return ms / 1000 * self.memory.get(function, self.of_agents) / KB


def sizes_of(parameters: Mapping[str, str]) -> Sizes:
    """Read the sizes from the stack's parameters.

    Without a parameter Architecture, the default of Lambda applies: x86_64.
    """
    memory = {
        name: int(parameters.get(f"{name}Memory", DEFAULT_MEMORY))
        for name in ("Submission", "Scheduler", "Supervisor", "Agent")
    }
    own = {f"{name}Function": size for name, size in memory.items()}
    return Sizes(own, memory["Agent"], parameters.get("Architecture", "x86_64"))


def spent_of(used: Mapping[str, float], days: float, sizes: Sizes, prices: Prices) -> Spent:
    """Return the cost of a period of `days`.

    `used` are sums of the metrics of `live.metrics_of`. The first word of a name is the kind of the
    metric, the second the part or the workflow.
    """
    lines = tuple(_lines(used, sizes, prices))
    orders_usd = sum(line.usd for line in lines if line.kind == PER_ORDER)
    decisions = {k.partition(" ")[2]: v for k, v in used.items() if k.startswith("decisions ")}
    total = sum(decisions.values())
    workflows = [
        OfWorkflow(
            workflow=workflow,
            orders=used.get(f"ended {workflow}", 0.0),
            decisions=count,
            usd=orders_usd * count / total if total else 0.0,
        )
        for workflow, count in decisions.items()
    ]
    workflows.sort(key=lambda one: -one.decisions)
    return Spent(used.get("orders", 0.0), lines, days, tuple(workflows))


def _lines(used: Mapping[str, float], sizes: Sizes, prices: Prices) -> list[BillLine]:
    """Return the lines of the bill.

    CloudWatch has no metric of the receive and delete requests; each invocation that a queue
    triggers counts as one of each.
    """
    invocations = _by_part(used, "invocations")
    durations = _by_part(used, "duration")
    woken = sum(v for k, v in invocations.items() if k not in ACTS_OF_NO_ORDER)
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


def _by_part(used: Mapping[str, float], kind: str) -> dict[str, float]:
    return {name.split(" ")[1]: v for name, v in used.items() if name.startswith(f"{kind} ")}


def _total(used: Mapping[str, float], kind: str) -> float:
    return sum(v for name, v in used.items() if name.startswith(f"{kind} "))
