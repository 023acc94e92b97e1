"""Reads the usage of a deployed stack from CloudWatch metrics, and prices it.

Most are metrics that AWS publishes for every resource, free of charge. The accepted orders and the
decisions by workflow (`OrdersAccepted`, `TaskDecisions`) are custom metrics of the functions. AWS
charges 0.01 USD per thousand metrics that are read.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import boto3

from roundsman_console.aws.resources import stack_resources
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.typed_inputs import read_duration
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import Spent, sizes_of, spent_of

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef
    from mypy_boto3_dynamodb import DynamoDBClient

AT_ONCE = 500  # the maximum of metrics in one GetMetricData request
HOUR = 3_600  # seconds; CloudWatch keeps hourly sums for 15 months
LONGEST = 90 * 24 * HOUR
DEFAULT_SINCE = "7d"
USD_PER_METRIC = 0.01 / 1_000
"""What CloudWatch charges for each metric that is read, in USD."""
KINDS = {
    "AWS::Lambda::Function": "functions",
    "AWS::DynamoDB::Table": "tables",
    "AWS::SQS::Queue": "queues",
    "AWS::Logs::LogGroup": "logs",
}


def own_namespace(stack_name: str) -> str:
    """Return the namespace of the custom metrics of a stack's functions."""
    return f"Roundsman/{stack_name}"


@dataclass(frozen=True, slots=True)
class Metric:
    """One CloudWatch metric."""

    name: str
    """The key of the metric in `sums`: `invocations SchedulerFunction`."""
    namespace: str
    metric: str
    dimensions: tuple[tuple[str, str], ...]
    statistic: str = "Sum"


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


def metrics_of(parts: StackParts) -> Iterator[Metric]:
    """Yield the metrics that the bill needs."""
    for logical, function in parts.functions.items():
        of = (("FunctionName", function),)
        yield Metric(f"invocations {logical}", "AWS/Lambda", "Invocations", of)
        yield Metric(f"duration {logical}", "AWS/Lambda", "Duration", of)
    for logical, queue in parts.queues.items():
        of = (("QueueName", queue),)
        yield Metric(f"sent {logical}", "AWS/SQS", "NumberOfMessagesSent", of)
        yield Metric(f"empty {logical}", "AWS/SQS", "NumberOfEmptyReceives", of)
    for logical, group in parts.logs.items():
        yield Metric(f"logs {logical}", "AWS/Logs", "IncomingBytes", (("LogGroupName", group),))
    for logical, table in parts.tables.items():
        in_it = (("TableName", table),)
        indexes = [(("GlobalSecondaryIndexName", index),) for index in _indexes(table)]
        for place, more in enumerate(((), *indexes)):
            for unit in ("Write", "Read"):
                metric = f"Consumed{unit}CapacityUnits"
                name = f"{unit.lower()} {logical} {place}"
                yield Metric(name, "AWS/DynamoDB", metric, (*in_it, *more))
    own = own_namespace(parts.stack)
    yield Metric("orders", own, "OrdersAccepted", (("service", "submission"),))
    for workflow in _workflows(own):
        of_it = (("service", "scheduler"), ("workflow", workflow))
        yield Metric(f"decisions {workflow}", own, "TaskDecisions", of_it)
        yield Metric(f"ended {workflow}", own, "TaskDecisions", of_it, "SampleCount")


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


def sums(metrics: Iterable[Metric], since: datetime, until: datetime) -> dict[str, float]:
    """Return the sum of each metric over a period, by `Metric.name`; zero sums are left out."""
    client: CloudWatchClient = boto3.client("cloudwatch")
    wanted = list(metrics)
    found: dict[str, float] = {}
    for first in range(0, len(wanted), AT_ONCE):
        some = wanted[first : first + AT_ONCE]
        pages = client.get_paginator("get_metric_data").paginate(
            MetricDataQueries=[_query(index, metric) for index, metric in enumerate(some)],
            StartTime=since,
            EndTime=until,
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                name = some[int(result["Id"].removeprefix("m"))].name
                total = sum(result.get("Values", []))
                if total:
                    found[name] = found.get(name, 0.0) + total
    return found


def _query(index: int, metric: Metric) -> "MetricDataQueryTypeDef":
    return {
        "Id": f"m{index}",
        "MetricStat": {
            "Metric": {
                "Namespace": metric.namespace,
                "MetricName": metric.metric,
                "Dimensions": [{"Name": name, "Value": value} for name, value in metric.dimensions],
            },
            "Period": HOUR,
            "Stat": metric.statistic,
        },
    }


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
