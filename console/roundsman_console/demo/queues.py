"""Reads and empties queues from outside the stack."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


def drained(sqs: "SQSClient", url: str) -> Iterator[str]:
    """Receive and delete every message in a queue, and yield its body."""
    while messages := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            yield message["Body"]


def depth(sqs: "SQSClient", url: str) -> int:
    """Return the approximate number of messages in a queue: visible, in flight and delayed."""
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
    """Return the URL of every queue, and whether it is the dead-letter queue of another queue."""
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
