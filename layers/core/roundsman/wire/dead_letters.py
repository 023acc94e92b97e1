"""Why a message lies in a dead-letter queue, as it is said beside its body.

A function that fails a message for the last time sends it to the dead-letter queue itself, with
this in one message attribute; whatever attributes its sender gave it stay beside. A letter without
it was moved by SQS: its function ended before it could say anything.
"""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage
from roundsman.model.json import Json, canonical_json
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object

ATTRIBUTE = "DeadLetter"
"""The name of the message attribute."""

REDRIVEN = "Redriven"
"""The attribute that says how often an operator has sent a dead letter back, as a number."""

LONGEST_REASON = 1_000  # characters
FRAMES_KEPT = 5


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """What is known of a message that failed its last delivery. Instants are epoch ms.

    `message_id` is that of the message as it was: the copy has one of its own. `reason` says
    nothing of what the message said; `error_at` names the lines of code that the error passed.
    """

    queue: str
    message_id: str
    reason: str
    error_type: str
    error_at: tuple[str, ...]
    receives: int
    sent_at: int
    died_at: int
    function: str
    log_group: str | None = None
    log_stream: str | None = None

    def text(self) -> str:
        """The attribute's value."""
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
    """What an attribute's value says; None where no function of Roundsman wrote it."""
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
