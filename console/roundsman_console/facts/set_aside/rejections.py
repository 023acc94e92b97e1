"""Reads the rejected messages in the RejectedQueue."""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage, Problem
from roundsman.model.instants import iso
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.set_aside.assess import order_of
from roundsman_console.facts.set_aside.documents import (
    ProblemDocument,
    RejectionListDocument,
    RejectionSummaryDocument,
)
from roundsman_console.facts.set_aside.peek import HIDDEN_FOR, MOST, Letter, QueuePeek, chosen
from roundsman_console.facts.set_aside.queues import Counts


@dataclass(frozen=True, slots=True)
class RejectedLetter:
    """A rejected message."""

    letter: Letter
    """The message in the RejectedQueue."""
    queue: str
    """The name in SQS of the queue that the message came from; empty if it is unknown."""
    problems: tuple[Problem, ...]
    """Why the message was rejected; never empty."""
    body: str
    """The body of the rejected message."""

    @property
    def message_id(self) -> str:
        """The id of the message in the RejectedQueue."""
        return self.letter.message_id

    @property
    def size(self) -> int:
        """The size of the body in bytes."""
        return len(self.body.encode("utf-8", "surrogatepass"))

    def document(self) -> RejectionSummaryDocument:
        """Return the message as JSON for scripts, without its body."""
        return {
            "messageId": self.message_id,
            "queue": self.queue or None,
            "orderId": order_of(self.body),
            "rejectedAt": iso(self.letter.sent_at),
            "bytes": self.size,
            "receives": self.letter.receives,
            "problems": problem_documents(self.problems),
        }


def read_rejection(letter: Letter) -> RejectedLetter:
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
        return RejectedLetter(letter, "", (stranger,), letter.body)
    found = [
        Problem(str(one.get("path", "")), str(one.get("message", "")))
        for one in (problems if isinstance(problems, list) else [])
        if isinstance(one, dict)
    ]
    return RejectedLetter(letter, queue, tuple(found) or (Problem("", "no reason is given"),), body)


def problem_documents(problems: tuple[Problem, ...]) -> list[ProblemDocument]:
    """Return the problems as JSON for scripts."""
    return [{"path": problem.path, "message": problem.message} for problem in problems]


def look_at_rejected(stack: DeployedStack, hidden_for: int = HIDDEN_FOR) -> QueuePeek:
    """Return a look at the stack's RejectedQueue."""
    return QueuePeek(stack.sqs, stack.output("RejectedQueueUrl"), hidden_for=hidden_for)


@dataclass(frozen=True, slots=True)
class RejectedMessages:
    """The messages that were read from the RejectedQueue, the oldest first."""

    held: Counts
    listed: list[RejectedLetter]
    more: bool
    """Whether the limit left messages unread."""

    def document(self) -> RejectionListDocument:
        """Return the messages as JSON for scripts."""
        return {
            "messages": [one.document() for one in self.listed],
            "more": self.more,
            "about": self.held.all,
            "hidden": self.held.hidden,
        }


def list_rejected(stack: DeployedStack, limit: int) -> RejectedMessages:
    """Read at most `limit` rejected messages. Raises InspectorError as `QueuePeek` does."""
    with look_at_rejected(stack) as look:
        letters = list(look.letters(limit + 1))
    listed = sorted(map(read_rejection, letters[:limit]), key=lambda one: one.letter.sent_at)
    return RejectedMessages(look.counts, listed, len(letters) > limit)


def find_rejection(look: QueuePeek, asked: str) -> RejectedLetter:
    """Return the rejected message that `asked` names, which `look` then holds, as `chosen` does."""
    found = chosen(look.letters(MOST), asked, "message", "in the RejectedQueue")
    return read_rejection(found)
