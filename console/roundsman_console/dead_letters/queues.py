"""The queues that functions read, each with its dead-letter queue, found in the stack's outputs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING

from roundsman.aws.sqs.dead_letters import RedrivePolicy, read_redrive_policy
from roundsman_console.cli_errors import NOT_FOUND, ConsoleError
from roundsman_console.read.stack import DeployedStack
from roundsman_console.sanitize import inert

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.literals import QueueAttributeNameType

_WORDS = re.compile(r"(?<!^)(?=[A-Z])")
_ASKED: "Sequence[QueueAttributeNameType]" = (
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "RedrivePolicy",
)


class MessageKind(StrEnum):
    """What the messages of a queue are."""

    ORDER = "order"
    COMMAND = "command"
    REPLY = "reply"
    REQUEST = "request"


@dataclass(frozen=True, slots=True)
class Counts:
    """How many messages a queue holds, as SQS knows it: about, and up to a minute late.

    `hidden` ones are being handled, or looked at by somebody else.
    """

    visible: int
    hidden: int

    @property
    def all(self) -> int:
        """Both together."""
        return self.visible + self.hidden


@dataclass(frozen=True)
class Source:
    """One queue that a function reads, under the name that the template gives it."""

    name: str
    url: str
    sqs: "SQSClient"

    @property
    def kind(self) -> MessageKind:
        """What its messages are, by the template's names."""
        if self.name == "SubmissionQueue":
            return MessageKind.ORDER
        if self.name.endswith("RequestQueue"):
            return MessageKind.REQUEST
        return MessageKind.REPLY if self.name.endswith("ReplyQueue") else MessageKind.COMMAND

    @property
    def function(self) -> str:
        """The name of the function that reads it, as its log knows it."""
        match self.kind:
            case MessageKind.ORDER:
                return "submission"
            case MessageKind.REQUEST:
                agent = self.name.removesuffix("RequestQueue").removesuffix("Urgent")
                return _WORDS.sub("_", agent).lower()
            case _:
                return "scheduler"

    @property
    def physical(self) -> str:
        """Its name in SQS."""
        return self.url.rpartition("/")[2]

    @cached_property
    def policy(self) -> RedrivePolicy:
        """How often it delivers a message, and where the dead ones go."""
        found = self.sqs.get_queue_attributes(QueueUrl=self.url, AttributeNames=["RedrivePolicy"])
        return read_redrive_policy(found.get("Attributes", {}).get("RedrivePolicy"), self.url)

    @property
    def dead_url(self) -> str:
        """Where its dead letters go. Raises ConsoleError where they go nowhere."""
        if self.policy.url is None:
            raise ConsoleError(f"{self.name} has no dead-letter queue.")
        return self.policy.url


def counts(sqs: "SQSClient", url: str) -> Counts:
    """How many messages a queue holds that may be looked into.

    Raises ConsoleError for one with a redrive policy: to look at its messages would use up their
    receives, and move them in the end.
    """
    found = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=_ASKED).get("Attributes", {})
    if "RedrivePolicy" in found:
        name = url.rpartition("/")[2]
        raise ConsoleError(
            f"{name} has a dead-letter queue of its own, so to look into it would move messages "
            "there: it is not looked into."
        )
    return Counts(
        visible=int(found.get("ApproximateNumberOfMessages", "0")),
        hidden=int(found.get("ApproximateNumberOfMessagesNotVisible", "0")),
    )


def sources(stack: DeployedStack) -> list[Source]:
    """The queues that functions read: orders, commands, then each agent's."""
    first = ("SubmissionQueue", "SchedulerQueue")
    found = {
        name: Source(name, url, stack.sqs)
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
    """The queue of that name: the template's, SQS's, or that of its dead-letter queue."""
    wanted = asked.lower().replace("deadletterqueue", "queue")
    for source in sources(stack):
        short = source.name.removesuffix("Queue").lower()
        if wanted in (source.name.lower(), short, source.physical.lower()):
            return source
    return None


def find_source(stack: DeployedStack, asked: str) -> Source:
    """The same. Raises ConsoleError where there is none, with those that there are."""
    found = named_source(stack, asked)
    if found is None:
        names = ", ".join(source.name for source in sources(stack))
        raise ConsoleError(
            f"There is no queue {inert(asked[:80])!r} in {stack.name}; there are: {names}.",
            NOT_FOUND,
        )
    return found
