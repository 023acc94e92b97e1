"""The reason of a dead letter, in a message attribute.

A function that fails on the last delivery of a message sends the message to the dead-letter queue
itself, and adds this attribute to the attributes of the sender. A dead letter without the attribute
was moved by SQS, because the function ended before it could send the message.
"""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage
from roundsman.model.json import Json, canonical_json
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object

ATTRIBUTE = "DeadLetter"
"""The name of the message attribute."""

REDRIVEN = "Redriven"
"""The name of the message attribute that counts how often an operator redrove the dead letter."""

LONGEST_REASON = 1_000  # characters
FRAMES_KEPT = 5


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Why a message is a dead letter, and where it came from. Instants are epoch ms."""

    queue: str
    """The name of the queue that delivered the message."""
    message_id: str
    """The id of the original message; the dead letter has an id of its own."""
    reason: str
    """The reason in words, without the contents of the message."""
    error_type: str
    """The name of the exception's class."""
    error_at: tuple[str, ...]
    """The lines of code in the traceback of the exception."""
    receives: int
    """How often the message was received."""
    sent_at: int
    died_at: int
    """When the last delivery failed."""
    function: str
    """The service name of the Lambda function that failed."""
    log_group: str | None = None
    log_stream: str | None = None

    def text(self) -> str:
        """Return the value of the message attribute."""
        found: dict[str, Json] = {
            "queue": self.queue,
            "messageId": self.message_id,
            "reason": self.reason[:LONGEST_REASON],
            "errorType": self.error_type,
            "errorAt": list(self.error_at[-FRAMES_KEPT:]),
            "receives": self.receives,
            "sentAt": self.sent_at,
            "diedAt": self.died_at,
            "function": self.function,
            "logGroup": self.log_group,
            "logStream": self.log_stream,
        }
        return canonical_json({name: value for name, value in found.items() if value is not None})


def read_dead_letter(text: str) -> DeadLetter | None:
    """Read the value of the message attribute; None if no function of Roundsman wrote it."""
    try:
        fields = Fields(read_object(text))
        letter = DeadLetter(
            queue=fields.text("queue"),
            message_id=fields.text("messageId"),
            reason=fields.text("reason"),
            error_type=fields.text("errorType"),
            error_at=fields.texts("errorAt"),
            receives=fields.number("receives"),
            sent_at=fields.number("sentAt"),
            died_at=fields.number("diedAt"),
            function=fields.text("function"),
            log_group=fields.optional_text("logGroup"),
            log_stream=fields.optional_text("logStream"),
        )
        fields.done()
    except InvalidMessage:
        return None
    return letter
