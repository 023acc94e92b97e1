"""Reads the messages of a queue that has no consumer, and leaves them in the queue.

The only way to read a message of SQS is to receive it. A received message is hidden from other
consumers until the look ends. If the process ends before that, the message becomes visible after
its visibility timeout, usually a minute. Each receive increases the receive count; this has no
effect in a queue without a redrive policy, and a queue that has one is not read.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.wire.dead_letters import REDRIVEN
from roundsman_console.aws.queues import Counts
from roundsman_console.base.errors import (
    InvalidArgument,
    NotFound,
)
from roundsman_console.base.sanitize import inert
from roundsman_console.facts.set_aside.queues import counts

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import (
        ChangeMessageVisibilityBatchRequestEntryTypeDef,
        MessageAttributeValueOutputTypeDef,
        MessageTypeDef,
    )

HIDDEN_FOR = 60
"""The visibility timeout in seconds: far more than it takes to read a thousand messages and send
one."""
WHILE_ASKED = 300
"""The visibility timeout in seconds while a person is asked to confirm."""
LONG_POLL = 1  # seconds; a short poll (0) asks only some of the SQS servers and may miss messages
MOST = 1_000  # messages of one look; SQS allows 120,000 in flight
AT_ONCE = 10  # SQS's maximum in one receive, and in one batch


@dataclass(frozen=True, slots=True)
class Letter:
    """A received message."""

    message_id: str
    receipt: str
    """The receipt handle of this receive."""
    body: str
    sent_at: int
    """When the message was sent to this queue, in epoch ms."""
    receives: int
    """The receive count of SQS, which includes each look."""
    attributes: "Mapping[str, MessageAttributeValueOutputTypeDef]"
    """The message attributes of the sender."""
    group: str | None = None
    """The message group id; None if the sender set none."""
    sender: str = ""
    """Who sent it, as AWS authenticated them; empty if it is not known."""
    moved: bool = False
    """SQS moved the message to this dead-letter queue; no function sent it."""

    def attribute(self, name: str) -> str:
        """Return the text of a message attribute; empty if the message does not have it."""
        found = self.attributes.get(name)
        return found.get("StringValue", "") if found else ""


class QueuePeek:
    """One look into a queue: a context manager that makes the messages visible again at its end.

    with QueuePeek(sqs, url) as look:
        for letter in look.letters(50): ...

    `hidden_for` is the visibility timeout in seconds. The class does not extend it, so the look
    must end before that. `counts` has the numbers of messages at its beginning. A look that could
    move messages raises InspectorError then, as `queues.counts` does.
    """

    counts: Counts

    def __init__(self, sqs: "SQSClient", url: str, *, hidden_for: int = HIDDEN_FOR) -> None:
        self._sqs = sqs
        self._url = url
        self._hidden_for = hidden_for
        self._held: dict[str, str] = {}  # receipt handles by message id

    def __enter__(self) -> "QueuePeek":
        self.counts = counts(self._sqs, self._url)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.let_go()

    def let_go(self, keep: Collection[str] = ()) -> None:
        """Make the held messages visible to others, but for those with the ids in `keep`.

        If the call fails, they become visible after their visibility timeout.
        """
        held = [receipt for name, receipt in self._held.items() if name not in keep]
        self._held = {name: one for name, one in self._held.items() if name in keep}
        for first in range(0, len(held), AT_ONCE):
            entries: list[ChangeMessageVisibilityBatchRequestEntryTypeDef] = [
                {"Id": str(place), "ReceiptHandle": receipt, "VisibilityTimeout": 0}
                for place, receipt in enumerate(held[first : first + AT_ONCE])
            ]
            try:
                self._sqs.change_message_visibility_batch(QueueUrl=self._url, Entries=entries)
            except (ClientError, BotoCoreError):
                return

    def letters(self, limit: int) -> Iterator[Letter]:
        """Yield each message once, at most `limit`, in the order in which SQS returns them.

        SQS guarantees no order. The look holds the messages until it ends.
        """
        seen = 0
        while seen < limit:
            fresh = [one for one in self._receive(min(AT_ONCE, limit - seen)) if self._hold(one)]
            if not fresh:
                return
            seen += len(fresh)
            yield from fresh

    def delete(self, letter: Letter) -> None:
        """Delete a message that this look holds."""
        self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=self._held[letter.message_id])
        del self._held[letter.message_id]

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
        """Hold a message, and return whether this look receives it for the first time.

        A message that is received again is held by its newer receipt handle.
        """
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
        sender=system.get("SenderId", ""),
        moved="DeadLetterQueueSourceArn" in system,
    )


class HasMessageId(Protocol):
    """A message in a queue that is looked into."""

    @property
    def message_id(self) -> str:
        """The id that SQS gave it."""


M = TypeVar("M", bound=HasMessageId)


def chosen(messages: Iterable[M], asked: str, what: str, where: str) -> M:
    """Return the message whose id is `asked`, or the only one whose id begins with `asked`.

    `what` and `where` are for the error. Raises NotFound if no message matches, and InvalidArgument
    if several do.
    """
    found: list[M] = []
    for one in messages if asked else ():
        if one.message_id == asked:
            return one
        if one.message_id.startswith(asked):
            found.append(one)
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(one.message_id for one in found[:5])
        raise InvalidArgument(f"{inert(asked)} matches the beginning of {len(found)} ids: {ids}.")
    raise NotFound(
        f"No {what} {inert(asked[:80])!r} {where}, or another reader hides it: if so, it is "
        "visible again within a minute."
    )


def times_sent_back(attributes: Mapping[str, "MessageAttributeValueOutputTypeDef"]) -> int:
    """Return how often an operator has redriven the message with these attributes."""
    count = attributes[REDRIVEN].get("StringValue", "") if REDRIVEN in attributes else ""
    return int(count) if count.isdecimal() else 0
