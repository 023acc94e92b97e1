"""Resends rejected messages: assesses a message, sends it, then deletes it from RejectedQueue."""

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
    """The result of resending one message."""

    rejection: Rejection
    source: Source
    """The queue that the message came from."""
    body: str = field(repr=False)
    """The body after the corrections."""
    judged: Judged
    new_id: str | None
    """The message id of the sent message; None if it was not sent."""

    @property
    def sent(self) -> bool:
        """Whether the message was sent and deleted from the RejectedQueue."""
        return self.new_id is not None

    def lines(self) -> list[str]:
        """Return the result as lines of text for people."""
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
        """Return the result as JSON for scripts."""
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
    """Send one rejected message, which `look` holds, back to its queue with corrections.

    `whole`, `sets` and `removes` are as in `correct.corrected`. A message that would be rejected
    again is not sent unless `anyway` is set. It is sent before it is deleted: if the process ends
    in between, it is in both queues, and takes effect once. Raises ConsoleError if the message did
    not come from a queue of this stack, or if a correction cannot be made.
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
    """Return the results as JSON for scripts.

    `left` is the number of messages that stay in the RejectedQueue.
    """
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
    """Send every message that would now be accepted without corrections, and print the result.

    At most `limit` messages are read. Asks for confirmation unless `yes` is set. Raises
    ConsoleError if the user does not confirm, or if sending was interrupted or failed.
    """
    url = stack.output("RejectedQueueUrl")
    counts(stack.sqs, url)  # raises if a look could move messages
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
    """Send the messages, and append the result of each to `sent`.

    Return the error that ended the sending early; None if all were tried.
    """
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
