"""Hides messages whose handling AWS throttled for longer than the others that failed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.aws.observability import logger
from roundsman.aws.sqs.records import SqsRecord
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import SECOND

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import ChangeMessageVisibilityBatchRequestEntryTypeDef


@dataclass(frozen=True, slots=True)
class ThrottledMessages:
    """Lengthens the visibility of one function's messages."""

    sqs: "SQSClient"
    visibility: int
    """The visibility timeout of the function's queues, in ms."""
    jitter: Callable[[], float]
    """Draws a number from 0 to 1 for each message."""

    def hide(self, records: Sequence[SqsRecord], queue_url: str) -> None:
        """Hide those of the messages for longer that were throttled before.

        They are at most ten, of one queue. If this fails, they come again when the visibility
        timeout of their queue is over.
        """
        from roundsman.model.redelivery import hidden_for  # late: a start does not need it

        entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
            {
                "Id": str(number),
                "ReceiptHandle": record.receipt_handle,
                "VisibilityTimeout": hidden // SECOND,
            }
            for number, record in enumerate(records)
            if (hidden := hidden_for(self.visibility, record.receives, self.jitter())) is not None
        ]
        if not entries:
            return
        try:
            with aws_errors("hiding throttled messages for longer"):
                self.sqs.change_message_visibility_batch(QueueUrl=queue_url, Entries=entries)
        except (TryAgain, CallRefused) as problem:
            logger().warning("throttled messages come again soon", extra={"why": str(problem)})
