"""What queues hold, seen and taken from outside."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def drained(sqs: "SQSClient", url: str) -> Iterator[str]:
    """The text of each message in a queue, which is deleted."""
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            yield message["Body"]


def depth(sqs: "SQSClient", url: str) -> int:
    """How many messages a queue holds, whether waiting, being read or delayed."""
    counts = sqs.get_queue_attributes(
        QueueUrl=url,
        AttributeNames=[
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
            "ApproximateNumberOfMessagesDelayed",
        ],
    )["Attributes"]
    return sum(map(int, counts.values()))


def all_queues(sqs: "SQSClient") -> dict[str, bool]:
    """Every queue's URL, and whether it is some queue's dead-letter queue."""
    urls = [
        url
        for page in sqs.get_paginator("list_queues").paginate()
        for url in page.get("QueueUrls", [])
    ]
    arns: dict[str, str] = {}
    targets: set[str] = set()
    for url in urls:
        found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn", "RedrivePolicy"])
        attributes = found["Attributes"]
        arns[url] = attributes["QueueArn"]
        if "RedrivePolicy" in attributes:
            targets.add(json.loads(attributes["RedrivePolicy"])["deadLetterTargetArn"])
    return {url: arns[url] in targets for url in urls}
