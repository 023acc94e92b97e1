"""Sends messages that were set aside to their queue again: one with corrections, or several.

A message is assessed, then sent, then deleted from where it lay. If the process ends in between, it
is in both queues; it takes effect once, because the functions are idempotent.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman.wire.dead_letters import ATTRIBUTE, REDRIVEN
from roundsman.wire.limits import MESSAGE_LIMIT, wire_text
from roundsman_console.acts.set_aside.correct import corrected
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import pause
from roundsman_console.base.errors import InspectorError, Interrupted, aws_sentence
from roundsman_console.base.progress import Working, no_progress
from roundsman_console.facts.set_aside.assess import JudgedMessage, ResendVerdict, judge, order_of
from roundsman_console.facts.set_aside.documents import (
    MessageDocument,
    RedriveDocument,
    ResendDocument,
)
from roundsman_console.facts.set_aside.messages import SetAside, SetAsideQueue, problem_documents
from roundsman_console.facts.set_aside.peek import (
    HIDDEN_FOR,
    MOST,
    WHILE_ASKED,
    QueuePeek,
    chosen,
)
from roundsman_console.facts.set_aside.queues import Source

if TYPE_CHECKING:
    from mypy_boto3_sqs.type_defs import (
        MessageAttributeValueOutputTypeDef,
        MessageAttributeValueTypeDef,
        SendMessageRequestTypeDef,
    )

EACH = 0.25
"""Seconds that one message takes in addition to the pause of the rate, on a slow connection to AWS:
to read, assess, send and delete it."""


@dataclass(frozen=True, slots=True)
class Resent:
    """The result of sending one message again."""

    message: SetAside
    source: Source
    """The queue that the message came from."""
    body: str = field(repr=False)
    """The body after the corrections."""
    judged: JudgedMessage
    new_id: str | None
    """The message id of the sent message; None if it was not sent."""

    @property
    def sent(self) -> bool:
        """Whether the message was sent, and deleted from where it lay."""
        return self.new_id is not None

    def document(self) -> MessageDocument:
        """Return the result as JSON for scripts."""
        return self.message.document(
            self.judged,
            sent_as=self.new_id,
            queue=self.source.physical,
            order_id=order_of(self.body),
            problems=problem_documents(self.judged.problems),
        )


def send_corrected(
    stack: DeployedStack,
    look: QueuePeek,
    message: SetAside,
    *,
    whole: str | None,
    sets: Sequence[str] = (),
    removes: Sequence[str] = (),
    anyway: bool,
    dry_run: bool = False,
) -> Resent:
    """Send one message, which `look` holds, back to its queue with corrections.

    `whole`, `sets` and `removes` are as in `correct.corrected`. A message that would be rejected
    again, or a dead letter that would fail again, is not sent unless `anyway` is set; with
    `dry_run`, it is only assessed.

    Raises InspectorError if the message did not come from a queue of this stack; if it is a dead
    letter and no order event, because what the functions send each other is not for people to
    write; if it is a rejected event and the stack has no event reader (unless `anyway` is set); or
    if SQS does not accept a message of this size. Raises UncorrectableMessage and InvalidArgument
    as `corrected` does.
    """
    source = _source_of(stack, message)
    if message.is_dead and not message.is_event:
        raise InspectorError(
            f"{message.message_id} is a {source.kind}, and only an order event can be "
            "corrected. Send it back as it is."
        )
    if not anyway and not message.is_dead and not _is_readable(stack, message):
        raise InspectorError(
            "Whether submission would accept the event is not known without an event reader."
        )
    events = stack.events if message.is_event else None
    body = corrected(message.body, whole=whole, sets=sets, removes=removes, events=events)
    body = message.with_id(body)
    judged = judge(stack, source, body, now())
    fails = message.is_dead and judged.verdict is ResendVerdict.FAILS
    refused = not anyway and (fails or judged.verdict is ResendVerdict.REJECTED)
    new_id = None if dry_run or refused else _send(look, message, source, body)
    return Resent(message, source, body, judged, new_id)


def _source_of(stack: DeployedStack, message: SetAside) -> Source:
    if message.source is None:
        raise InspectorError(
            f"The message came from {message.queue or 'no queue'}, which is not a queue of "
            f"{stack.name}. It was not sent."
        )
    return message.source


def _is_readable(stack: DeployedStack, message: SetAside) -> bool:
    """Whether it can be known here if the queue's function would accept the message."""
    return not message.is_event or stack.events is not None


def _send(look: QueuePeek, message: SetAside, source: Source, body: str) -> str:
    """Send the body to the queue, delete the message that `look` holds, and return the new id.

    A dead letter that is not changed keeps its message group and attributes, except the reason of
    the failure. Its attribute `Redriven` counts how often it was sent back. Raises InspectorError
    if the body is empty or larger than SQS allows.
    """
    text = wire_text(body)
    size = len(text.encode("utf-8", "surrogatepass"))
    if not text.strip() or size > MESSAGE_LIMIT:
        raise InspectorError(f"The message has {size} bytes; SQS accepts 1 to {MESSAGE_LIMIT}.")
    request: SendMessageRequestTypeDef = {"QueueUrl": source.url, "MessageBody": text}
    if message.is_dead and body == message.with_id(message.body):
        again = str(message.sent_back + 1)
        kept = message.letter.attributes.items()
        request["MessageAttributes"] = {
            **{name: _as_sent(value) for name, value in kept if name != ATTRIBUTE},
            REDRIVEN: {"DataType": "Number", "StringValue": again},
        }
        if message.letter.group:
            request["MessageGroupId"] = message.letter.group
    new_id = source.sqs.send_message(**request)["MessageId"]
    for letter in message.letters:
        look.delete(letter)
    return new_id


def _as_sent(value: "MessageAttributeValueOutputTypeDef") -> "MessageAttributeValueTypeDef":
    if "BinaryValue" in value:
        return {"DataType": value["DataType"], "BinaryValue": value["BinaryValue"]}
    return {"DataType": value["DataType"], "StringValue": value.get("StringValue", "")}


@dataclass(frozen=True, slots=True)
class SendOptions:
    """Which messages of a place are sent again, unchanged."""

    limit: int
    """The maximum number of messages that are read; without effect if `only` is set."""
    only: str | None = None
    """The id of one message, or the beginning of it; None for all messages."""
    rate: float | None = None
    """The maximum number of messages that are sent per second; None for no maximum."""
    anyway: bool = False
    """Whether messages are sent that would fail again."""


@dataclass(frozen=True, slots=True)
class Assessed:
    """A message, and the predicted effect of sending it again without corrections."""

    message: SetAside
    judged: JudgedMessage
    goes: bool
    """Whether it is sent."""


@dataclass(slots=True, kw_only=True)
class SendResult:
    """The result of sending several messages again."""

    assessed: Sequence[Assessed]
    """The messages that were read."""
    more: bool
    """Whether the queue has more messages than were read."""
    sent: list[Resent] = field(default_factory=list)
    error: InspectorError | None = None
    """What ended the sending early; None if all were tried."""
    dry: bool = False
    """Whether nothing was sent because a person is to agree first."""

    @property
    def going(self) -> list[Assessed]:
        """The messages that are sent, unless this is dry."""
        return [one for one in self.assessed if one.goes]

    @property
    def left(self) -> int:
        """The number of messages read that stay where they are."""
        return len(self.assessed) - len(self.sent)

    def send_each(self, send: Callable[[Assessed], Resent]) -> None:
        """Send the messages one by one. An error of AWS becomes `error`.

        Raises Interrupted on Ctrl-C: its `result` is this one.
        """
        try:
            for one in self.going:
                self.sent.append(send(one))
        except (ClientError, BotoCoreError) as error:
            self.error = InspectorError(f"{aws_sentence(error)} Stopped {self._how_far()}")
        except KeyboardInterrupt as error:
            self.error = Interrupted(f"Interrupted {self._how_far()}", self)
            raise self.error from error

    def _how_far(self) -> str:
        return f"after {len(self.sent)}. The others were not moved."

    def redrive_document(self, queue: str) -> RedriveDocument:
        """Return the result for the dead letters of a queue as JSON for scripts."""
        verdicts = Counter(one.judged.verdict for one in self.assessed)
        sent = {one.message.message_id for one in self.sent}
        return RedriveDocument(
            queue=queue,
            dry_run=self.dry,
            verdicts={verdict: verdicts[verdict] for verdict in ResendVerdict},
            came_back=sum(one.message.sent_back > 0 for one in self.assessed),
            sent=len(self.sent),
            left=self.left,
            more=self.more,
            messages=[
                one.message.document(one.judged, sent=one.message.message_id in sent)
                for one in self.assessed
            ],
        )

    def resend_document(self) -> ResendDocument:
        """Return the result for rejected messages as JSON for scripts."""
        return resend_document(self.sent, self.left, more=self.more, whole=self.error is None)


def resend_document(
    tried: Sequence[Resent], left: int, *, more: bool = False, whole: bool = True
) -> ResendDocument:
    """Return the results as JSON for scripts.

    `left` is the number of messages that stay in the RejectedQueue.
    """
    return ResendDocument(
        outcome="done" if whole and all(one.sent for one in tried) else "refused",
        messages=[one.document() for one in tried],
        left=left,
        more=more,
    )


def send_all(
    place: SetAsideQueue,
    wanted: SendOptions,
    agreed: Callable[[SendResult], bool],
    *,
    working: Working = no_progress,
) -> SendResult:
    """Assess messages, and send them again unchanged if `agreed` returns true.

    All are read and sent within one look, so that exactly the assessed ones are sent. Dead letters
    that would fail again stay, and rejected messages of which it is not known that they would be
    accepted. `agreed` is called with the assessed messages before the first one is sent.

    Raises InspectorError if the queue does not exist, or moves messages when it is read; NotFound
    or InvalidArgument if `SendOptions.only` matches no message or several; and Interrupted on
    Ctrl-C while messages are sent: its `result` is the SendResult until then.
    """
    slow = 0.0 if wanted.rate is None else 1 / wanted.rate
    longest = HIDDEN_FOR + int(wanted.limit * (slow + EACH)) if wanted.rate else WHILE_ASKED
    with place.look(longest) as look:
        with working(f"Assessing each {place.noun}"):
            found, more = _asked(place, wanted, look)
            assessed = [_assess(place.stack, one, anyway=wanted.anyway) for one in found]
        result = SendResult(assessed=assessed, more=more)
        result.dry = not agreed(result)

        def send(one: Assessed) -> Resent:
            if result.sent and slow:
                pause(slow)
            message, source = one.message, _source_of(place.stack, one.message)
            body = message.with_id(message.body)
            return Resent(message, source, body, one.judged, _send(look, message, source, body))

        if result.going and not result.dry:
            with working(f"Sending {len(result.going)}"):
                result.send_each(send)
    return result


def _asked(
    place: SetAsideQueue, wanted: SendOptions, look: QueuePeek
) -> tuple[list[SetAside], bool]:
    """Return the messages that are asked for, and whether the place has more."""
    most = MOST if wanted.only is not None else wanted.limit
    letters = list(look.letters(most + 1))
    found = list(place.read(letters[:most]))
    if wanted.only is not None:
        return [chosen(found, wanted.only, place.noun, place.where)], False
    return found, len(letters) > most


def _assess(stack: DeployedStack, one: SetAside, *, anyway: bool) -> Assessed:
    if one.source is None:
        why = "it came from no queue of the stack"
        return Assessed(one, JudgedMessage("", ResendVerdict.REJECTED, why), goes=False)
    judged = judge(stack, one.source, one.body, now())
    stays = ResendVerdict.FAILS if one.is_dead else ResendVerdict.REJECTED
    known = one.is_dead or _is_readable(stack, one)
    return Assessed(one, judged, goes=anyway or (known and judged.verdict is not stays))
