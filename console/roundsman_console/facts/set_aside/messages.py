"""Messages that were set aside, dead letters and rejected messages: listed, found and held.

A dead letter is a message that failed every delivery. A rejected message can never be handled.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace

from roundsman.errors import InvalidMessage, Problem
from roundsman.submission.events import with_signal_id
from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter, read_dead_letter
from roundsman.wire.fields import Fields
from roundsman.wire.messages import read_object
from roundsman_console.aws.queues import Counts
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.set_aside.assess import JudgedMessage, order_of
from roundsman_console.facts.set_aside.beginning import beginning_of, measure_of, sha256_of
from roundsman_console.facts.set_aside.documents import (
    DeadQueueDocument,
    MessageDocument,
    MessageListDocument,
    ProblemDocument,
)
from roundsman_console.facts.set_aside.peek import (
    HIDDEN_FOR,
    MOST,
    Letter,
    QueuePeek,
    chosen,
    times_sent_back,
)
from roundsman_console.facts.set_aside.queues import (
    MessageKind,
    Source,
    find_source,
    sources,
)

NO_REASON = "the function ended before it could give a reason: crash, time-out or out of memory"
CRASHES = '?"platform.runtimeDone" ?"Task timed out" ?"Runtime exited" ?"MemoryError"'
"""A filter pattern of CloudWatch Logs for functions that crashed, timed out or ran out of memory.

Lambda logs `platform.runtimeDone` for each failed invocation, with its status (`timeout`, `error`,
`failure`); for other invocations only at SystemLogLevel DEBUG. It logs `Task timed out` if the log
format is not JSON.
"""


@dataclass(frozen=True, slots=True)
class SetAside:
    """A message that was set aside: why, since when, what it is about, and where it came from."""

    letter: Letter
    """The message as it lies there."""
    body: str = field(repr=False)
    """The body of the message that was set aside."""
    source: Source | None
    """The queue that it came from; None if that is no queue of the stack."""
    queue: str
    """The name of that queue: of a dead letter in the template, of a rejected message in SQS. Empty
    if it is unknown."""
    problems: tuple[Problem, ...]
    """Why it was set aside; never empty."""
    is_dead: bool = False
    """Whether it is a dead letter; else it was rejected."""
    attached: DeadLetter | None = None
    """The reason that the function attached to a dead letter; None if SQS moved it."""
    copies: tuple[Letter, ...] = ()
    """Further letters of the same message. The function can end after it has sent the first letter
    and before it deletes the message; then SQS moves the message too."""

    @property
    def message_id(self) -> str:
        """The id of the letter."""
        return self.letter.message_id

    @property
    def letters(self) -> tuple[Letter, ...]:
        """The letter and its copies."""
        return (self.letter, *self.copies)

    @property
    def order(self) -> str | None:
        """The id of its order; None if the body has none."""
        return order_of(self.body)

    def about(self, stack: DeployedStack) -> str:
        """Return what it is about, in words: its order, or what it begins with.

        Without an order id, and if nothing of it may be shown, that is its size and its hash.
        """
        if self.order is not None:
            return self.order
        return f"no order id: {beginning_of(stack, self.body) or self.measure}"

    @property
    def measure(self) -> str:
        """Its size and its hash, in words."""
        return measure_of(self.body)

    @property
    def came_from(self) -> str:
        """Where it came from, in words: its queue, or who sent a message of another origin."""
        if self.queue:
            return f"sent to {self.queue}"
        return f"sent by {self.letter.sender}" if self.letter.sender else "of unknown origin"

    @property
    def size(self) -> int:
        """The size of the body in bytes."""
        return len(self.body.encode("utf-8", "surrogatepass"))

    @property
    def reason(self) -> str:
        """Why it was set aside, in words."""
        return "; ".join(map(str, self.problems))

    @property
    def sent_at(self) -> int:
        """When a dead letter was first sent, or a rejected message was rejected, in epoch ms."""
        return self.attached.sent_at if self.attached else self.letter.sent_at

    @property
    def receives(self) -> int:
        """How often its function received a dead letter; how often a rejected message was read.

        The receive count of SQS also counts each look into the dead-letter queue.
        """
        if self.attached:
            return self.attached.receives
        dead = self.is_dead and self.source
        return dead.policy.most_receives if dead else self.letter.receives

    @property
    def sent_back(self) -> int:
        """How often an operator has sent a dead letter back so far."""
        return times_sent_back(self.letter.attributes)

    @property
    def is_event(self) -> bool:
        """Whether it is an event for submission, which people write, and so may correct."""
        return self.source is not None and self.source.kind is MessageKind.ORDER

    def with_id(self, body: str) -> str:
        """Return the body with the id of a signal that has none: it counts once if it is sent
        again and the message stays."""
        first = self.attached.message_id if self.attached else self.message_id
        return with_signal_id(body, first) if self.is_event else body

    def log_query(self, stack: str) -> str:
        """Return the `aws logs` command that finds the failure in the log of a dead letter's
        function. `stack` is the name of the stack."""
        group = f"/aws/lambda/{stack}/{self.source.function if self.source else self.queue}"
        found = f"'\"{self.attached.message_id}\"'" if self.attached else f"'{CRASHES}'"
        if self.attached and self.attached.log_group:
            group = self.attached.log_group
        return (
            f"aws logs filter-log-events --log-group-name {group} "
            f"--start-time {self.sent_at} --filter-pattern {found}"
        )

    def document(self, judged: JudgedMessage | None = None, **more: object) -> MessageDocument:
        """Return what --json says of the message, of its assessment, and `more` fields."""
        make: Callable[..., MessageDocument] = MessageDocument
        attached = self.attached
        own: dict[str, object] = {
            "message_id": self.message_id,
            "queue": self.queue or None,
            "order_id": self.order,
            "receives": self.receives,
            "bytes": self.size,
            "sha256": sha256_of(self.body),
        }
        if self.is_dead:
            own |= {
                "reason": self.reason,
                "reason_known": attached is not None,
                "error_type": attached and attached.error_type,
                "sent_at": self.sent_at,
                "died_at": attached and attached.died_at,
                "sent_back": self.sent_back,
                "copies": len(self.copies),
            }
        else:
            why = problem_documents(self.problems)
            own |= {"rejected_at": self.sent_at, "problems": why}
        if judged is not None:
            own |= {"what": judged.what, "verdict": judged.verdict, "why": judged.why}
        return make(**own | more)

    def whole_document(self, judged: JudgedMessage, stack: str, body: str) -> MessageDocument:
        """Return what is said of a dead letter that is shown; `body` is its body as it is shown."""
        return self.document(
            judged,
            error_at=self.attached.error_at if self.attached else (),
            problems=problem_documents(judged.problems),
            log=self.log_query(stack),
            body=body,
        )


def problem_documents(problems: tuple[Problem, ...]) -> list[ProblemDocument]:
    """Return the problems as JSON for scripts."""
    return [{"path": problem.path, "message": problem.message} for problem in problems]


@dataclass(frozen=True, slots=True)
class SetAsideQueue:
    """A queue where messages lie that were set aside."""

    stack: DeployedStack = field(repr=False, compare=False)
    source: Source | None
    """The queue whose dead letters it has; None for the RejectedQueue, with messages of all."""

    @property
    def noun(self) -> str:
        """What one of its messages is called."""
        return "dead letter" if self.source else "message"

    @property
    def nouns(self) -> str:
        """What its messages are called."""
        return "dead letters" if self.source else "rejected messages"

    @property
    def where(self) -> str:
        """Where its messages are, in words."""
        return f"of {self.source.name}" if self.source else "in the RejectedQueue"

    def look(self, hidden_for: int = HIDDEN_FOR) -> QueuePeek:
        """Return a look into it. Raises InspectorError if the stack has no such queue."""
        url = self.source.dead_url if self.source else self.stack.output("RejectedQueueUrl")
        return QueuePeek(self.stack.sqs, url, hidden_for=hidden_for)

    def read(self, letters: Iterable[Letter]) -> Iterator[SetAside]:
        """Yield the messages of its letters."""
        if self.source is not None:
            yield from dead_letters(self.source, letters)
            return
        known = {one.physical: one for one in sources(self.stack)}
        for letter in letters:
            yield _rejection(letter, known)


def rejected_queue(stack: DeployedStack) -> SetAsideQueue:
    """Return the place of the rejected messages."""
    return SetAsideQueue(stack, None)


def dead_queues(stack: DeployedStack, queue: str | None = None) -> list[SetAsideQueue]:
    """Return the places of the dead letters of a queue, or of all (None). Raises NotFound."""
    asked = [find_source(stack, queue)] if queue else sources(stack)
    return [SetAsideQueue(stack, source) for source in asked]


def dead_letter(source: Source, letter: Letter, attached: DeadLetter | None) -> SetAside:
    """Return a letter in the dead-letter queue of `source`, with the reason that is attached."""
    why = Problem("", attached.reason if attached else NO_REASON)
    return SetAside(letter, letter.body, source, source.name, (why,), True, attached)


def dead_letters(source: Source, letters: Iterable[Letter]) -> list[SetAside]:
    """Return the dead letters in `letters`, oldest first; copies of a message are combined.

    `letters` come from the dead-letter queue of `source`. The reason on a letter that SQS moved is
    that of an earlier death: it came back without it being removed, and no function gave a new one.
    """
    by_sqs: dict[str, Letter] = {}
    found: dict[str, SetAside] = {}
    for letter in letters:
        attached = None if letter.moved else read_dead_letter(letter.attribute(ATTRIBUTE))
        if attached is None:
            by_sqs[letter.message_id] = letter
        elif attached.message_id in found:
            first = found[attached.message_id]
            newer = dead_letter(source, first.letter, attached)
            found[attached.message_id] = replace(newer, copies=(*first.copies, letter))
        else:
            found[attached.message_id] = dead_letter(source, letter, attached)
    for message_id, letter in by_sqs.items():
        earlier = found.get(message_id)
        found[message_id] = (
            replace(earlier, copies=(*earlier.copies, letter))
            if earlier
            else dead_letter(source, letter, None)
        )
    return sorted(found.values(), key=lambda one: one.sent_at)


def _rejection(letter: Letter, known: dict[str, Source]) -> SetAside:
    """Return a letter of the RejectedQueue. `known` are the queues of the stack by their names.

    One that no function of the stack wrote has no queue, and a problem that says so.
    """
    try:
        fields = Fields(read_object(letter.body))
        queue = fields.text("queue")
        body = fields.text("body", empty=True)
        problems = fields.any("problems")
        fields.done()
    except InvalidMessage:
        stranger = Problem("", "no function of the stack rejected this message")
        return SetAside(letter, letter.body, None, "", (stranger,))
    found = [
        Problem(str(one.get("path", "")), str(one.get("message", "")))
        for one in (problems if isinstance(problems, list) else [])
        if isinstance(one, dict)
    ]
    why = tuple(found) or (Problem("", "no reason is given"),)
    return SetAside(letter, body, known.get(queue), queue, why)


@dataclass(frozen=True, slots=True)
class QueueContents:
    """The messages that were read from one place, the oldest first."""

    place: SetAsideQueue
    held: Counts
    messages: Sequence[SetAside]
    more: bool
    """Whether the limit left messages unread."""

    def document(self) -> DeadQueueDocument:
        """Return a queue with dead letters as JSON for scripts."""
        source = self.place.source
        return DeadQueueDocument(
            queue=source.name if source else "",
            dead_letter_queue=source.dead_url.rpartition("/")[2] if source else "",
            function=source.function if source else "",
            about=self.held.all,
            hidden=self.held.in_flight,
            oldest_sent_at=min((one.sent_at for one in self.messages), default=None),
        )


def list_document(found: Sequence[QueueContents]) -> MessageListDocument:
    """Return dead letters by their queues, or the rejected messages, as JSON for scripts."""
    messages = [
        message.document(
            begins=None if message.order else beginning_of(one.place.stack, message.body)
        )
        for one in found
        for message in one.messages
    ]
    more = any(one.more for one in found)
    if len(found) == 1 and found[0].place.source is None:
        held = found[0].held
        return MessageListDocument(
            messages=messages, more=more, about=held.all, hidden=held.in_flight
        )
    return MessageListDocument(
        queues=[one.document() for one in found], messages=messages, more=more
    )


def look_at(places: Sequence[SetAsideQueue], limit: int) -> list[QueueContents]:
    """Read at most `limit` messages in total; of several places, empty ones are skipped.

    Empty is what SQS counts as empty. Raises InspectorError if a place does not exist, or if
    reading would move messages.
    """
    found: list[QueueContents] = []
    for place in places:
        left = max(0, limit - sum(len(one.messages) for one in found))
        with place.look() as look:
            if len(places) > 1 and not look.counts.all:
                continue
            letters = list(look.letters(left + 1)) if left else []
        messages = sorted(place.read(letters[:left]), key=lambda one: one.sent_at)
        found.append(QueueContents(place, look.counts, messages, not left or len(letters) > left))
    return found


@contextmanager
def held(
    places: Sequence[SetAsideQueue], asked: str, hidden_for: int = HIDDEN_FOR
) -> Iterator[tuple[QueuePeek, SetAside]]:
    """Find the message whose id is `asked` or begins with it, and hold it, with its look.

    All others that were read to find it are let go at once. Raises NotFound if none matches, and
    InvalidArgument if several do.
    """
    looks: dict[str, QueuePeek] = {}
    with ExitStack() as open_looks:

        def messages() -> Iterator[SetAside]:
            for place in places:
                look = open_looks.enter_context(place.look(hidden_for))
                if len(places) > 1 and not look.counts.all:
                    continue
                for one in place.read(look.letters(MOST)):
                    looks[one.message_id] = look
                    yield one

        first = places[0]
        where = first.where if len(places) == 1 else f"in {first.stack.name}"
        found = chosen(messages(), asked, first.noun, where)
        own, kept = looks[found.message_id], {letter.message_id for letter in found.letters}
        for look in {*looks.values()}:
            look.let_go(kept if look is own else ())
        yield own, found
