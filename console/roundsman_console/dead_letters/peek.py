"""Looking into a queue that nobody works off, without taking anything from it.

SQS knows no other way to look than to receive. What is received is hidden from everybody else until
it is let go, at the end of the look, or by itself, usually within a minute, where the process dies.
The receive count grows, which matters to no queue without a redrive policy; into others
`queues.counts` does not let anybody look.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from roundsman_console.cli_errors import NOT_FOUND, USAGE, ConsoleError
from roundsman_console.sanitize import inert

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        ChangeMessageVisibilityBatchRequestEntryTypeDef,
        MessageAttributeValueOutputTypeDef,
        MessageTypeDef,
    )

HIDDEN_FOR = 60  # seconds; a thousand messages are read, and one is sent on, in far less
WHILE_ASKED = 300  # seconds; what a person is asked about is held while they think
LONG_POLL = 1  # seconds; a shorter look asks only some of SQS's hosts and may miss messages
MOST = 1_000  # messages that one look takes; SQS allows 120,000 to be hidden at once
AT_ONCE = 10  # SQS's most in one receive, and in one batch


@dataclass(frozen=True, slots=True)
class Letter:
    """A message as it lies there. `sent_at` is in epoch ms, `attributes` are its sender's."""

    message_id: str
    receipt: str
    body: str
    sent_at: int
    receives: int
    attributes: "Mapping[str, MessageAttributeValueOutputTypeDef]"
    group: str | None = None

    @property
    def size(self) -> int:
        """Of the body, in bytes."""
        return len(self.body.encode("utf-8", "surrogatepass"))

    def attribute(self, name: str) -> str:
        """The text of one attribute; empty where it has none."""
        found = self.attributes.get(name)
        return found.get("StringValue", "") if found else ""


class QueuePeek:
    """One look into a queue: what it has received is let go at its end.

    with Look(sqs, url) as look:
        for letter in look.letters(50): ...
    """

    def __init__(self, sqs: "SQSClient", url: str, *, hidden_for: int = HIDDEN_FOR) -> None:
        self._sqs = sqs
        self._url = url
        self._hidden_for = hidden_for
        self._held: dict[str, str] = {}  # receipts by message id

    def __enter__(self) -> "QueuePeek":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.let_go()

    def letters(self, limit: int) -> Iterator[Letter]:
        """The messages, each once, as SQS gives them: in no order, at most so many."""
        seen = 0
        while seen < limit:
            fresh = [one for one in self._receive(min(AT_ONCE, limit - seen)) if self._hold(one)]
            if not fresh:
                return
            seen += len(fresh)
            yield from fresh

    def delete(self, letter: Letter) -> None:
        """It was sent on, or is not wanted: take it away for good."""
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=self._held[letter.message_id])
        del self._held[letter.message_id]

    def let_go(self) -> None:
        """Let others see what is held. Where that fails, they see it a minute later."""
        held = list(self._held.values())
        self._held = {}
        for first in range(0, len(held), AT_ONCE):
            entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
                {"Id": str(place), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                for place, receipt in enumerate(held[first : first + AT_ONCE])
            ]
            try:
                self._sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            except (ClientError, BotoCoreError):
                return

    def _receive(self, count: int) -> list[Letter]:
        answer = self._sqs.receive_message(
            QueueUrl=self._url,
            MaxNumberOfMessages=count,
            VisibilityTimeout=self._hidden_for,
            WaitTimeSeconds=LONG_POLL,
            MessageSystemAttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        return [_letter(message) for message in answer.get("Messages", [])]

    def _hold(self, letter: Letter) -> bool:
        """Whether it is a new one; of a copy the later receipt counts."""
        new = letter.message_id not in self._held
        self._held[letter.message_id] = letter.receipt
        return new


def _letter(message: "MessageTypeDef") -> Letter:
    system = message.get("Attributes", {})
    return Letter(
        message_id=message["MessageId"],
        receipt=message["ReceiptHandle"],
        body=message["Body"],
        sent_at=int(system.get("SentTimestamp", "0")),
        receives=int(system.get("ApproximateReceiveCount", "1")),
        attributes=message.get("MessageAttributes", {}),
        group=system.get("MessageGroupId") or None,
    )


def find_letter(look: QueuePeek, asked: str, where: str) -> Letter:
    """The message of that id, or the one whose id begins so; it stays held by the look.

    Raises ConsoleError where there is none, or more than one.
    """
    found: list[Letter] = []
    for letter in look.letters(MOST):
        if letter.message_id == asked:
            return letter
        if letter.message_id.startswith(asked):
            found.append(letter)
    if len(found) == 1 and asked:
        return found[0]
    if found and asked:
        ids = ", ".join(letter.message_id for letter in found[:5])
        raise ConsoleError(f"{inert(asked)} is the beginning of {len(found)} ids: {ids}.", USAGE)
    raise ConsoleError(
        f"There is no message {inert(asked[:80])!r} in {where} (or somebody else is looking at "
        f"it: it is back within a minute).",
        NOT_FOUND,
    )
