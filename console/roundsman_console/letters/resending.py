"""Sending rejected messages again: judged first, sent, and only then taken out of the queue."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from roundsman.aws.clock import now
from roundsman.values import Json
from roundsman_console.confirming import confirm
from roundsman_console.letters.correcting import corrected
from roundsman_console.letters.judging import Judged, Verdict, judge, order_of
from roundsman_console.letters.queues import Source, counts, sources
from roundsman_console.letters.reading import WHILE_ASKED, Look
from roundsman_console.letters.rejections import Rejection, read_rejection
from roundsman_console.letters.sending import send_again
from roundsman_console.letters.telling import SHORT_ID, problem_documents, say, working
from roundsman_console.sentences import ConsoleError
from roundsman_console.stack import Stack


@dataclass(frozen=True, slots=True)
class Resent:
    """What became of one message. `new_id` is None where it was not sent."""

    rejection: Rejection
    source: Source
    body: str = field(repr=False)
    judged: Judged
    new_id: str | None

    @property
    def sent(self) -> bool:
        """Whether it was sent, and taken out of the RejectedQueue."""
        return self.new_id is not None

    def lines(self) -> list[str]:
        """As people read it."""
        which = self.rejection.letter.message_id[:SHORT_ID]
        if not self.sent:
            return [
                f"{which} would be rejected again, so it was not sent:",
                *(f"- {problem}" for problem in self.judged.problems),
            ]
        order = order_of(self.body)
        follow = f" Follow it with: roundsman show {order}" if order else ""
        return [f"Done: {which} is sent to {self.source.name} ({self.judged.why}).{follow}"]

    def document(self) -> dict[str, Json]:
        """As scripts read it."""
        return {
            "messageId": self.rejection.letter.message_id,
            "sentAs": self.new_id,
            "queue": self.source.physical,
            "orderId": order_of(self.body),
            "verdict": self.judged.verdict.value,
            "why": self.judged.why,
            "problems": problem_documents(self.judged.problems),
        }


def resend(
    stack: Stack,
    look: Look,
    rejection: Rejection,
    *,
    whole: str | None,
    sets: Sequence[str] | None,
    removes: Sequence[str] | None,
    anyway: bool,
) -> Resent:
    """Send one message, which the look holds, with its corrections.

    It is sent before it is deleted: a death between the two leaves it in both queues, and what it
    asks is done once. Raises ConsoleError where it came from no queue of this stack.
    """
    source = _source_of(stack, rejection)
    body = corrected(rejection.body, whole=whole, sets=sets or (), removes=removes or ())
    judged = judge(stack, source, body, now())
    if judged.verdict is Verdict.REJECTED and not anyway:
        return Resent(rejection, source, body, judged, None)
    new_id = send_again(stack.sqs, source.url, body)
    look.delete(rejection.letter)
    return Resent(rejection, source, body, judged, new_id)


def resent_document(tried: Sequence[Resent], *, left: int) -> dict[str, Json]:
    """What was tried, as scripts read it; `left` messages stay where they are."""
    return {
        "command": "resend",
        "outcome": "done" if all(one.sent for one in tried) else "refused",
        "messages": [one.document() for one in tried],
        "left": left,
    }


def _source_of(stack: Stack, rejection: Rejection) -> Source:
    for source in sources(stack):
        if source.physical == rejection.queue:
            return source
    came = rejection.queue or "no queue"
    raise ConsoleError(f"It came from {came}, which is none of {stack.name}'s: it was not sent.")


def resend_all(stack: Stack, limit: int, *, yes: bool, as_json: bool) -> None:
    """Send every message that would be taken now as it is, of so many that are looked at."""
    url = stack.output("RejectedQueueUrl")
    counts(stack.sqs, url)  # refuses to look where that would move messages
    known = {source.physical: source for source in sources(stack)}
    sent: list[Resent] = []
    with Look(stack.sqs, url, hidden_for=WHILE_ASKED) as look:
        with working("Judging what was rejected", quiet=as_json):
            judged = [
                (one, judge(stack, known[one.queue], one.body, now()))
                for one in map(read_rejection, look.letters(limit))
                if one.queue in known
            ]
        takeable = [one for one, said in judged if said.verdict is not Verdict.REJECTED]
        left = len(judged) - len(takeable)
        if takeable:
            many = "1 message" if len(takeable) == 1 else f"{len(takeable)} messages"
            confirm(f"{many} would be taken now, {left} rejected again. Send those?", yes=yes)
        with working("Sending", quiet=as_json):
            for one in takeable:
                made = resend(stack, look, one, whole=None, sets=(), removes=(), anyway=False)
                sent += [made] if made.sent else []
    if as_json:
        print(json.dumps(resent_document(sent, left=len(judged) - len(sent))))
        return
    say(f"{len(sent)} sent, {len(judged) - len(sent)} left: they would be rejected again.")
