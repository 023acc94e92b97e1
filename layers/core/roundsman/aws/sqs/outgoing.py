"""Posts: messages on their way to a queue of SQS, as many in one request as it takes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.errors import CallRefused, TryAgain
from roundsman.wire.limits import MESSAGE_LIMIT

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        SendMessageBatchRequestEntryTypeDef,
        SendMessageRequestTypeDef,
    )

BATCH_ENTRIES = 10  # SQS's most in one SendMessageBatch; all their bodies share MESSAGE_LIMIT


@dataclass(frozen=True, slots=True)
class OutgoingMessage:
    """One message on its way: its text, the group it is in, and its delay in seconds, if any.

    `until` (epoch ms) is when nothing may be said any more: from then on it is not sent.
    `wanted_by` is by when it should have been sent, where it may wait for others.
    """

    body: str
    group: str | None = None
    delay: int | None = None
    until: int | None = None
    wanted_by: int | None = None


def send_messages(
    sqs: "SQSClient", url: str, posts: Sequence[OutgoingMessage]
) -> list[Exception | None]:
    """Send them to one queue; for each, in order, why it was not accepted, or None.

    That is TryAgain where it may be another time, and else CallRefused. None keeps another back:
    what a request of several did not take goes once more by itself, and that answer counts.
    """
    found: list[Exception | None] = []
    for batch in batches(posts):
        found += _send(sqs, url, batch)
    return found


def batches(posts: Sequence[OutgoingMessage]) -> Iterator[list[OutgoingMessage]]:
    """Split into what one SendMessageBatch takes, in order."""
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
    """TryAgain, where there is one: what may pass is worth another delivery."""
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
        # For one of them, it may be: a group that SQS does not take has all of them refused.
        return [_send_one(sqs, url, post) for post in batch]
    failed = {each["Id"] for each in answer.get("Failed", ())}
    return [_send_one(sqs, url, post) if str(n) in failed else None for n, post in enumerate(batch)]


def _send_one(sqs: "SQSClient", url: str, post: OutgoingMessage) -> Exception | None:
    """By SendMessage, which botocore tries again; what fails within a batch it does not."""
    asked: SendMessageRequestTypeDef = {"QueueUrl": url, "MessageBody": post.body}
    if post.group is not None:
        asked["MessageGroupId"] = post.group
    if post.delay is not None:
        asked["DelaySeconds"] = post.delay
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
    return entry
