"""Reads how many messages the queues have that the scheduler reads."""

from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.aws.queue_urls import reply_queue_url
from roundsman.model.scheduler_queues import COMMANDS, QueueDepth

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class QueueDepths:
    """Reads the depths of the SchedulerQueue and of the agents' reply queues."""

    def __init__(self, sqs: "SQSClient", *, scheduler_queue: str) -> None:
        self._sqs = sqs
        self._scheduler_queue = scheduler_queue

    def depth_of(self, key: str) -> QueueDepth:
        """The depth of the queue whose read mark has this key.

        The numbers are approximate. Delayed messages are not counted. Raises TryAgain and
        CallRefused.
        """
        url = self._scheduler_queue
        if key != COMMANDS:
            url = reply_queue_url(url, key.partition("/")[0])
        with aws_errors("counting the messages of a queue"):
            found = self._sqs.get_queue_attributes(
                QueueUrl=url,
                AttributeNames=[
                    "ApproximateNumberOfMessages",
                    "ApproximateNumberOfMessagesNotVisible",
                ],
            )["Attributes"]
        return QueueDepth(
            visible=int(found.get("ApproximateNumberOfMessages", "0")),
            in_flight=int(found.get("ApproximateNumberOfMessagesNotVisible", "0")),
        )
