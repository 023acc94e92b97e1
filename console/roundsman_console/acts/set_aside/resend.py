"""Resends rejected messages, and dead order events with corrections.

A message is assessed, then sent, then deleted from the queue that it was in.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from roundsman.aws.clock import now
from roundsman.submission.events import with_signal_id
from roundsman_console.acts.set_aside.correct import corrected
from roundsman_console.acts.set_aside.send import SendResult, send_again
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError
from roundsman_console.base.progress import Working, no_progress
from roundsman_console.facts.set_aside.assess import JudgedMessage, ResendVerdict, judge, order_of
from roundsman_console.facts.set_aside.documents import ResendDocument, ResentDocument
from roundsman_console.facts.set_aside.listing import Dead
from roundsman_console.facts.set_aside.peek import WHILE_ASKED, Letter, QueuePeek
from roundsman_console.facts.set_aside.queues import MessageKind, Source, sources
from roundsman_console.facts.set_aside.rejections import (
    RejectedLetter,
    look_at_rejected,
    problem_documents,
    read_rejection,
)


@dataclass(frozen=True, slots=True)
class Resent:
    """The result of resending one message."""

    rejection: RejectedLetter
    source: Source
    """The queue that the message came from."""
    body: str = field(repr=False)
    """The body after the corrections."""
    judged: JudgedMessage
    new_id: str | None
    """The message id of the sent message; None if it was not sent."""

    @property
    def sent(self) -> bool:
        """Whether the message was sent and deleted from the RejectedQueue."""
        return self.new_id is not None

    def document(self) -> ResentDocument:
        """Return the result as JSON for scripts."""
        return {
            "messageId": self.rejection.message_id,
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
    rejection: RejectedLetter,
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
    if source is None:
        raise InspectorError(
            f"The message came from {rejection.queue or 'no queue'}, which is not a queue of "
            f"{stack.name}. It was not sent."
        )
    if not anyway and not _is_readable(stack, source):
        raise InspectorError(
            "Whether submission would accept the event is not known without an event reader."
        )
    body = corrected(
        rejection.body,
        whole=whole,
        sets=sets or (),
        removes=removes or (),
        events=stack.events if source.kind is MessageKind.ORDER else None,
    )
    body = _with_signal_id(source, body, rejection.message_id)
    refused = () if anyway else (ResendVerdict.REJECTED,)
    judged, new_id = _send(stack, look, source, [rejection.letter], body, refused, dry_run=dry_run)
    return Resent(rejection, source, body, judged, new_id)


def send_corrected(
    stack: DeployedStack, look: QueuePeek, dead: Dead, body: str, *, anyway: bool, dry_run: bool
) -> tuple[JudgedMessage, str | None]:
    """Send a dead order event, which `look` holds, with another body; then delete the dead letter.

    Returns how the body is assessed, and the id of the sent message: None if it was not sent,
    because of `dry_run` or because it would be rejected or fail and `anyway` is not set.

    Raises InspectorError for another message than an order event: what the functions send each
    other is not for people to write. Raises it too if SQS does not accept a message of this size.
    """
    if dead.source.kind is not MessageKind.ORDER:
        raise InspectorError(
            f"{dead.message_id} is a {dead.source.kind}, and only an order event can be "
            "corrected. Send it back as it is."
        )
    body = _with_signal_id(dead.source, body, dead.first_id)
    refused = () if anyway else (ResendVerdict.REJECTED, ResendVerdict.FAILS)
    return _send(stack, look, dead.source, dead.letters, body, refused, dry_run=dry_run)


def _send(
    stack: DeployedStack,
    look: QueuePeek,
    source: Source,
    letters: Sequence[Letter],
    body: str,
    refused: Collection[ResendVerdict],
    *,
    dry_run: bool,
) -> tuple[JudgedMessage, str | None]:
    """Send a message with this body and then delete the letters, unless its verdict is refused."""
    judged = judge(stack, source, body, now())
    if dry_run or judged.verdict in refused:
        return judged, None
    new_id = send_again(stack.sqs, source.url, body)
    for letter in letters:
        look.delete(letter)
    return judged, new_id


def _is_readable(stack: DeployedStack, source: Source) -> bool:
    """Whether it can be known here if the queue's function would accept a message."""
    return source.kind is not MessageKind.ORDER or stack.events is not None


def _source_of(stack: DeployedStack, one: RejectedLetter) -> Source | None:
    """Return the queue that the message came from; None if that is no queue of the stack."""
    return next((each for each in sources(stack) if each.physical == one.queue), None)


def _with_signal_id(source: Source, body: str, message_id: str) -> str:
    """The body with the id of a signal that has none, so that it counts once if it is in both
    queues."""
    return with_signal_id(body, message_id) if source.kind is MessageKind.ORDER else body


@dataclass(frozen=True, slots=True)
class Assessed:
    """A rejected message, and the predicted effect of sending it again without corrections."""

    rejection: RejectedLetter
    judged: JudgedMessage
    goes: bool
    """Whether it is sent: it is known that it would be accepted."""


@dataclass(slots=True, kw_only=True)
class ResendResult(SendResult[Resent]):
    """The result of resending all messages that would now be accepted."""

    assessed: Sequence[Assessed]
    """The messages that were read."""

    @property
    def going(self) -> list[RejectedLetter]:
        """The messages that are sent."""
        return [one.rejection for one in self.assessed if one.goes]

    @property
    def left(self) -> int:
        """The number of messages read that stay in the RejectedQueue."""
        return len(self.assessed) - len(self.sent)

    def document(self) -> ResendDocument:
        """Return the result as JSON for scripts."""
        whole = self.error is None
        return {**resent_document(self.sent, self.left, whole=whole), "more": self.more}


def resent_document(tried: Sequence[Resent], left: int, *, whole: bool = True) -> ResendDocument:
    """Return the results as JSON for scripts.

    `left` is the number of messages that stay in the RejectedQueue.
    """
    return {
        "command": "resend",
        "outcome": "done" if whole and all(one.sent for one in tried) else "refused",
        "messages": [one.document() for one in tried],
        "left": left,
        "more": False,
    }


def resend_all(
    stack: DeployedStack,
    limit: int,
    agreed: Callable[[ResendResult], bool],
    *,
    working: Working = no_progress,
) -> ResendResult:
    """Send every message that would now be accepted without corrections, if `agreed` returns true.

    At most `limit` messages are read. Events are left if the stack has no event reader. `agreed`
    is called with the assessed messages before the first one is sent. Raises InspectorError if a
    look into the RejectedQueue could move messages, and Interrupted on Ctrl-C while messages are
    sent: its `result` is the ResendResult until then.
    """
    with look_at_rejected(stack, WHILE_ASKED) as look:
        with working("Assessing the rejected messages"):
            letters = list(look.letters(limit + 1))
            found = [_assess(stack, read_rejection(letter)) for letter in letters[:limit]]
        result = ResendResult(assessed=found, more=len(letters) > limit)

        def send(one: RejectedLetter) -> None:
            made = resend(stack, look, one, whole=None, sets=(), removes=(), anyway=False)
            result.sent += [made] if made.sent else []

        result.dry = not agreed(result)
        if not result.dry:
            with working("Sending"):
                result.send_each(result.going, send)
    return result


def _assess(stack: DeployedStack, one: RejectedLetter) -> Assessed:
    source = _source_of(stack, one)
    if source is None:
        why = "it came from no queue of the stack"
        return Assessed(one, JudgedMessage("", ResendVerdict.REJECTED, why), goes=False)
    judged = judge(stack, source, one.body, now())
    goes = judged.verdict is not ResendVerdict.REJECTED and _is_readable(stack, source)
    return Assessed(one, judged, goes)
