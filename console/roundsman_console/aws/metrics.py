"""Reads metrics from CloudWatch.

AWS charges 0.01 USD per thousand metrics that are read.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from roundsman.model.instants import SECOND
from roundsman_console.aws.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

AT_ONCE = 500
"""The largest number of metrics in one GetMetricData request."""


def own_metrics(stack: DeployedStack) -> str:
    """Return the namespace of the stack's own metrics."""
    return f"Roundsman/{stack.name}"


def metric_query(  # the parts of a metric
    namespace: str,
    name: str,
    metric: str,
    dimensions: Mapping[str, str],
    period: int,
    statistic: str = "Sum",
) -> "MetricDataQueryTypeDef":
    """A query of a metric by periods of `period` ms; `name` names its result."""
    return {
        "Id": name,
        "MetricStat": {
            "Metric": {
                "Namespace": namespace,
                "MetricName": metric,
                "Dimensions": [{"Name": key, "Value": value} for key, value in dimensions.items()],
            },
            "Period": period // SECOND,
            "Stat": statistic,
        },
    }


def read_metrics(
    stack: DeployedStack, queries: "Iterable[MetricDataQueryTypeDef]", start: int, end: int
) -> dict[str, list[tuple[int, float]]]:
    """Return the instants (epoch ms) and values of each metric that has any, the oldest first.

    It is one request for each AT_ONCE metrics.
    """
    found: dict[str, list[tuple[int, float]]] = {}
    wanted = [*queries]
    for first in range(0, len(wanted), AT_ONCE):
        pages = stack.cloudwatch.get_paginator("get_metric_data").paginate(
            MetricDataQueries=wanted[first : first + AT_ONCE],
            StartTime=_instant(start),
            EndTime=_instant(end),
        )
        for result in (one for page in pages for one in page["MetricDataResults"]):
            times = [round(one.timestamp() * SECOND) for one in result.get("Timestamps", [])]
            points = zip(times, result.get("Values", []), strict=True)
            found.setdefault(result["Id"], []).extend(points)
    return {name: sorted(points) for name, points in found.items() if points}


def _instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / SECOND, tz=UTC)
