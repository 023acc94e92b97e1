"""Sends messages to an SQS queue, as many in one request as SQS accepts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.errors import CallRefused, TryAgain
from roundsman.wire.limits import MESSAGE_LIMIT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import MessageSystemAttributeNameForSendsType
    from mypy_boto3_sqs.type_defs import (
        MessageSystemAttributeValueTypeDef,
        SendMessageBatchRequestEntryTypeDef,
        SendMessageRequestTypeDef,
    )

BATCH_ENTRIES = 10  # the limit of SendMessageBatch; all its bodies share MESSAGE_LIMIT


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One message to send to a queue."""

    body: str
    group: str | None = None
    """The message group id; None for no group."""
    delay: int | None = None
    """Seconds; None for the queue's own delay."""
    until: int | None = None
    """The message must not be sent at or after this instant (epoch ms); None for no limit."""
    wanted_by: int | None = None
    """The instant (epoch ms) by which a buffered message should be sent; None for no limit."""
    trace: str | None = None
    """The trace header; None if the message's order is not traced."""


def send_messages(
    sqs: "SQSClient", url: str, posts: Sequence[OutgoingMessage]
) -> list[Exception | None]:
    """Send the messages to one queue, and return one outcome per message, in their order.

    An outcome is None if SQS accepted the message, TryAgain if it may accept it another time, or
    else CallRefused. One message does not prevent another: if SQS refuses a batch, or some of its
    messages, each refused message is sent once more by itself, and that outcome counts.
    """
    found: list[Exception | None] = []
    for batch in batches(posts):
        found += _send(sqs, url, batch)
    return found


def batches(posts: Sequence[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    """Split the messages, in their order, into batches that fit one SendMessageBatch."""
    batch: list[OutgoingMessage] = []
    size = 0
    for post in posts:
        length = len(post.body.encode())
        if batch and (len(batch) == BATCH_ENTRIES or size + length > MESSAGE_LIMIT):
            yield batch
            batch, size = [], 0
        batch.append(post)
        size += length
    if batch:
        yield batch


def raise_most_retryable(failures: Sequence[Exception]) -> None:
    """Raise one of the failures, if any: a TryAgain first, because a redelivery may then help."""
    if failures:
        raise min(failures, key=lambda failure: not isinstance(failure, TryAgain))


def name_of(url: str) -> str:
    """The name of the queue at a URL."""
    return url.rpartition("/")[2]


def _send(sqs: "SQSClient", url: str, batch: Sequence[OutgoingMessage]) -> list[Exception | None]:
    if len(batch) == 1:
        return [_send_one(sqs, url, batch[0])]
    try:
        with aws_errors(f"sending {len(batch)} messages to {name_of(url)}"):
            answer = sqs.send_message_batch(
                QueueUrl=url, Entries=[_entry(str(n), post) for n, post in enumerate(batch)]
            )
    except TryAgain as failure:
        return [failure] * len(batch)
    except CallRefused:
        # One message may be the cause: SQS refuses the whole batch for one invalid group id.
        return [_send_one(sqs, url, post) for post in batch]
    sent = {each["Id"] for each in answer.get("Successful", ())}
    return [None if str(n) in sent else _send_one(sqs, url, post) for n, post in enumerate(batch)]


def _send_one(sqs: "SQSClient", url: str, post: OutgoingMessage) -> Exception | None:
    """Use SendMessage, which botocore retries; it does not retry failed entries of a batch."""
    asked: SendMessageRequestTypeDef = {"QueueUrl": url, "MessageBody": post.body}
    if post.group is not None:
        asked["MessageGroupId"] = post.group
    if post.delay is not None:
        asked["DelaySeconds"] = post.delay
    if post.trace is not None:
        asked["MessageSystemAttributes"] = trace_attribute(post.trace)
    try:
        with aws_errors(f"sending a message to {name_of(url)}"):
            sqs.send_message(**asked)
    except (TryAgain, CallRefused) as failure:
        return failure
    return None


def _entry(name: str, post: OutgoingMessage) -> "SendMessageBatchRequestEntryTypeDef":
    entry: SendMessageBatchRequestEntryTypeDef = {"Id": name, "MessageBody": post.body}
    if post.group is not None:
        entry["MessageGroupId"] = post.group
    if post.delay is not None:
        entry["DelaySeconds"] = post.delay
    if post.trace is not None:
        entry["MessageSystemAttributes"] = trace_attribute(post.trace)
    return entry


def trace_attribute(
    header: str,
) -> "dict[MessageSystemAttributeNameForSendsType, MessageSystemAttributeValueTypeDef]":
    """The message system attribute of a trace header. SQS does not count it in a message's size."""
    return {"AWSTraceHeader": {"DataType": "String", "StringValue": header}}
