"""Reading how many messages a queue has."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

_ASKED: "Sequence[QueueAttributeNameType]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "RedrivePolicy",
)


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of messages in a queue: the approximate values of SQS, up to a minute old."""

    waiting: int
    in_flight: int
    """Messages that a function, or somebody who looks, has received and that are not deleted."""
    delayed: int = 0
    redrive_policy: str = ""
    """The attribute as SQS has it; empty for a queue without a dead-letter queue."""

    @property
    def has_dead_letter_queue(self) -> bool:
        """Whether messages that fail too often go to another queue."""
        return bool(self.redrive_policy)

    @property
    def all(self) -> int:
        """The number of messages that wait or are in flight."""
        return self.waiting + self.in_flight


def read_counts(sqs: "SQSClient", url: str) -> Counts:
    """Count the messages of a queue. Raises the errors of boto3."""
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_ASKED).get("Attributes", {})
    waiting, in_flight, delayed = (int(found.get(name, "0")) for name in _ASKED[:3])
    return Counts(waiting, in_flight, delayed, found.get("RedrivePolicy", ""))
