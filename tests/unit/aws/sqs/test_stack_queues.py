"""The queues of a stack are found by name and counted with their dead letters, against moto."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from roundsman.aws.sqs.stack_queues import SqsStackQueues
from roundsman.errors import CallRefused
from roundsman.model.stack_faults import QueueLook

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

LETTERS = "shop-Payment-1A2B-RequestDeadLetterQueue-3C4D"


def made(sqs: "SQSClient", name: str, letters: str | None = None) -> str:
    """The URL of a new queue."""
    policy = {"deadLetterTargetArn": f"arn:aws:sqs:eu-central-1:123456789012:{letters}"}
    attributes = {"RedrivePolicy": json.dumps({**policy, "maxReceiveCount": 5})} if letters else {}
    return sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]  # type: ignore[arg-type]  # a mapping of names


@pytest.fixture
def sqs() -> Iterator["SQSClient"]:
    with mock_aws():
        yield boto3.client("sqs", region_name="eu-central-1")


@pytest.fixture
def queues(sqs: "SQSClient") -> SqsStackQueues:
    made(sqs, LETTERS)
    made(sqs, "shop_PaymentRequestQueue", LETTERS)
    made(sqs, "shop_PaymentUrgentRequestQueue", LETTERS)
    made(sqs, "shop_PaymentReplyDeadLetterQueue")
    made(sqs, "shop_PaymentReplyQueue", "shop_PaymentReplyDeadLetterQueue")
    made(sqs, "shop-RejectedQueue")
    made(sqs, "shop-two_PaymentRequestQueue")
    return SqsStackQueues(sqs, scheduler_queue=made(sqs, "shop-SchedulerQueue"))


def test_the_queues_of_the_agents_are_those_of_this_stack_alone(queues: SqsStackQueues) -> None:
    assert queues.of_agents() == [
        "PaymentReplyQueue",
        "PaymentRequestQueue",
        "PaymentUrgentRequestQueue",
    ]


def test_a_queue_is_counted_with_its_hidden_and_delayed_messages_and_its_dead_letters(
    sqs: "SQSClient", queues: SqsStackQueues
) -> None:
    url = sqs.get_queue_url(QueueName="shop_PaymentRequestQueue")["QueueUrl"]
    for delay in (0, 0, 60):
        sqs.send_message(QueueUrl=url, MessageBody="{}", DelaySeconds=delay)
    sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=1)
    letters = sqs.get_queue_url(QueueName=LETTERS)["QueueUrl"]
    for _ in range(2):
        sqs.send_message(QueueUrl=letters, MessageBody="{}")
    sqs.receive_message(QueueUrl=letters, MaxNumberOfMessages=1)  # somebody looks at one
    found = queues.look("PaymentRequestQueue")
    assert found == QueueLook("PaymentRequestQueue", visible=1, hidden=2, dead=2)


def test_a_queue_of_the_engine_is_found_by_its_name(
    sqs: "SQSClient", queues: SqsStackQueues
) -> None:
    url = sqs.get_queue_url(QueueName="shop-RejectedQueue")["QueueUrl"]
    sqs.send_message(QueueUrl=url, MessageBody="{}")
    assert queues.look("RejectedQueue") == QueueLook("RejectedQueue", visible=1, hidden=0)


def test_a_queue_that_is_missing_is_refused(queues: SqsStackQueues) -> None:
    with pytest.raises(CallRefused, match="counting the messages of a queue"):
        queues.look("MailRequestQueue")
