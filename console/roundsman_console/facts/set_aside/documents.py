"""What commands say of messages that were set aside: dead letters and rejected messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

from roundsman_console.base.constraints import Count
from roundsman_console.base.result import EPOCH_MS, EpochMsOrNone, Shown
from roundsman_console.facts.set_aside.assess import ResendVerdict

ABSENT = Shown(absent=True)
ABSENT_INSTANT = Shown(unit=EPOCH_MS, absent=True)


class ProblemDocument(TypedDict):
    """Why a message is invalid."""

    path: str
    """The path of the field; empty if the problem is about the whole message."""
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDocument:
    """A dead letter or a rejected message. What does not apply to it, or is not known, is absent.

    A dead letter has a reason; a rejected message has problems, and the time of its rejection.
    """

    message_id: str
    queue: str | None
    """The queue that it came from; null if it is not known."""
    order_id: str | None
    reason: Annotated[str | None, ABSENT] = None
    """Why the function failed."""
    reason_known: Annotated[bool | None, ABSENT] = None
    """Whether the function attached the reason; false if SQS moved the message."""
    error_type: Annotated[str | None, ABSENT] = None
    sent_at: Annotated[int | None, ABSENT_INSTANT] = None
    died_at: Annotated[int | None, ABSENT_INSTANT] = None
    rejected_at: Annotated[int | None, ABSENT_INSTANT] = None
    receives: Count
    """The number of times the function received a dead letter, or anybody a rejected message."""
    sent_back: Annotated[Count | None, ABSENT] = None
    """The number of times an operator has sent the dead letter back."""
    copies: Annotated[Count | None, ABSENT] = None
    """The number of further dead letters of the same message."""
    bytes: Count
    sha256: str
    """The hash of the body."""
    begins: Annotated[str | None, ABSENT] = None
    """In a list, the beginning of a body without an order id, masked. Absent too if nothing of it
    may be shown: it is no JSON, or the workflows are not known here."""
    error_at: Annotated[Sequence[str] | None, ABSENT] = None
    """Where the function failed: the last lines of its traceback."""
    what: Annotated[str | None, ABSENT] = None
    """The kind and the subject of the message. This and what follows is of one that was assessed.
    """
    verdict: Annotated[ResendVerdict | None, ABSENT] = None
    why: Annotated[str | None, ABSENT] = None
    """The reason of the verdict."""
    problems: Annotated[Sequence[ProblemDocument] | None, ABSENT] = None
    """Why it was rejected, or would be if it were sent again."""
    log: Annotated[str | None, ABSENT] = None
    """The command that finds the failure in the function's log."""
    sent: Annotated[bool | None, ABSENT] = None
    """Whether it was sent again."""
    sent_as: Annotated[str | None, ABSENT] = None
    """The id of the message that was sent."""
    body: Annotated[str | None, ABSENT] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadQueueDocument:
    """One dead-letter queue."""

    queue: str
    """The queue whose dead letters it has."""
    dead_letter_queue: str
    function: str
    """The function that reads the queue."""
    about: Count
    """The approximate number of messages."""
    hidden: Count
    """The approximate number of messages that are hidden at present."""
    oldest_sent_at: EpochMsOrNone


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageListDocument:
    """Messages that were set aside, the oldest first."""

    queues: Annotated[Sequence[DeadQueueDocument] | None, ABSENT] = None
    """The dead-letter queues that have messages; absent in a list of rejected messages."""
    messages: Sequence[MessageDocument]
    more: bool
    """Whether there are further messages."""
    about: Annotated[Count | None, ABSENT] = None
    """The approximate number of messages in the RejectedQueue."""
    hidden: Annotated[Count | None, ABSENT] = None
    """The approximate number of messages that are hidden there at present."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveDocument:
    """The result of sending dead letters back to their queue."""

    command: Literal["redrive"] = "redrive"
    queue: str
    dry_run: bool
    """Whether nothing was sent because there is more than one dead letter."""
    verdicts: Mapping[ResendVerdict, Count]
    """The number of dead letters by verdict."""
    came_back: Count
    """The number of dead letters that were sent back before."""
    sent: Count
    left: Count
    """The number of assessed dead letters that were not sent."""
    more: bool
    """Whether the queue has more dead letters than were assessed."""
    messages: Sequence[MessageDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class ResendDocument:
    """The result of resending rejected messages."""

    command: Literal["resend"] = "resend"
    outcome: Literal["done", "refused"]
    messages: Sequence[MessageDocument]
    left: Count
    """The number of messages that stay in the RejectedQueue."""
    more: bool
    """Whether the queue has more messages than were read."""
