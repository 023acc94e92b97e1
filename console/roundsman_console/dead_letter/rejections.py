"""Reads the rejected messages in the RejectedQueue."""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage, Problem
from roundsman.model.instants import iso
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object
from roundsman_console.dead_letter.assess import order_of
from roundsman_console.dead_letter.documents import (
    ProblemDocument,
    RejectionListDocument,
    RejectionSummaryDocument,
)
from roundsman_console.dead_letter.peek import HIDDEN_FOR, Letter, QueuePeek
from roundsman_console.dead_letter.queues import Counts, counts
from roundsman_console.stack.stack import DeployedStack


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected message."""

    letter: Letter
    """The message in the RejectedQueue."""
    queue: str
    """The name in SQS of the queue that the message came from; empty if it is unknown."""
    problems: tuple[Problem, ...]
    """Why the message was rejected; never empty."""
    body: str
    """The body of the rejected message."""


def read_rejection(letter: Letter) -> Rejection:
    """Read a letter of the RejectedQueue.

    A letter that no function of the stack wrote has an empty `queue`, and a problem that says so.
    """
    try:
        fields = Fields(read_object(letter.body))
        queue = fields.text("queue")
        body = fields.text("body", empty=True)
        problems = fields.any("problems")
        fields.done()
    except InvalidMessage:
        stranger = Problem("", "no function of the stack rejected this message")
        return Rejection(letter, "", (stranger,), letter.body)
    found = [
        Problem(str(one.get("path", "")), str(one.get("message", "")))
        for one in (problems if isinstance(problems, list) else [])
        if isinstance(one, dict)
    ]
    return Rejection(letter, queue, tuple(found) or (Problem("", "no reason is given"),), body)


def problem_documents(problems: tuple[Problem, ...]) -> list[ProblemDocument]:
    """Return the problems as JSON for scripts."""
    return [{"path": problem.path, "message": problem.message} for problem in problems]


def look_at_rejected(stack: DeployedStack, hidden_for: int = HIDDEN_FOR) -> QueuePeek:
    """Return a look at the stack's RejectedQueue.

    Raises InspectorError if reading would move messages.
    """
    url = stack.output("RejectedQueueUrl")
    counts(stack.sqs, url)  # raises if a look could move messages
    return QueuePeek(stack.sqs, url, hidden_for=hidden_for)


def rejection_document(one: Rejection) -> RejectionSummaryDocument:
    """Return the message as JSON for scripts, without its body."""
    return {
        "messageId": one.letter.message_id,
        "queue": one.queue or None,
        "orderId": order_of(one.body),
        "rejectedAt": iso(one.letter.sent_at),
        "bytes": len(one.body.encode("utf-8", "surrogatepass")),
        "receives": one.letter.receives,
        "problems": problem_documents(one.problems),
    }


def rejected_document(listed: list[Rejection], held: Counts, more: bool) -> RejectionListDocument:
    """Return the messages as JSON for scripts."""
    return {
        "messages": [rejection_document(one) for one in listed],
        "more": more,
        "about": held.all,
        "hidden": held.hidden,
    }
