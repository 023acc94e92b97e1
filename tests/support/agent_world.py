"""An agent's function between its queues and its table, which are moto's."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, TypeAlias, cast

import boto3
import pytest
from moto import mock_aws

from roundsman import Agent, Step
from roundsman.aws.handlers.agent import AgentFunction, AlertingGuard
from roundsman.aws.observability import observed
from roundsman.aws.sqs.outbox import AwsOutbox
from roundsman.wire.messages import AgentRequest, Reply, read_reply

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_sqs import SQSClient

Aws: TypeAlias = "tuple[SQSClient, DynamoDBClient]"

NOW = 1_800_000_000_000
TABLE = "control"

ORDER = {
    "orderId": "ord-1",
    "customerId": "c-42",
    "currency": "EUR",
    "lines": [{"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"}],
    "paymentToken": "tok_visa",
    "shippingAddress": {
        "name": "A. Reader",
        "street": "1 Main St",
        "city": "Ghent",
        "postalCode": "9000",
        "country": "BE",
    },
    "total": "39.80",
}

greet = Step(name="greet", agent="greeter", complete_within=timedelta(seconds=30))


class Context:
    """A Lambda context with forty seconds left."""

    def get_remaining_time_in_millis(self) -> int:
        return 40_000


class Clock:
    """The present, moved by hand."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now

    def sleep(self, milliseconds: int) -> None:
        self.now += milliseconds


@dataclass
class Notes:
    """What was noted as read; fails where a test sets it."""

    found: list[tuple[str, str, int]] = field(default_factory=list)
    error: Exception | None = None

    def note_read(self, agent: str, priority: str, sent_at: int, lock: str | None = None) -> None:
        if self.error:
            raise self.error
        self.found.append((agent, priority, sent_at))


@dataclass
class World:
    """One agent's function between its queues."""

    sqs: "SQSClient"
    dynamodb: "DynamoDBClient"
    reply_url: str
    rejected_url: str
    agent: Agent
    clock: Clock = field(default_factory=Clock)
    notes: Notes = field(default_factory=Notes)
    guard: AlertingGuard | None = None

    def function(self) -> AgentFunction:
        outbox = AwsOutbox(
            self.sqs, scheduler_queue="", reply_prefix="", rejected_queue=self.rejected_url
        )
        return AgentFunction(
            self.agent,
            self.sqs,
            self.reply_url,
            outbox,
            self.notes,
            self.guard,
            self.clock,
            self.clock.sleep,
        )

    def handle(
        self, *bodies: str, queue: str = "s-GreeterRequestQueue", receives: int = 1
    ) -> list[str]:
        """Hand it one batch; the ids of the messages that must come again."""
        handle = observed(self.function().handle)
        return failed(handle(event(*bodies, queue=queue, receives=receives), 40_000))

    def replies(self) -> list[Reply]:
        return [read_reply(body) for body in received(self.sqs, self.reply_url)]

    def rejected(self) -> list[dict[str, object]]:
        return [json.loads(body) for body in received(self.sqs, self.rejected_url)]


@contextmanager
def made_aws() -> Iterator[Aws]:
    """The clients, to be made once: that takes longer than a test."""
    with mock_aws():
        yield boto3.client("sqs"), boto3.client("dynamodb")


@contextmanager
def made_world(aws: Aws, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """An agent's function with fresh queues, and the environment that the template gives it."""
    sqs, dynamodb = aws
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "ControlId", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "ControlId", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    reply_url = sqs.create_queue(QueueName="s-GreeterReplyQueue")["QueueUrl"]
    rejected_url = sqs.create_queue(QueueName="s-RejectedQueue")["QueueUrl"]
    monkeypatch.setenv("CONTROL_TABLE", TABLE)
    monkeypatch.setenv("REPLY_QUEUE_URL", reply_url)
    monkeypatch.setenv("REJECTED_QUEUE_URL", rejected_url)
    monkeypatch.setenv("ALERT_TOPIC_ARN", "arn:aws:sns:us-east-1:123456789012:alerts")
    monkeypatch.setenv("BREAKER_FAILURES", "5")
    monkeypatch.setenv("BREAKER_RECOVERY_SECONDS", "30")
    monkeypatch.setenv("POWERTOOLS_SERVICE_NAME", "greeter")
    monkeypatch.setenv("POWERTOOLS_LOG_LEVEL", "DEBUG")
    yield World(sqs, dynamodb, reply_url, rejected_url, Agent("greeter"))
    sqs.delete_queue(QueueUrl=reply_url)
    sqs.delete_queue(QueueUrl=rejected_url)
    if TABLE in dynamodb.list_tables()["TableNames"]:
        dynamodb.delete_table(TableName=TABLE)


def request(**changes: object) -> str:
    fields: dict[str, object] = {
        "task_id": "ord-1",
        "workflow": "order_fulfilment",
        "step": "greet",
        "operation": "perform",
        "lock": "7f3a-0c1d.2",
        "idempotency_key": "ord-1/greet/perform",
        "attempt": 2,
        "complete_by": NOW + 30_000,
        "input": ORDER,
        "results": {},
        "sent_at": NOW - 250,
    }
    return AgentRequest(**{**fields, **changes}).body()  # type: ignore[arg-type]  # as meant


def event(
    *bodies: str, queue: str = "s-GreeterRequestQueue", receives: int = 1
) -> dict[str, object]:
    return {
        "Records": [
            {
                "messageId": f"m{number}",
                "receiptHandle": f"r{number}",
                "body": body,
                "attributes": {"ApproximateReceiveCount": str(receives)},
                "messageAttributes": {},
                "eventSource": "aws:sqs",
                "eventSourceARN": f"arn:aws:sqs:us-east-1:123456789012:{queue}",
                "awsRegion": "us-east-1",
            }
            for number, body in enumerate(bodies)
        ]
    }


def failed(answer: dict[str, object]) -> list[str]:
    failures = cast("list[dict[str, str]]", answer["batchItemFailures"])
    return [failure["itemIdentifier"] for failure in failures]


def received(sqs: "SQSClient", url: str) -> list[str]:
    found = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0)
    return [message["Body"] for message in found.get("Messages", [])]


def written(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [line for line in written(capsys) if "message" in line]
