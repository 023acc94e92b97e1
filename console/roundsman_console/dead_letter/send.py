"""Sends a message to the queue that it came from."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from roundsman.wire.dead_letters import ATTRIBUTE, REDRIVEN
from roundsman.wire.limits import MESSAGE_LIMIT, wire_text
from roundsman_console.dead_letter.peek import Letter
from roundsman_console.errors import InspectorError

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueOutputTypeDef,
        MessageAttributeValueTypeDef,
    )


def send_again(sqs: "SQSClient", url: str, body: str) -> str:
    """Send a message with this body, and return its message id.

    Raises InspectorError if the body is empty or larger than SQS allows.
    """
    text = wire_text(body)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not text.strip() or size > MESSAGE_LIMIT:
        raise InspectorError(f"The message has {size} bytes; SQS accepts 1 to {MESSAGE_LIMIT}.")
    return sqs.send_message(QueueUrl=url, MessageBody=text)["MessageId"]


def send_back(sqs: "SQSClient", url: str, letter: Letter) -> str:
    """Send a dead letter to its queue, and return the new message id.

    The message keeps its body, message group and attributes, except the reason of the failure.
    Its attribute `Redriven` counts how often it was sent back.
    """
    attributes = {
        name: _as_sent(value) for name, value in letter.attributes.items() if name != ATTRIBUTE
    }
    again = str(times_sent_back(letter.attributes) + 1)
    attributes[REDRIVEN] = {"DataType": "Number", "StringValue": again}
    if letter.group:
        answer = sqs.send_message(
            QueueUrl=url,
            MessageBody=letter.body,
            MessageAttributes=attributes,
            MessageGroupId=letter.group,
        )
    else:
        answer = sqs.send_message(
            QueueUrl=url, MessageBody=letter.body, MessageAttributes=attributes
        )
    return answer["MessageId"]


def times_sent_back(attributes: Mapping[str, "MessageAttributeValueOutputTypeDef"]) -> int:
    """Return how often an operator has redriven the message with these attributes."""
    count = attributes[REDRIVEN].get("StringValue", "") if REDRIVEN in attributes else ""
    return int(count) if count.isdecimal() else 0


def _as_sent(value: "MessageAttributeValueOutputTypeDef") -> "MessageAttributeValueTypeDef":
    if "BinaryValue" in value:
        return {"DataType": value["DataType"], "BinaryValue": value["BinaryValue"]}
    return {"DataType": value["DataType"], "StringValue": value.get("StringValue", "")}
