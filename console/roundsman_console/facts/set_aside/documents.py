"""Documents about dead letters and rejected messages."""

from typing import Literal, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count, Instant

MessageVerdict: TypeAlias = Literal["acts", "passed_over", "rejected", "fails"]
"""The predicted effect of a message that is sent again."""


class ProblemDocument(TypedDict):
    """Why a message is invalid."""

    path: str
    """The path of the field; empty if the problem is about the whole message."""
    message: str


class DeadLetterSummaryDocument(TypedDict):
    """One dead letter, without its body."""

    messageId: str
    queue: str
    """The queue whose function failed."""
    orderId: str | None
    reason: str
    reasonKnown: bool
    """Whether the function attached the reason; false if SQS moved the message."""
    errorType: str | None
    sentAt: Instant
    diedAt: Instant | None
    receives: Count
    """The number of times the function received the message."""
    sentBack: Count
    """The number of times an operator has sent the message back."""
    copies: Count
    """The number of further dead letters of the same message."""
    bytes: Count


class DroppedDeadLetterDocument(DeadLetterSummaryDocument):
    """A dead letter that was deleted."""

    body: str


class DeadLetterDocument(DeadLetterSummaryDocument):
    """One dead letter, and the predicted effect of sending it back."""

    errorAt: list[str]
    """Where the function failed: the last lines of its traceback."""
    what: str
    """The kind and the subject of the message."""
    verdict: MessageVerdict
    why: str
    """The reason of the verdict."""
    problems: list[ProblemDocument]
    log: str
    """The command that finds the failure in the function's log."""
    body: str


class DeadLetterDetailsDocument(TypedDict):
    """Dead letters in full, the oldest first."""

    messages: list[DeadLetterDocument]
    more: bool
    """Whether there are further dead letters."""


class DeadQueueDocument(TypedDict):
    """One dead-letter queue."""

    queue: str
    """The queue whose dead letters it has."""
    deadLetterQueue: str
    function: str
    """The function that reads the queue."""
    about: Count
    """The approximate number of messages."""
    hidden: Count
    """The approximate number of messages that are hidden at present."""
    oldestSentAt: Instant | None


class DeadLetterListDocument(TypedDict):
    """The dead-letter queues and their messages, the oldest first."""

    queues: list[DeadQueueDocument]
    messages: list[DeadLetterSummaryDocument]
    more: bool
    """Whether there are further dead letters."""


class RedriveCandidateDocument(DeadLetterSummaryDocument):
    """A dead letter that was assessed, and whether it was sent back."""

    what: str
    """The kind and the subject of the message."""
    verdict: MessageVerdict
    why: str
    """The reason of the verdict."""
    sent: bool


class VerdictCountsDocument(TypedDict):
    """The number of dead letters by verdict."""

    acts: Count
    passed_over: Count
    rejected: Count
    fails: Count


class RedriveDocument(TypedDict):
    """The result of sending dead letters back to their queue."""

    command: Literal["redrive"]
    queue: str
    dryRun: bool
    """Whether nothing was sent because there is more than one dead letter."""
    verdicts: VerdictCountsDocument
    cameBack: Count
    """The number of dead letters that were sent back before."""
    sent: Count
    left: Count
    """The number of assessed dead letters that were not sent."""
    more: bool
    """Whether the queue has more dead letters than were assessed."""
    messages: list[RedriveCandidateDocument]


class RejectionSummaryDocument(TypedDict):
    """One rejected message, without its body."""

    messageId: str
    queue: str | None
    """The queue that the message came from; null if it is not known."""
    orderId: str | None
    rejectedAt: Instant
    bytes: Count
    receives: Count
    problems: list[ProblemDocument]


class RejectionDocument(RejectionSummaryDocument):
    """One rejected message."""

    body: str


class RejectionListDocument(TypedDict):
    """Rejected messages, the oldest first."""

    messages: list[RejectionSummaryDocument]
    more: bool
    """Whether there are further rejected messages."""
    about: Count
    """The approximate number of messages in the RejectedQueue."""
    hidden: Count
    """The approximate number of messages that are hidden at present."""


class ResentDocument(TypedDict):
    """The result of resending one rejected message."""

    messageId: str
    sentAs: str | None
    """The id of the new message; null if the message was not sent."""
    queue: str
    orderId: str | None
    verdict: MessageVerdict
    why: str
    """The reason of the verdict."""
    problems: list[ProblemDocument]


class ResendDocument(TypedDict):
    """The result of resending rejected messages."""

    command: Literal["resend"]
    outcome: Literal["done", "refused"]
    messages: list[ResentDocument]
    left: Count
    """The number of messages that stay in the RejectedQueue."""
    more: bool
    """Whether the queue has more messages than were read."""
