"""Sending rejected messages again: judged first, sent, and only then taken out of the queue."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman.model.json import Json
from roundsman_console.cli_errors import FAILED, INTERRUPTED, ConsoleError, aws_sentence
from roundsman_console.confirm import confirm
from roundsman_console.dead_letters.assess import Judged, Verdict, judge, order_of
from roundsman_console.dead_letters.correct import corrected
from roundsman_console.dead_letters.format import SHORT_ID, problem_documents, say, working
from roundsman_console.dead_letters.peek import WHILE_ASKED, QueuePeek
from roundsman_console.dead_letters.queues import Source, counts, sources
from roundsman_console.dead_letters.rejections import Rejection, read_rejection
from roundsman_console.dead_letters.send import send_again
from roundsman_console.read.stack import DeployedStack


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
    stack: DeployedStack,
    look: QueuePeek,
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
        "more": False,
    }


def _source_of(stack: DeployedStack, rejection: Rejection) -> Source:
    for source in sources(stack):
        if source.physical == rejection.queue:
            return source
    came = rejection.queue or "no queue"
    raise ConsoleError(f"It came from {came}, which is none of {stack.name}'s: it was not sent.")


def resend_all(stack: DeployedStack, limit: int, *, yes: bool, as_json: bool) -> None:
    """Send every message that would be taken now as it is, of so many that are looked at."""
    url = stack.output("RejectedQueueUrl")
    counts(stack.sqs, url)  # refuses to look where that would move messages
    known = {source.physical: source for source in sources(stack)}
    sent: list[Resent] = []
    broken: ConsoleError | None = None
    with QueuePeek(stack.sqs, url, hidden_for=WHILE_ASKED) as look:
        with working("Judging what was rejected", quiet=as_json):
            letters = list(look.letters(limit + 1))
            judged = [
                (one, judge(stack, known[one.queue], one.body, now()))
                for one in map(read_rejection, letters[:limit])
                if one.queue in known
            ]
        takeable = [one for one, said in judged if said.verdict is not Verdict.REJECTED]
        looked, more = len(letters[:limit]), len(letters) > limit
        if takeable:
            many = "1 message" if len(takeable) == 1 else f"{len(takeable)} messages"
            stay = looked - len(takeable)
            confirm(f"{many} would be taken now, {stay} rejected again. Send those?", yes=yes)
        with working("Sending", quiet=as_json):
            broken = _send_all(stack, look, takeable, sent)
    if as_json:
        told = resent_document(sent, left=looked - len(sent)) | {"more": more}
        print(json.dumps(told | ({"outcome": "refused"} if broken else {})))
    else:
        stay = looked - len(sent)
        say(f"{len(sent)} sent, {stay} left{'' if broken else ': they would be rejected again'}.")
        if more:
            say(f"There are more than these {limit}: raise --limit, or say it again.")
    if broken is not None:
        raise broken


def _send_all(
    stack: DeployedStack, look: QueuePeek, takeable: Sequence[Rejection], sent: list[Resent]
) -> ConsoleError | None:
    """Send each, noting it in `sent`; what broke it off, with the code to end with."""
    try:
        for one in takeable:
            made = resend(stack, look, one, whole=None, sets=(), removes=(), anyway=False)
            sent += [made] if made.sent else []
    except KeyboardInterrupt:
        why, code = "Interrupted", INTERRUPTED
    except (ClientError, BotoCoreError) as error:
        why, code = f"{aws_sentence(error)} Broken off", FAILED
    else:
        return None
    return ConsoleError(f"{why} after {len(sent)}: the rest is where it was.", code)
