"""The bill of what a live stack has used, by part and by workflow. Pure: the sums come in."""

from collections.abc import Mapping
from dataclasses import dataclass

from roundsman_console.cost.model import GB, KB, PER_ORDER, STANDING, Line
from roundsman_console.cost.prices import Prices

ACTS_OF_NO_ORDER = ("SupervisorFunction",)
DEFAULT_MEMORY = 256


@dataclass(frozen=True, slots=True)
class OfWorkflow:
    """What the ended orders of one workflow have cost, by their part of all decisions."""

    workflow: str
    orders: float
    decisions: float
    usd: float

    @property
    def usd_per_million(self) -> float:
        """Of its orders; 0 where none has ended."""
        return self.usd / self.orders * 1_000_000 if self.orders else 0.0


@dataclass(frozen=True)
class Spent:
    """What was used in so many days, at list prices. `orders` are those that were accepted."""

    days: float
    orders: float
    lines: tuple[Line, ...]
    workflows: tuple[OfWorkflow, ...]

    def usd(self, kind: str | None = None) -> float:
        """The sum, of one kind or of all."""
        return sum(line.usd for line in self.lines if kind in (None, line.kind))

    @property
    def usd_per_million(self) -> float:
        """For each million orders, what stands there left out; 0 where none came."""
        return self.usd(PER_ORDER) / self.orders * 1_000_000 if self.orders else 0.0


@dataclass(frozen=True)
class Sizes:
    """Of the functions: MB by logical id, and their processors."""

    memory: Mapping[str, int]
    of_agents: int = DEFAULT_MEMORY
    architecture: str = "x86_64"

    def gb_seconds(self, function: str, ms: float) -> float:
        """Of a function that ran so long."""
        return ms / 1000 * self.memory.get(function, self.of_agents) / KB


def sizes_of(parameters: Mapping[str, str]) -> Sizes:
    """As the stack's parameters say; every function that has none of its own is an agent's.

    Where a template has no Architecture, Lambda's own default is what runs.
    """
    memory = {
        name: int(parameters.get(f"{name}Memory", DEFAULT_MEMORY))
        for name in ("Submission", "Scheduler", "Supervisor", "Agent")
    }
    own = {f"{name}Function": size for name, size in memory.items()}
    return Sizes(own, memory["Agent"], parameters.get("Architecture", "x86_64"))


def spent_of(used: Mapping[str, float], days: float, sizes: Sizes, prices: Prices) -> Spent:
    """The bill. `used` is as watched.sums says: a name's first word says what it counts."""
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
    return Spent(days, used.get("orders", 0.0), lines, tuple(workflows))


def _lines(used: Mapping[str, float], sizes: Sizes, prices: Prices) -> list[Line]:
    """Receives and deletes are not counted by AWS as requests; each invocation is one of both."""
    invocations = _by_part(used, "invocations")
    durations = _by_part(used, "duration")
    woken = sum(v for k, v in invocations.items() if k not in ACTS_OF_NO_ORDER)
    gb_seconds = sum(sizes.gb_seconds(k, v) for k, v in durations.items())
    found = [
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
    return [
        Line(service, what, amount, prices.prices[price].unit, prices.usd(price, amount), kind)
        for kind, service, what, price, amount in found
    ]


def _by_part(used: Mapping[str, float], kind: str) -> dict[str, float]:
    return {name.split(" ")[1]: v for name, v in used.items() if name.startswith(f"{kind} ")}


def _total(used: Mapping[str, float], kind: str) -> float:
    return sum(v for name, v in used.items() if name.startswith(f"{kind} "))
