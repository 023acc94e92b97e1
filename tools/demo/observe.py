"""Sends the orders to the deployed stack, and reads the facts of a run from outside it.

The facts are in its tables and queues, in the alerts that it sends, and at the remote services.
"""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

import boto3
import jmespath
from botocore.config import Config

from roundsman.aws.dynamodb.codec import read_order
from roundsman.aws.dynamodb.settled import is_row, read_divided
from roundsman.model.task import Task
from roundsman.ports import OrderRow
from roundsman_testing.remote_services import RemoteServices
from tools.demo.facts import (
    AlertSeen,
    DemoFacts,
    LedgerEffect,
    QueueDepth,
    SeenRejection,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_sqs import SQSClient

ALERT_QUEUE = "roundsman-demo-alerts"
CONFIG = Config(
    connect_timeout=5,
    read_timeout=30,  # seconds; the emulator shares the processor with the functions that it runs
    retries={"mode": "standard", "total_max_attempts": 3},
)


class Bench:
    """Sends orders to the deployed stack, and reads the stack and the remote services from outside.

    The environment variables select the AWS endpoint. The class scans whole tables, which is only
    suitable for a few orders on a separate emulator.
    """

    def __init__(self, outputs: Mapping[str, str], services: RemoteServices) -> None:
        self._outputs = outputs
        self._services = services
        self._dynamodb = boto3.client("dynamodb", config=CONFIG)
        self._sqs = boto3.client("sqs", config=CONFIG)
        self._alert_queue = self._subscribed_queue(outputs["AlertTopicArn"])
        self._alerts: list[AlertSeen] = []
        self._rejections: list[SeenRejection] = []
        self._queues: dict[str, bool] = {}
        self._first_rows: dict[str, OrderRow] = {}

    def _subscribed_queue(self, topic: str) -> str:
        """Create an operator's queue, subscribe it to the AlertTopic, and return its URL."""
        url = self._sqs.create_queue(QueueName=ALERT_QUEUE)["QueueUrl"]
        attributes = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])
        arn = attributes["Attributes"]["QueueArn"]
        policy = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Effect": "Allow",
                    "Principal": {"Service": "sns.amazonaws.com"},
                    "Action": "sqs:SendMessage",
                    "Resource": arn,
                    "Condition": {"ArnEquals": {"aws:SourceArn": topic}},
                }
            ],
        }
        self._sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(policy)})
        sns = boto3.client("sns", config=CONFIG)
        sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn)
        return url

    def send(self, body: str) -> None:
        """Send an order event to the SubmissionQueue, as an application does."""
        self._sqs.send_message(QueueUrl=self._outputs["SubmissionQueueUrl"], MessageBody=body)

    def remember_rows(self) -> None:
        """Store the current order rows, to check later that they did not change."""
        self._first_rows = self._rows()

    def tasks(self) -> dict[str, Task]:
        """Return all tasks in the table, by task ID."""
        items = list(self._items(self._outputs["TasksTableName"]))
        rows = {item["TaskId"]["S"]: item for item in items if is_row(item)}
        tasks = (read_divided(item, rows) for item in items if not is_row(item))
        return {task.task_id: task for task in tasks}

    def new_alerts(self) -> list[AlertSeen]:
        """Return the alerts that arrived since the last call."""
        found = [read_notification(text) for text in drained(self._sqs, self._alert_queue)]
        self._alerts += found
        return found

    def new_rejections(self) -> list[SeenRejection]:
        """Receive and delete all messages in the RejectedQueue, and return them."""
        found = [
            read_rejection(body) for body in drained(self._sqs, self._outputs["RejectedQueueUrl"])
        ]
        self._rejections += found
        return found

    @property
    def rejections(self) -> list[SeenRejection]:
        return list(self._rejections)

    def submissions_waiting(self) -> int:
        """Return the number of order events in the SubmissionQueue."""
        return depth(self._sqs, self._outputs["SubmissionQueueUrl"])

    def queues(self) -> list[QueueDepth]:
        """Return the depth of every queue."""
        if not self._queues:
            self._queues = all_queues(self._sqs)
        return [
            QueueDepth(url.rpartition("/")[2], depth(self._sqs, url), dead_letters)
            for url, dead_letters in self._queues.items()
        ]

    def hanging(self) -> int:
        """Return the number of calls that hang at the remote services."""
        return cast("int", self._services.application.faults()["hanging"])

    def facts(self) -> DemoFacts:
        """Read all facts as they are now."""
        self.new_alerts()
        self.new_rejections()
        effects = cast("list[Mapping[str, Any]]", self._services.application.effects())
        rules = cast("list[Mapping[str, int]]", self._services.application.faults()["counts"])
        return DemoFacts(
            tasks=self.tasks(),
            rows=self._rows(),
            first_rows=self._first_rows,
            rejections=tuple(self._rejections),
            alerts=tuple(self._alerts),
            effects=tuple(
                LedgerEffect(
                    key=effect["key"],
                    order_id=effect["orderId"],
                    service=effect["service"],
                    effects=effect["effects"],
                    calls=effect["calls"],
                    undone=effect["undone"],
                )
                for effect in effects
            ),
            queues=tuple(self.queues()),
            struck=tuple(rule["struck"] for rule in rules),
            hanging=self.hanging(),
        )

    def _rows(self) -> dict[str, OrderRow]:
        items = self._items(self._outputs["OrdersTableName"])
        return {row.order_id: row for row in map(read_order, items)}

    def _items(self, table: str) -> "Iterator[dict[str, Value]]":
        pages = self._dynamodb.get_paginator("scan")
        for page in pages.paginate(TableName=table, ConsistentRead=True):
            yield from page["Items"]


def read_rejection(text: str) -> SeenRejection:
    """Parse a message of the RejectedQueue; one in another format becomes the body as it is."""
    try:
        found = json.loads(text)
        problems = tuple((str(each["path"]), str(each["message"])) for each in found["problems"])
        return SeenRejection(body=str(found["body"]), problems=problems)
    except (ValueError, TypeError, KeyError):
        return SeenRejection(body=text, problems=())


def read_notification(text: str) -> AlertSeen:
    """Parse an SNS notification. One that is not about a task (an alarm) has no order ID."""
    envelope = _object(text)
    message = str(envelope.get("Message", ""))
    alert = _object(message)
    order_id = jmespath.search("samples[0].orderId", alert)
    # For a failure group, the last command is about one order.
    look = jmespath.search("do.look[-1] || do.look", alert)
    return AlertSeen(
        subject=str(envelope.get("Subject") or "(no subject)"),
        reason=str(alert.get("summary") or alert.get("NewStateReason") or message),
        order_id=str(order_id) if order_id else None,
        kind=str(alert.get("alert", "")),
        look=str(look or ""),
    )


def _object(text: str) -> Mapping[str, object]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


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
