"""Reads how many messages the queues have that the scheduler reads."""

from typing import TYPE_CHECKING, Final

from roundsman.aws.errors import aws_errors
from roundsman.aws.queue_urls import reply_queue_url
from roundsman.errors import TryAgain
from roundsman.model.scheduler_queues import COMMANDS, QueueDepth

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

VISIBLE: Final = "ApproximateNumberOfMessages"
IN_FLIGHT: Final = "ApproximateNumberOfMessagesNotVisible"


class QueueDepths:
    """Reads the depths of the SchedulerQueue and of the agents' reply queues."""

    def __init__(self, sqs: "SQSClient", *, scheduler_queue: str) -> None:
        self._sqs = sqs
        self._scheduler_queue = scheduler_queue

    def depth_of(self, key: str) -> QueueDepth:
        """The depth of the queue whose read mark has this key.

        The numbers are approximate. Delayed messages are not counted. Raises TryAgain and
        CallRefused. An answer that lacks a number is no answer: half of one, which botocore reads
        as an empty one, must not show an empty queue.
        """
        url = self._scheduler_queue
        if key != COMMANDS:
            url = reply_queue_url(url, key.partition("/")[0])
        with aws_errors("counting the messages of a queue"):
            answer = self._sqs.get_queue_attributes(
                QueueUrl=url, AttributeNames=[VISIBLE, IN_FLIGHT]
            )
        found = answer.get("Attributes", {})
        if VISIBLE not in found or IN_FLIGHT not in found:
            raise TryAgain("counting the messages of a queue: the answer lacks a number")
        return QueueDepth(visible=int(found[VISIBLE]), in_flight=int(found[IN_FLIGHT]))
