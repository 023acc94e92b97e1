"""Reads the rejected messages in the RejectedQueue."""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage, Problem
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object
from roundsman_console.dead_letters.peek import Letter


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
        stranger = Problem("", "this was not put here by a function of the stack")
        return Rejection(letter, "", (stranger,), letter.body)
    found = [
        Problem(str(one.get("path", "")), str(one.get("message", "")))
        for one in (problems if isinstance(problems, list) else [])
        if isinstance(one, dict)
    ]
    return Rejection(letter, queue, tuple(found) or (Problem("", "no reason is given"),), body)
