"""Sends messages to the queue that they came from."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.wire.dead_letters import ATTRIBUTE, REDRIVEN
from roundsman.wire.limits import MESSAGE_LIMIT, wire_text
from roundsman_console.base.errors import InspectorError, Interrupted, aws_sentence
from roundsman_console.facts.set_aside.peek import Letter, times_sent_back

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueOutputTypeDef,
        MessageAttributeValueTypeDef,
        SendMessageRequestTypeDef,
    )

M = TypeVar("M")
T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class SendResult(Generic[T]):
    """The result of sending several messages."""

    more: bool
    """Whether the queue has more messages than were read."""
    sent: list[T] = field(default_factory=list)
    error: InspectorError | None = None
    """What ended the sending early; None if all were tried."""
    dry: bool = False
    """Whether nothing was sent because a person is to agree first."""

    def send_each(self, going: Iterable[M], send: Callable[[M], None]) -> None:
        """Send the messages one by one; `send` adds to `sent`. An error of AWS becomes `error`.

        Raises Interrupted on Ctrl-C: its `result` is this one.
        """
        try:
            for one in going:
                send(one)
        except (ClientError, BotoCoreError) as error:
            self.error = InspectorError(f"{aws_sentence(error)} Stopped {self._how_far()}")
        except KeyboardInterrupt as error:
            self.error = Interrupted(f"Interrupted {self._how_far()}", self)
            raise self.error from error

    def _how_far(self) -> str:
        return f"after {len(self.sent)}. The others were not moved."


def send_again(sqs: "SQSClient", url: str, body: str) -> str:
    """Send a message with this body, and return its message id.

    Raises InspectorError if the body is empty or larger than SQS allows.
    """
    text = wire_text(body)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not text.strip() or size > MESSAGE_LIMIT:
        raise InspectorError(f"The message has {size} bytes; SQS accepts 1 to {MESSAGE_LIMIT}.")
    return sqs.send_message(QueueUrl=url, MessageBody=text)["MessageId"]


def send_back(sqs: "SQSClient", url: str, letter: Letter, body: str) -> str:
    """Send a dead letter to its queue with this body, and return the new message id.

    The message keeps its message group and attributes, except the reason of the failure. Its
    attribute `Redriven` counts how often it was sent back.
    """
    attributes = {
        name: _as_sent(value) for name, value in letter.attributes.items() if name != ATTRIBUTE
    }
    again = str(times_sent_back(letter.attributes) + 1)
    attributes[REDRIVEN] = {"DataType": "Number", "StringValue": again}
    request: SendMessageRequestTypeDef = {
        "QueueUrl": url,
        "MessageBody": body,
        "MessageAttributes": attributes,
    }
    if letter.group:
        request["MessageGroupId"] = letter.group
    return sqs.send_message(**request)["MessageId"]


def _as_sent(value: "MessageAttributeValueOutputTypeDef") -> "MessageAttributeValueTypeDef":
    if "BinaryValue" in value:
        return {"DataType": value["DataType"], "BinaryValue": value["BinaryValue"]}
    return {"DataType": value["DataType"], "StringValue": value.get("StringValue", "")}
