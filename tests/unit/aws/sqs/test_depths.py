"""The depths of the queues that the scheduler reads, against moto."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from roundsman.aws.sqs.depths import QueueDepths
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.scheduler_queues import COMMANDS, QueueDepth

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


@dataclass
class Queues:
    """The SchedulerQueue and one reply queue of a stack."""

    sqs: "SQSClient"
    scheduler: str
    replies: str

    @property
    def depths(self) -> QueueDepths:
        return QueueDepths(self.sqs, scheduler_queue=self.scheduler)


@pytest.fixture
def queues() -> Iterator[Queues]:
    with mock_aws():
        sqs: SQSClient = boto3.client("sqs", region_name="eu-central-1")
        made = [
            sqs.create_queue(QueueName=name)["QueueUrl"]
            for name in ("orders-SchedulerQueue", "orders_CardPaymentReplyQueue")
        ]
        yield Queues(sqs, *made)


def test_each_key_is_counted_in_its_own_queue(queues: Queues) -> None:
    for url, messages in ((queues.scheduler, 1), (queues.replies, 2)):
        for _ in range(messages):
            queues.sqs.send_message(QueueUrl=url, MessageBody="{}")
    assert queues.depths.depth_of(COMMANDS) == QueueDepth(visible=1, in_flight=0)
    assert queues.depths.depth_of("card_payment/replies") == QueueDepth(visible=2, in_flight=0)


def test_an_empty_queue_is_empty(queues: Queues) -> None:
    assert queues.depths.depth_of(COMMANDS).empty


def test_a_message_that_was_received_is_in_flight(queues: Queues) -> None:
    for _ in range(2):
        queues.sqs.send_message(QueueUrl=queues.replies, MessageBody="{}")
    queues.sqs.receive_message(QueueUrl=queues.replies, MaxNumberOfMessages=1)
    found = queues.depths.depth_of("card_payment/replies")
    assert found == QueueDepth(visible=1, in_flight=1)
    assert not found.empty


def test_a_message_that_is_delayed_is_not_counted(queues: Queues) -> None:
    """Look-ahead puts one there for each task: it waits for its time, and not for the scheduler."""
    queues.sqs.send_message(QueueUrl=queues.scheduler, MessageBody="{}", DelaySeconds=60)
    assert queues.depths.depth_of(COMMANDS).empty


@pytest.mark.parametrize("left", [(), ("ApproximateNumberOfMessages",)])
def test_an_answer_that_was_cut_off_shows_no_empty_queue(
    queues: Queues, left: tuple[str, ...]
) -> None:
    def cut_off(parsed: dict[str, dict[str, str]], **_: object) -> None:
        numbers = parsed.pop("Attributes")
        if left:
            parsed["Attributes"] = {name: numbers[name] for name in left}

    queues.sqs.meta.events.register("after-call.sqs.GetQueueAttributes", cut_off)
    with pytest.raises(TryAgain, match="the answer lacks a number"):
        queues.depths.depth_of(COMMANDS)


def test_a_queue_that_is_missing_is_refused(queues: Queues) -> None:
    with pytest.raises(CallRefused, match="counting the messages of a queue"):
        queues.depths.depth_of("stranger/replies")
