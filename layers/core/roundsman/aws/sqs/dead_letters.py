"""Sends a message that failed its last delivery to the dead-letter queue, with the reason.

SQS moves a message that was received too often to the dead-letter queue by itself, without a
reason. So the function in which the last delivery fails sends the message there first, and then
reports it as handled, so that Lambda deletes it. If anything fails on the way, SQS still moves it.
If the function dies between the two steps, both happen: the message id of the second dead letter
is then the one that the first names (`DeadLetter.message_id`).

The queue's redrive policy defines which delivery is the last. The function reads it from SQS,
because a setting could differ from what SQS does; a function has that permission anyway.

The queues of an order's progress have a policy of three hours, because a table that is throttled,
or a deployment that fails, proves nothing about a message. Their functions give up a message sooner
(`DeadLetters.gives_up_after`), but only at a failure of its own: any exception except TryAgain and
CallRefused. SQS counts deliveries and not failures, so that a message which was throttled before is
given up at its first failure of its own.
"""

import base64
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roundsman.aws.clock import now
from roundsman.aws.errors import aws_errors
from roundsman.aws.observability import count, logger, where
from roundsman.aws.sqs.records import SqsRecord
from roundsman.errors import CallRefused, InvalidMessage, RoundsmanError, TryAgain
from roundsman.model.instants import SECOND
from roundsman.ports import Clock
from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter
from roundsman.wire.limits import wire_text

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import MessageAttributeValueTypeDef

FEWEST_RECEIVES = 2  # the template allows no less, so a first failure reads no policy
POLICY_KNOWN_FOR = 60 * SECOND  # ms; one read a minute, even if many messages fail


@dataclass(frozen=True, slots=True)
class RedrivePolicy:
    """A queue's redrive policy: when and where SQS moves a message that keeps failing."""

    url: str | None
    """The URL of the dead-letter queue; None if SQS never moves a message."""
    most_receives: int = 0
    """Deliveries after which SQS moves the message (`maxReceiveCount`)."""


@dataclass
class DeadLetters:
    """Sends one function's messages to their dead-letter queues. `clock` is in epoch ms."""

    sqs: "SQSClient"
    clock: Clock = now
    env: Mapping[str, str] = field(default_factory=lambda: os.environ)
    gives_up_after: int | None = None
    """Deliveries after which a message is given up that failed for a reason of its own; None for
    the deliveries after which SQS moves it."""
    _policies: dict[str, tuple[int, RedrivePolicy]] = field(default_factory=dict)

    def take(self, record: SqsRecord, queue_url: str, error: Exception) -> bool:
        """Send the message to its dead-letter queue if this was its last delivery.

        Returns False if the message stays in its queue: it will be redelivered, or a call to AWS
        failed here. Such a failure is logged, and SQS then moves the message.
        """
        receives = record.receives
        if receives < FEWEST_RECEIVES:
            return False
        which = {"queue": queue_url.rpartition("/")[2], "message_id": record.message_id}
        try:
            policy = self._policy(queue_url)
            if policy.url is None or receives < self._most_receives(policy, error):
                return False
            self._send(policy.url, record, self._letter(record, receives, error))
        except (TryAgain, CallRefused) as problem:
            extra = {**which, "why": str(problem)}
            logger().warning("dead letter not sent; SQS moves it without a reason", extra=extra)
            return False
        count("DeadLetters")
        logger().error("message sent to the dead-letter queue", extra=which)
        return True

    def _most_receives(self, policy: RedrivePolicy, error: Exception) -> int:
        if self.gives_up_after is None or isinstance(error, TryAgain | CallRefused):
            return policy.most_receives
        return min(self.gives_up_after, policy.most_receives)

    def _policy(self, queue_url: str) -> RedrivePolicy:
        known = self._policies.get(queue_url)
        if known is not None and self.clock() < known[0]:
            return known[1]
        with aws_errors("reading the redrive policy of a queue"):
            found = self.sqs.get_queue_attributes(
                QueueUrl=queue_url, AttributeNames=["RedrivePolicy"]
            )
        policy = read_redrive_policy(found.get("Attributes", {}).get("RedrivePolicy"), queue_url)
        self._policies[queue_url] = (self.clock() + POLICY_KNOWN_FOR, policy)
        return policy

    def _letter(self, record: SqsRecord, receives: int, error: Exception) -> DeadLetter:
        place = where(error)
        return DeadLetter(
            queue=record.queue,
            message_id=record.message_id,
            reason=reason_of(error),
            error_type=str(place["error_type"]),
            error_at=tuple(place["error_at"]),
            receives=receives,
            sent_at=record.number("SentTimestamp", 0),
            died_at=self.clock(),
            function=self.env.get("POWERTOOLS_SERVICE_NAME", "unknown"),
            log_group=self.env.get("AWS_LAMBDA_LOG_GROUP_NAME") or None,
            log_stream=self.env.get("AWS_LAMBDA_LOG_STREAM_NAME") or None,
        )

    def _send(self, url: str, record: SqsRecord, letter: DeadLetter) -> None:
        """Send the message with its own body, attributes and message group."""
        attributes = own_attributes(record.own)
        attributes[ATTRIBUTE] = {"DataType": "String", "StringValue": wire_text(letter.text())}
        group = str(record.system.get("MessageGroupId", ""))
        with aws_errors("sending a message to its dead-letter queue"):
            if group:
                self.sqs.send_message(
                    QueueUrl=url,
                    MessageBody=record.body,
                    MessageAttributes=attributes,
                    MessageGroupId=group,
                )
            else:
                self.sqs.send_message(
                    QueueUrl=url, MessageBody=record.body, MessageAttributes=attributes
                )


def read_redrive_policy(text: str | None, queue_url: str) -> RedrivePolicy:
    """Read the `RedrivePolicy` attribute of a queue.

    SQS requires that a dead-letter queue is in the same account and region as its queue.
    """
    try:
        policy = json.loads(text or "{}")
        name = str(policy["deadLetterTargetArn"]).rpartition(":")[2]
        most = int(policy["maxReceiveCount"])
    except (ValueError, KeyError, TypeError):
        return RedrivePolicy(None)
    return RedrivePolicy(f"{queue_url.rpartition('/')[0]}/{name}", most)


def reason_of(error: Exception) -> str:
    """The reason, in a sentence that quotes nothing of the message.

    It is the text of an error of Roundsman's own. For any other error it is only the type, because
    the text may quote what customers ordered.
    """
    rejected = error.__context__
    if isinstance(rejected, InvalidMessage):
        many = len(rejected.problems)
        found = "a problem" if many == 1 else f"{many} problems"
        return f"the message has {found} and was not sent to the RejectedQueue: {_why(error)}"
    return _why(error)


def _why(error: Exception) -> str:
    if isinstance(error, InvalidMessage) or not isinstance(error, RoundsmanError):
        return f"unexpected {type(error).__name__}"
    return str(error) or type(error).__name__


def own_attributes(
    given: Mapping[str, Mapping[str, object]],
) -> dict[str, "MessageAttributeValueTypeDef"]:
    """A message's attributes, converted from a Lambda event to the parameters of SendMessage."""
    found: dict[str, MessageAttributeValueTypeDef] = {}
    for name, value in given.items():
        kind = str(value["dataType"])
        if kind.startswith("Binary"):
            data = base64.b64decode(str(value.get("binaryValue") or ""))
            found[name] = {"DataType": kind, "BinaryValue": data}
        else:
            found[name] = {"DataType": kind, "StringValue": str(value.get("stringValue") or "")}
    return found
