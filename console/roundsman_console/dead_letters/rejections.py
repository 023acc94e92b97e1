"""What the RejectedQueue keeps of a message, read again. Pure."""

from dataclasses import dataclass

from roundsman.errors import InvalidMessage, Problem
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object
from roundsman_console.dead_letters.peek import Letter


@dataclass(frozen=True, slots=True)
class Rejection:
    """A rejected message: the name (in SQS) of its queue, what was wrong, and its text."""

    letter: Letter
    queue: str
    problems: tuple[Problem, ...]
    body: str


def read_rejection(letter: Letter) -> Rejection:
    """The rejection that a letter of the RejectedQueue is.

    What nobody of the stack put there is one too: of no queue, with that as its problem.
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
