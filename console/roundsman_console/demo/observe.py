"""Reads the facts of a run from the stack's tables and queues and from the remote services."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from roundsman.aws.dynamodb.codec import read_order, read_task
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.ports import OrderRow
from roundsman.testing.remote_services import RemoteServices
from roundsman_console.demo.alerts import AlertInbox
from roundsman_console.demo.facts import (
    AlertSeen,
    DemoFacts,
    LedgerEffect,
    QueueDepth,
    SeenRejection,
)
from roundsman_console.demo.queues import all_queues, depth, drained

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

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
        self._inbox = AlertInbox(self._sqs, boto3.client("sns", config=CONFIG))
        self._inbox.subscribe(outputs["AlertTopicArn"])
        self._alerts: list[AlertSeen] = []
        self._rejections: list[SeenRejection] = []
        self._queues: dict[str, bool] = {}
        self._first_rows: dict[str, OrderRow] = {}

    def send(self, body: str) -> None:
        """Send an order event to the SubmissionQueue, as an application does."""
        self._sqs.send_message(QueueUrl=self._outputs["SubmissionQueueUrl"], MessageBody=body)

    def remember_rows(self) -> None:
        """Store the current order rows, to check later that they did not change."""
        self._first_rows = self._rows()

    def tasks(self) -> dict[str, Task]:
        """Return all tasks in the table, by task ID."""
        items = self._items(self._outputs["TasksTableName"])
        return {task.task_id: task for task in map(read_task, items)}

    def new_alerts(self) -> list[AlertSeen]:
        """Return the alerts that arrived since the last call."""
        found = self._inbox.take()
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
        found = self._services.application.faults()["hanging"]
        return found if isinstance(found, int) else 0

    def facts(self) -> DemoFacts:
        """Read all facts as they are now."""
        self.new_alerts()
        self.new_rejections()
        application = self._services.application
        return DemoFacts(
            tasks=self.tasks(),
            rows=self._rows(),
            first_rows=self._first_rows,
            rejections=tuple(self._rejections),
            alerts=tuple(self._alerts),
            effects=tuple(_effect(found) for found in application.effects()),
            queues=tuple(self.queues()),
            struck=tuple(_struck(application.faults()["counts"])),
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


def _effect(found: Json) -> LedgerEffect:
    if not isinstance(found, Mapping):
        raise TypeError("the ledger's entries are objects")
    effects, calls = found["effects"], found["calls"]
    return LedgerEffect(
        key=str(found["key"]),
        order_id=str(found["orderId"]),
        service=str(found["service"]),
        effects=effects if isinstance(effects, int) else 0,
        calls=calls if isinstance(calls, int) else 0,
        undone=found.get("undone") is True,
    )


def _struck(counts: Json) -> Iterator[int]:
    for each in counts if isinstance(counts, list) else []:
        struck = each.get("struck") if isinstance(each, Mapping) else None
        yield struck if isinstance(struck, int) else 0
