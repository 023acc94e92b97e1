"""Reads the stack's functions and their mappings from Lambda, and metrics from CloudWatch."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from roundsman.aws.outputs import LIVE
from roundsman_console.inspector.doctor.facts import (
    AccountConcurrencyFact,
    FunctionFact,
    MappingFact,
    QueueFact,
)
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef
    from mypy_boto3_lambda import LambdaClient

SUFFIX = "FunctionName"
LOOK_BACK = 15  # minutes
QUERIES = 500  # the maximum of GetMetricData


def find_functions(
    stack: DeployedStack, looking: Looking
) -> tuple[list[FunctionFact], list[MappingFact] | None]:
    """Return the functions that the stack's outputs name, and their event source mappings.

    The mappings are None if those of a function could not be read: a mapping that was not read must
    not count as missing.
    """
    client: LambdaClient = boto3.client("lambda")
    functions: list[FunctionFact] = []
    mappings: list[MappingFact] = []
    seen = True
    for output, physical in sorted(stack.outputs.items()):
        if not output.endswith(SUFFIX):
            continue
        name = output.removesuffix("Name")
        with looking.at(name):
            functions.append(_function(client, name, physical, looking))
        before = seen
        seen = False
        with looking.at(f"the mappings of {name}"):
            mappings += _mappings(client, physical)
            seen = before
    return functions, mappings if seen else None


def _function(client: "LambdaClient", name: str, physical: str, looking: Looking) -> FunctionFact:
    try:
        found = client.get_function_configuration(FunctionName=physical, Qualifier=LIVE)
    except ClientError as error:
        if error.response["Error"].get("Code") != "ResourceNotFoundException":
            raise
        return FunctionFact(
            name, physical, 0, "Failed", "Failed", "it or its alias live does not exist"
        )
    reserved = None
    with looking.at(f"the concurrency of {name}"):
        reserved = client.get_function_concurrency(FunctionName=physical).get(
            "ReservedConcurrentExecutions"
        )
    return FunctionFact(
        name,
        physical,
        timeout=int(found.get("Timeout", 3)),
        state=found.get("State", "Active"),
        update=found.get("LastUpdateStatus", "Successful"),
        reason=found.get("LastUpdateStatusReason", "") or found.get("StateReason", ""),
        reserved=reserved,
    )


def _mappings(client: "LambdaClient", physical: str) -> list[MappingFact]:
    # Lambda lists the mappings to an alias only where they are asked for by it.
    alias = f"{physical}:{LIVE}"
    pages = client.get_paginator("list_event_source_mappings").paginate(FunctionName=alias)
    return [
        MappingFact(
            one.get("UUID", ""),
            one.get("EventSourceArn", ""),
            physical,
            one.get("State", ""),
            one.get("ScalingConfig", {}).get("MaximumConcurrency"),
        )
        for page in pages
        for one in page["EventSourceMappings"]
    ]


def find_concurrency(looking: Looking) -> AccountConcurrencyFact | None:
    """Read Lambda's concurrency of the account; None if it could not be read."""
    client: LambdaClient = boto3.client("lambda")
    with looking.at("the account's concurrency"):
        found = client.get_account_settings()["AccountLimit"]
        limit = found["ConcurrentExecutions"]
        return AccountConcurrencyFact(limit, found.get("UnreservedConcurrentExecutions", limit))
    return None


def with_metrics(
    functions: Sequence[FunctionFact], queues: Sequence[QueueFact], now: int, looking: Looking
) -> tuple[list[FunctionFact], list[QueueFact]]:
    """Return the functions with `throttles` and the queues with `oldest`, read from CloudWatch.

    `now` is epoch ms. One request per 500 metrics; the age is not read for a queue without visible
    messages.
    """
    asked = [("AWS/Lambda", "Throttles", "Sum", "FunctionName", f.physical) for f in functions]
    asked += [
        ("AWS/SQS", "ApproximateAgeOfOldestMessage", "Maximum", "QueueName", _called(queue))
        for queue in queues
        if queue.waiting
    ]
    found: dict[tuple[str, str], float] = {}
    with looking.at("metrics"):
        found = _metrics(asked, now)
    return (
        [replace(f, throttles=int(found.get(("Throttles", f.physical), 0))) for f in functions],
        [
            replace(q, oldest=int(age)) if (age := found.get((_AGE, _called(q)))) else q
            for q in queues
        ],
    )


_AGE = "ApproximateAgeOfOldestMessage"


def _called(queue: QueueFact) -> str:
    return queue.url.rpartition("/")[2]


def _metrics(
    asked: Sequence[tuple[str, str, str, str, str]], now: int
) -> dict[tuple[str, str], float]:
    """Return the values by metric and dimension: the sum of LOOK_BACK, or the latest maximum."""
    client: CloudWatchClient = boto3.client("cloudwatch")
    end = datetime.fromtimestamp(now / 1000, tz=UTC)
    found: dict[tuple[str, str], float] = {}
    for first in range(0, len(asked), QUERIES):
        part = asked[first : first + QUERIES]
        queries: list[MetricDataQueryTypeDef] = [
            {
                "Id": f"q{place}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": namespace,
                        "MetricName": metric,
                        "Dimensions": [{"Name": dimension, "Value": value}],
                    },
                    "Period": 60,
                    "Stat": statistic,
                },
            }
            for place, (namespace, metric, statistic, dimension, value) in enumerate(part)
        ]
        answer = client.get_metric_data(
            MetricDataQueries=queries,
            StartTime=end - timedelta(minutes=LOOK_BACK),
            EndTime=end,
            ScanBy="TimestampDescending",
        )
        for one in answer["MetricDataResults"]:
            _, metric, statistic, _, value = part[int(one.get("Id", "q0")[1:])]
            values = one.get("Values") or [0]
            found[metric, value] = sum(values) if statistic == "Sum" else values[0]
    return found
