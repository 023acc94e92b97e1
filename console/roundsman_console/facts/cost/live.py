"""Reads the usage of a deployed stack from CloudWatch metrics, and prices it.

Most are metrics that AWS publishes for every resource, free of charge. The accepted orders and the
decisions by workflow (`OrdersAccepted`, `TaskDecisions`) are custom metrics of the functions. AWS
charges 0.01 USD per thousand metrics that are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3

from roundsman.model.instants import DAY, SECOND
from roundsman_console.aws.metrics import HOUR, Metric, own_metrics, read_metrics, sum_of
from roundsman_console.aws.resources import stack_resources
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.typed_inputs import read_duration
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import CostSpent, sizes_of, spent_of

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_dynamodb import DynamoDBClient

SHORTEST, LONGEST = HOUR // SECOND, 90 * DAY // SECOND
"""The bounds of a period in seconds. CloudWatch keeps hourly sums for 15 months."""
DEFAULT_SINCE = "7d"
USD_PER_METRIC = 0.01 / 1_000
"""What CloudWatch charges for each metric that is read, in USD."""
KINDS = {
    "AWS::Lambda::Function": "functions",
    "AWS::DynamoDB::Table": "tables",
    "AWS::SQS::Queue": "queues",
    "AWS::Logs::LogGroup": "logs",
}


@dataclass(frozen=True)
class StackParts:
    """The stack, and its resources that have metrics: physical ids by logical id."""

    stack: str
    functions: Mapping[str, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    queues: Mapping[str, str] = field(default_factory=dict)
    logs: Mapping[str, str] = field(default_factory=dict)


def parts_of(stack_name: str) -> StackParts:
    """Read the functions, tables, queues and log groups of a stack from CloudFormation."""
    client: CloudFormationClient = boto3.client("cloudformation")
    found: dict[str, dict[str, str]] = {kind: {} for kind in KINDS.values()}
    for resource in stack_resources(client, stack_name):
        kind = KINDS.get(resource.kind)
        if kind is not None:
            # The physical id of a queue is its URL; its metrics have the queue's name.
            name = resource.physical_id
            found[kind][resource.name] = name.rpartition("/")[2] if kind == "queues" else name
    return StackParts(stack_name, **found)


def metrics_of(parts: StackParts) -> dict[str, Metric]:
    """Return the metrics that the bill needs, by name: `invocations SchedulerFunction`."""
    found: dict[str, Metric] = {}
    for logical, function in parts.functions.items():
        for kind in ("Invocations", "Duration"):
            of = {"FunctionName": function}
            found[f"{kind.lower()} {logical}"] = Metric("AWS/Lambda", kind, of)
    for logical, queue in parts.queues.items():
        for name, kind in (("sent", "NumberOfMessagesSent"), ("empty", "NumberOfEmptyReceives")):
            found[f"{name} {logical}"] = Metric("AWS/SQS", kind, {"QueueName": queue})
    for logical, group in parts.logs.items():
        found[f"logs {logical}"] = Metric("AWS/Logs", "IncomingBytes", {"LogGroupName": group})
    for logical, table in parts.tables.items():
        indexes = [{"GlobalSecondaryIndexName": index} for index in _indexes(table)]
        for place, more in enumerate(({}, *indexes)):
            for unit in ("Write", "Read"):
                found[f"{unit.lower()} {logical} {place}"] = Metric(
                    "AWS/DynamoDB", f"Consumed{unit}CapacityUnits", {"TableName": table, **more}
                )
    own = own_metrics(parts.stack)
    found["orders"] = Metric(own, "OrdersAccepted", {"service": "submission"})
    for workflow in _workflows(own):
        of = {"service": "scheduler", "workflow": workflow}
        found[f"decisions {workflow}"] = Metric(own, "TaskDecisions", of)
        found[f"ended {workflow}"] = Metric(own, "TaskDecisions", of, "SampleCount")
    return found


def _indexes(table: str) -> list[str]:
    client: DynamoDBClient = boto3.client("dynamodb")
    found = client.describe_table(TableName=table)["Table"].get("GlobalSecondaryIndexes", [])
    return [index["IndexName"] for index in found if "IndexName" in index]


def _workflows(own: str) -> list[str]:
    """Return the workflows of which an order of the stack has ended in the last two weeks.

    ListMetrics does not return a metric that has had no data for two weeks.
    """
    client: CloudWatchClient = boto3.client("cloudwatch")
    pages = client.get_paginator("list_metrics").paginate(Namespace=own, MetricName="TaskDecisions")
    return sorted(
        {
            dimension["Value"]
            for page in pages
            for metric in page["Metrics"]
            for dimension in metric.get("Dimensions", [])
            if dimension.get("Name") == "workflow" and "Value" in dimension
        }
    )


@dataclass(frozen=True, slots=True)
class UsageRead:
    """The cost of a stack's usage, and what it took to find it out."""

    spent: CostSpent
    metrics: int
    """The number of metrics that were read."""

    @property
    def usd_of_reading(self) -> float:
        """What CloudWatch charges for the reading, in USD."""
        return self.metrics * USD_PER_METRIC


def read_since(text: str) -> int:
    """Return the length of a past period in seconds. Raises ConsoleError if it is not 1h to 90d."""
    return read_duration(text, least=SHORTEST, most=LONGEST)


def read_usage(stack: DeployedStack, seconds: int, prices: Prices) -> UsageRead:
    """Read the metrics of the last `seconds` and price them.

    The start of the period is rounded down to a full hour.
    """
    until = now() // SECOND * SECOND
    start = (until - seconds * SECOND) // HOUR * HOUR
    metrics = metrics_of(parts_of(stack.name))
    read = read_metrics(stack, metrics, start, until, HOUR)
    used = {name: total for name, points in read.items() if (total := sum_of(points))}
    sizes = sizes_of(stack.parameters)
    days = (until - start) / DAY
    spent = spent_of(used, days, sizes, load_figures(), prices, stack.payload_bucket)
    return UsageRead(spent, len(metrics))
