"""Counts the messages of every queue of the stack, with those of its dead-letter queue."""

from typing import TYPE_CHECKING

from roundsman.aws.errors import aws_errors
from roundsman.aws.queue_urls import SCHEDULER_QUEUE
from roundsman.aws.sqs.dead_letters import read_redrive_policy
from roundsman.model.stack_faults import QueueLook

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

READ: "tuple[QueueAttributeNameType, ...]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "RedrivePolicy",
)
OF_AGENTS = ("RequestQueue", "ReplyQueue")
"""How the names of the queues of agents end, the urgent ones too."""


class SqsStackQueues:
    """StackQueues, found by their names: `shop-SchedulerQueue`, `shop_PaymentRequestQueue`."""

    def __init__(self, sqs: "SQSClient", *, scheduler_queue: str) -> None:
        self._sqs = sqs
        self._addresses, _, scheduler = scheduler_queue.rpartition("/")
        self._stack = scheduler.removesuffix(SCHEDULER_QUEUE)

    def of_agents(self) -> list[str]:
        """The names of the agents' queues for requests and replies, at most a thousand.

        Raises TryAgain and CallRefused.
        """
        prefix = f"{self._stack}_"
        with aws_errors("listing the queues of the agents"):
            found = self._sqs.list_queues(QueueNamePrefix=prefix, MaxResults=1000)
        names = (url.rpartition("/")[2] for url in found.get("QueueUrls", []))
        return sorted(name.removeprefix(prefix) for name in names if name.endswith(OF_AGENTS))

    def look(self, name: str) -> QueueLook:
        """Count the messages of a queue and of its dead-letter queue.

        Raises TryAgain and CallRefused.
        """
        between = "_" if name.endswith(OF_AGENTS) else "-"
        url = f"{self._addresses}/{self._stack}{between}{name}"
        visible, hidden, policy = self._counted(url)
        letters = read_redrive_policy(policy, url).url
        dead = 0
        if letters is not None:
            there, out_of_sight, _ = self._counted(letters)
            dead = there + out_of_sight
        return QueueLook(name, visible, hidden, dead)

    def _counted(self, url: str) -> tuple[int, int, str | None]:
        with aws_errors("counting the messages of a queue"):
            found = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=READ)["Attributes"]
        hidden = (
            found.get("ApproximateNumberOfMessagesNotVisible", "0"),
            found.get("ApproximateNumberOfMessagesDelayed", "0"),
        )
        visible = found.get("ApproximateNumberOfMessages", "0")
        return int(visible), sum(map(int, hidden)), found.get("RedrivePolicy")
