"""One invocation's SQS messages: each handled by itself, none taking its neighbours with it.

A message that can never be handled is put aside with its reason and acknowledged. One that may
succeed later is reported as failed and comes again. One that kills the whole process takes the
answer of its batch with it, so every message of that batch comes again; then each is deleted as
soon as it is handled, and the batch is walked forwards and backwards in turn. After two such
rounds everything before and behind the poison is done, and it goes to its dead-letter queue alone.

What failed its last delivery is put into its dead-letter queue here, with the reason, and then
acknowledged: `dead_letters`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord

from roundsman.aws.dead_letters import DeadLetters
from roundsman.aws.errors import aws_errors
from roundsman.aws.observability import count, logger, where
from roundsman.errors import CallRefused, InvalidMessage, TryAgain
from roundsman.ports import Outbox

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.batch.types import PartialItemFailureResponse
    from mypy_boto3_sqs import SQSClient


@dataclass(frozen=True, slots=True)
class Message:
    """One SQS message: its body, its id (kept by redeliveries), and the name of its queue.

    `redelivered` says that it was received before: what came of it then nobody knows.
    """

    body: str
    message_id: str
    queue: str
    redelivered: bool = False


def handle_batch(
    event: dict[str, object],
    *,
    handle: Callable[[Message], None],
    outbox: Outbox,
    sqs: "SQSClient",
    queue_url_beside: str,
    dead_letters: DeadLetters,
) -> "PartialItemFailureResponse":
    """Handle each message and answer which of them must come again.

    `handle` raises InvalidMessage for what can never be handled, anything else for what may be.
    `queue_url_beside` is the URL of any queue of the same account and region: the message's own
    queue URL follows from it and from the queue's name.
    """
    records = event.get("Records")
    entries = list(records) if isinstance(records, list) else []
    if not entries:
        logger().warning("an event without messages")
        return {"batchItemFailures": []}
    came_before = max((_receives(entry) for entry in entries), default=1)
    crashed = came_before > 1 and len(entries) > 1
    if crashed:
        entries.sort(key=lambda entry: str(entry.get("messageId")), reverse=came_before % 2 == 1)

    def handle_record(record: SQSRecord) -> None:
        message = _message(record)
        url = f"{queue_url_beside.rpartition('/')[0]}/{message.queue}"
        try:
            _handle_and_log(message, handle, outbox)
        except Exception as problem:
            if not dead_letters.take(record, url, problem):
                raise
        if crashed:
            _delete(sqs, url, record.receipt_handle, message)

    processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
    return process_partial_response(
        event={"Records": entries}, record_handler=handle_record, processor=processor
    )


def _handle_and_log(message: Message, handle: Callable[[Message], None], outbox: Outbox) -> None:
    try:
        _handle_or_reject(message, handle, outbox)
    except TryAgain as problem:
        logger().warning(
            "not handled; it comes again", extra={**_which(message), "why": str(problem)}
        )
        raise
    except Exception as problem:
        count("HandlerErrors")
        extra = {**_which(message), **where(problem)}
        logger().error("handler failed; the message comes again", extra=extra)
        raise


def _handle_or_reject(message: Message, handle: Callable[[Message], None], outbox: Outbox) -> None:
    try:
        handle(message)
    except InvalidMessage as problem:
        outbox.reject(message.queue, message.body, problem.problems)
        count("RejectedMessages")
        # How many and no more: what they say, and even the names of fields, quote the input.
        extra = {**_which(message), "problems": len(problem.problems)}
        logger().warning("message rejected", extra=extra)


def _delete(sqs: "SQSClient", url: str, receipt_handle: str, message: Message) -> None:
    """Where it fails, the batch's answer still acknowledges what was handled."""
    try:
        with aws_errors("deleting a message that was handled"):
            sqs.delete_message(QueueUrl=url, ReceiptHandle=receipt_handle)
    except (TryAgain, CallRefused) as problem:
        logger().warning("not deleted early", extra={**_which(message), "why": str(problem)})


def _which(message: Message) -> dict[str, str]:
    return {"queue": message.queue, "message_id": message.message_id}


def _message(record: SQSRecord) -> Message:
    queue = record.event_source_arn.rpartition(":")[2]
    return Message(record.body, record.message_id, queue, _receives(record.raw_event) > 1)


def _receives(entry: dict[str, dict[str, str]]) -> int:
    return int(entry.get("attributes", {}).get("ApproximateReceiveCount", "1"))
