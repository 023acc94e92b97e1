"""Documents about events that were sent: orders and signals."""

from typing import Literal, TypedDict

from roundsman.model.states import TaskState
from roundsman_console.facts.set_aside.documents import ProblemDocument

SubmitOutcome = Literal[
    "accepted", "rejected", "notKnown", "ended", "removed", "stillOpen", "neverHeardOf"
]


class SubmitDocument(TypedDict):
    """An order event that was sent."""

    messageId: str
    """The id of the message in SQS."""
    orderId: str | None
    """The id of the order; null if the message is no order event and will be rejected."""
    outcome: SubmitOutcome | None
    """What became of the event: accepted, rejected or notKnown; with --wait, what became of the
    order. Null with --no-wait. How a removed order has ended is not kept."""
    state: TaskState | None
    """The state of the order if `outcome` is ended or stillOpen; else null."""
    problems: list[ProblemDocument]
    """Why the order was rejected; empty if it was not, or if that is not known."""


SignalOutcome = Literal["done", "refused", "sent", "unconfirmed"]


class SignalDocument(TypedDict):
    """A signal that was sent."""

    orderId: str
    name: str
    """The name for which a step of the order waits."""
    id: str
    """The id with which it was sent."""
    outcome: SignalOutcome
    """What the scheduler has made of it: done, refused, or unconfirmed if that is not known yet;
    sent with --no-wait."""
    why: str | None
    """Why it was refused, or why that is not known; else null."""
