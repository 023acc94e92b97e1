"""Finds the queues that functions read, and their dead-letter queues, in the stack's outputs."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from roundsman.aws.sqs.dead_letters import RedrivePolicy, read_redrive_policy
from roundsman_console.aws.queues import Counts, read_counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError, NotFound
from roundsman_console.base.sanitize import inert
from roundsman_console.facts.agent.reading import agent_of_queue

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient


class MessageKind(StrEnum):
    """The kind of the messages of a queue."""

    ORDER = "order"
    COMMAND = "command"
    REPLY = "reply"
    REQUEST = "request"


@dataclass(frozen=True)
class Source:
    """A queue that a function reads."""

    name: str
    """The name of the queue in the template: `SchedulerQueue`."""
    url: str
    sqs: "SQSClient"
    policies: "dict[str, RedrivePolicy]" = field(default_factory=dict, repr=False, compare=False)
    """The redrive policies of the stack that were read until now, by the URL of the queue."""

    @property
    def kind(self) -> MessageKind:
        """The kind of the queue's messages, which follows from its name in the template."""
        if self.name == "SubmissionQueue":
            return MessageKind.ORDER
        if self.name.endswith("RequestQueue"):
            return MessageKind.REQUEST
        return MessageKind.REPLY if self.name.endswith("ReplyQueue") else MessageKind.COMMAND

    @property
    def function(self) -> str:
        """The name of the function that reads the queue, as in the name of its log group."""
        if self.kind is MessageKind.ORDER:
            return "submission"
        return agent_of_queue(self.name) or "scheduler"

    @property
    def physical(self) -> str:
        """The name of the queue in SQS."""
        return self.url.rpartition("/")[2]

    @property
    def policy(self) -> RedrivePolicy:
        """The queue's redrive policy, read once: only a deployment changes it."""
        if self.url not in self.policies:
            found = self.sqs.get_queue_attributes(
                QueueUrl=self.url, AttributeNames=["RedrivePolicy"]
            ).get("Attributes", {})
            self.policies[self.url] = read_redrive_policy(found.get("RedrivePolicy"), self.url)
        return self.policies[self.url]

    @property
    def dead_url(self) -> str:
        """The URL of the dead-letter queue. Raises InspectorError if the queue has none."""
        if self.policy.url is None:
            raise InspectorError(f"{self.name} has no dead-letter queue.")
        return self.policy.url


def counts(sqs: "SQSClient", url: str) -> Counts:
    """Count the messages of a queue that a `QueuePeek` may read.

    Raises InspectorError for a queue with a redrive policy: each look increases the receive count,
    and at `maxReceiveCount` SQS would move the messages to the dead-letter queue.
    """
    found = read_counts(sqs, url)
    if found.has_dead_letter_queue:
        name = url.rpartition("/")[2]
        raise InspectorError(
            f"{name} has its own dead-letter queue, and reading it would move messages there. "
            "It was not read."
        )
    return found


def sources(stack: DeployedStack) -> list[Source]:
    """Return the queues that functions read: SubmissionQueue, SchedulerQueue, the rest by name."""
    first = ("SubmissionQueue", "SchedulerQueue")
    found = {
        name: Source(name, url, stack.sqs, stack.redrive_policies)
        for name, url in (
            (output.removesuffix("Url"), value)
            for output, value in stack.outputs.items()
            if output.endswith("QueueUrl")
        )
        if name != "RejectedQueue"
    }
    rest = sorted(name for name in found if name not in first)
    return [found[name] for name in (*first, *rest) if name in found]


def named_source(stack: DeployedStack, asked: str) -> Source | None:
    """Return the queue with the name `asked`; None if there is none.

    The name is that in the template (with or without `Queue`), that in SQS, or that of the
    dead-letter queue. Upper and lower case are the same.
    """
    wanted = asked.lower().replace("deadletterqueue", "queue")
    for source in sources(stack):
        short = source.name.removesuffix("Queue").lower()
        if wanted in (source.name.lower(), short, source.physical.lower()):
            return source
    return None


def find_source(stack: DeployedStack, asked: str) -> Source:
    """Return the queue as `named_source` does.

    Raises NotFound if there is none; the error lists the names that exist.
    """
    found = named_source(stack, asked)
    if found is None:
        names = ", ".join(source.name for source in sources(stack))
        raise NotFound(
            f"No queue {inert(asked[:80])!r} in {stack.name}. The queues are {names}.",
        )
    return found
