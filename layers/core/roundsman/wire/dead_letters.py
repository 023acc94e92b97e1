"""The reason of a dead letter, in a message attribute.

A function that fails on the last delivery of a message sends the message to the dead-letter queue
itself, and adds this attribute to the attributes of the sender. A dead letter without the attribute
was moved by SQS, because the function ended before it could send the message.
"""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage
from roundsman.model.field_table import Field, FieldTable, Kind
from roundsman.model.json import canonical_json
from roundsman.wire.fields import NUMBER, OPTIONAL_TEXT, TEXT, Fields, MessageTable
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
    """When the message was sent."""
    died_at: int
    """When the last delivery failed."""
    function: str
    """The service name of the Lambda function that failed."""
    log_group: str | None = None
    """The log group of the function; None if it is not known."""
    log_stream: str | None = None
    """The log stream of the function; None if it is not known."""

    def text(self) -> str:
        """Return the value of the message attribute."""
        return canonical_json(DEAD_LETTER.written(self))


DEAD_LETTER: "MessageTable[DeadLetter]" = FieldTable(
    DeadLetter,
    Field("queue", "queue", TEXT),
    Field("messageId", "message_id", TEXT),
    Field("reason", "reason", Kind("text", Fields.text, lambda text: text[:LONGEST_REASON])),
    Field("errorType", "error_type", TEXT),
    Field(
        "errorAt",
        "error_at",
        Kind("list of texts", Fields.texts, lambda lines: list(lines[-FRAMES_KEPT:])),
        (),
        always=True,
    ),
    Field("receives", "receives", NUMBER),
    Field("sentAt", "sent_at", NUMBER),
    Field("diedAt", "died_at", NUMBER),
    Field("function", "function", TEXT),
    Field("logGroup", "log_group", OPTIONAL_TEXT, None),
    Field("logStream", "log_stream", OPTIONAL_TEXT, None),
)


def read_dead_letter(text: str) -> DeadLetter | None:
    """Read the value of the message attribute; None if no function of Roundsman wrote it."""
    try:
        fields = Fields(read_object(text))
        letter = DEAD_LETTER.read(fields)
        fields.done()
    except InvalidMessage:
        return None
    return letter
