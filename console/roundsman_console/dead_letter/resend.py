"""Resends rejected messages, and dead order events with corrections.

A message is assessed, then sent, then deleted from the queue that it was in.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman_console.dead_letter.assess import Judged, Verdict, judge, order_of
from roundsman_console.dead_letter.correct import corrected
from roundsman_console.dead_letter.documents import ResendDocument, ResentDocument
from roundsman_console.dead_letter.listing import Dead
from roundsman_console.dead_letter.peek import WHILE_ASKED, QueuePeek
from roundsman_console.dead_letter.queues import MessageKind, Source, counts, sources
from roundsman_console.dead_letter.rejections import (
    Rejection,
    problem_documents,
    read_rejection,
)
from roundsman_console.dead_letter.send import send_again
from roundsman_console.errors import InspectorError, Interrupted, aws_sentence
from roundsman_console.progress import Working, no_progress
from roundsman_console.stack.stack import DeployedStack


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

    def document(self) -> ResentDocument:
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
    dry_run: bool = False,
) -> Resent:
    """Send one rejected message, which `look` holds, back to its queue with corrections.

    `whole`, `sets` and `removes` are as in `correct.corrected`. A message that would be rejected
    again is not sent unless `anyway` is set; with `dry_run`, it is only assessed. It is sent before
    it is deleted: if the process ends in between, it is in both queues, and takes effect once.

    Raises InspectorError if the message did not come from a queue of this stack, if it is an event
    and the stack has no event reader (unless `anyway` is set), or if SQS does not accept a message
    of this size. Raises UncorrectableMessage and InvalidArgument as `corrected` does.
    """
    source = _source_of(stack, rejection)
    if not anyway:
        _check_readable(stack, source)
    body = corrected(
        rejection.body,
        whole=whole,
        sets=sets or (),
        removes=removes or (),
        events=stack.events if source.kind is MessageKind.ORDER else None,
    )
    judged = judge(stack, source, body, now())
    if dry_run or (judged.verdict is Verdict.REJECTED and not anyway):
        return Resent(rejection, source, body, judged, None)
    new_id = send_again(stack.sqs, source.url, body)
    look.delete(rejection.letter)
    return Resent(rejection, source, body, judged, new_id)


def send_corrected(
    stack: DeployedStack, look: QueuePeek, dead: Dead, body: str, *, anyway: bool, dry_run: bool
) -> tuple[Judged, str | None]:
    """Send a dead order event, which `look` holds, with another body; then delete the dead letter.

    Returns how the body is assessed, and the id of the sent message: None if it was not sent,
    because of `dry_run` or because it would be rejected or fail and `anyway` is not set.

    Raises InspectorError for another message than an order event: what the functions send each
    other is not for people to write. Raises it too if SQS does not accept a message of this size.
    """
    if dead.source.kind is not MessageKind.ORDER:
        raise InspectorError(
            f"{dead.letter.message_id} is a {dead.source.kind}, and only an order event can be "
            "corrected. Send it back as it is."
        )
    judged = judge(stack, dead.source, body, now())
    if dry_run or (judged.verdict in (Verdict.REJECTED, Verdict.FAILS) and not anyway):
        return judged, None
    new_id = send_again(stack.sqs, dead.source.url, body)
    for letter in (dead.letter, *dead.copies):
        look.delete(letter)
    return judged, new_id


def _is_readable(stack: DeployedStack, source: Source) -> bool:
    """Whether it can be known here if the queue's function would accept a message."""
    return source.kind is not MessageKind.ORDER or stack.events is not None


def _check_readable(stack: DeployedStack, source: Source) -> None:
    if not _is_readable(stack, source):
        raise InspectorError(
            "Whether submission would accept the event is not known without an event reader."
        )


def resent_document(tried: Sequence[Resent], *, left: int) -> ResendDocument:
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
    raise InspectorError(
        f"The message came from {came}, which is not a queue of {stack.name}. It was not sent."
    )


@dataclass(slots=True)
class ResendResult:
    """The result of resending all messages that would now be accepted."""

    looked: int
    """The number of messages that were read."""
    more: bool
    """Whether the queue has more messages than were read."""
    sent: list[Resent] = field(default_factory=list)
    error: InspectorError | None = None
    """What ended the sending early; None if all were tried."""

    @property
    def left(self) -> int:
        """The number of messages read that stay in the RejectedQueue."""
        return self.looked - len(self.sent)

    def document(self) -> ResendDocument:
        """Return the result as JSON for scripts."""
        document = resent_document(self.sent, left=self.left)
        document["more"] = self.more
        if self.error:
            document["outcome"] = "refused"
        return document


def resend_all(
    stack: DeployedStack,
    limit: int,
    *,
    confirm: Callable[[str], None],
    working: Working = no_progress,
) -> ResendResult:
    """Send every message that would now be accepted without corrections.

    At most `limit` messages are read. Events are left if the stack has no event reader. `confirm`
    is called with a question before the first message is sent; it raises an exception to send
    nothing. Raises InspectorError if a look into the RejectedQueue could move messages, and
    Interrupted on Ctrl-C while messages are sent: its `result` is the ResendResult until then.
    """
    url = stack.output("RejectedQueueUrl")
    counts(stack.sqs, url)  # raises if a look could move messages
    known = {source.physical: source for source in sources(stack)}
    with QueuePeek(stack.sqs, url, hidden_for=WHILE_ASKED) as look:
        with working("Assessing the rejected messages"):
            letters = list(look.letters(limit + 1))
            judged = [
                (one, judge(stack, known[one.queue], one.body, now()))
                for one in map(read_rejection, letters[:limit])
                if one.queue in known and _is_readable(stack, known[one.queue])
            ]
        takeable = [one for one, effect in judged if effect.verdict is not Verdict.REJECTED]
        result = ResendResult(looked=len(letters[:limit]), more=len(letters) > limit)
        if takeable:
            many = "1 message" if len(takeable) == 1 else f"{len(takeable)} messages"
            stay = result.looked - len(takeable)
            confirm(
                f"{many} would be accepted now, {stay} rejected again. Send those that would be "
                "accepted?"
            )
        with working("Sending"):
            try:
                result.error = _send_all(stack, look, takeable, result.sent)
            except KeyboardInterrupt as error:
                interrupted = Interrupted(f"Interrupted {_how_far(result.sent)}", result)
                result.error = interrupted
                raise interrupted from error
    return result


def _send_all(
    stack: DeployedStack, look: QueuePeek, takeable: Sequence[Rejection], sent: list[Resent]
) -> InspectorError | None:
    """Send the messages, and append the result of each to `sent`.

    Return the error that ended the sending early; None if all were tried.
    """
    try:
        for one in takeable:
            made = resend(stack, look, one, whole=None, sets=(), removes=(), anyway=False)
            sent += [made] if made.sent else []
    except (ClientError, BotoCoreError) as error:
        return InspectorError(f"{aws_sentence(error)} Stopped {_how_far(sent)}")
    return None


def _how_far(sent: Sequence[Resent]) -> str:
    return f"after {len(sent)}. The others were not moved."
