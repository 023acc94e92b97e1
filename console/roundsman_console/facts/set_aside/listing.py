"""Reads the dead letters of queues, with the reason of each as far as it is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roundsman.model.instants import iso
from roundsman.submission.events import with_signal_id
from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter, read_dead_letter
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.set_aside.assess import JudgedMessage, order_of
from roundsman_console.facts.set_aside.documents import (
    DeadLetterDocument,
    DeadLetterSummaryDocument,
    DeadQueueDocument,
)
from roundsman_console.facts.set_aside.peek import MOST, Letter, QueuePeek, chosen, times_sent_back
from roundsman_console.facts.set_aside.queues import (
    Counts,
    MessageKind,
    Source,
    find_source,
    sources,
)
from roundsman_console.facts.set_aside.rejections import problem_documents

NO_REASON = "the function ended before it could give a reason: crash, time-out or out of memory"
CRASHES = '?"platform.runtimeDone" ?"Task timed out" ?"Runtime exited" ?"MemoryError"'
"""A filter pattern of CloudWatch Logs for functions that crashed, timed out or ran out of memory.

Lambda logs `platform.runtimeDone` for each failed invocation, with its status (`timeout`, `error`,
`failure`); for other invocations only at SystemLogLevel DEBUG. It logs `Task timed out` if the log
format is not JSON.
"""


@dataclass(frozen=True, slots=True)
class Dead:
    """One dead letter."""

    source: Source
    """The queue whose function failed."""
    letter: Letter
    attached: DeadLetter | None
    """The reason that the function attached; None if SQS moved the message."""
    copies: tuple[Letter, ...] = ()
    """Further letters of the same message. The function can end after it has sent the first letter
    and before it deletes the message; then SQS moves the message too."""

    @property
    def message_id(self) -> str:
        """The id of the letter."""
        return self.letter.message_id

    @property
    def first_id(self) -> str:
        """The id of the message that died; SQS keeps it in a letter that it moved itself."""
        return self.attached.message_id if self.attached else self.message_id

    @property
    def letters(self) -> tuple[Letter, ...]:
        """The letter and its copies."""
        return (self.letter, *self.copies)

    @property
    def body_to_send(self) -> str:
        """The body with which the letter is sent back: that of a signal has an id."""
        body = self.letter.body
        return (
            with_signal_id(body, self.first_id) if self.source.kind is MessageKind.ORDER else body
        )

    @property
    def reason(self) -> str:
        """Why the message is a dead letter, in words."""
        return self.attached.reason if self.attached else NO_REASON

    @property
    def sent_at(self) -> int:
        """When the message was first sent, in epoch ms."""
        return self.attached.sent_at if self.attached else self.letter.sent_at

    @property
    def receives(self) -> int:
        """How often the function received the message.

        The receive count of SQS is not used: it also counts each look into the dead-letter queue.
        """
        return self.attached.receives if self.attached else self.source.policy.most_receives

    @property
    def sent_back(self) -> int:
        """How often an operator has redriven the message so far."""
        return times_sent_back(self.letter.attributes)

    def log_query(self, stack: str) -> str:
        """Return the `aws logs` command that finds the failure in the function's log.

        `stack` is the name of the stack.
        """
        group = f"/aws/lambda/{stack}/{self.source.function}"
        found = f"'\"{self.attached.message_id}\"'" if self.attached else f"'{CRASHES}'"
        if self.attached and self.attached.log_group:
            group = self.attached.log_group
        return (
            f"aws logs filter-log-events --log-group-name {group} "
            f"--start-time {self.sent_at} --filter-pattern {found}"
        )

    def document(self) -> DeadLetterSummaryDocument:
        """Return the dead letter as JSON for scripts, without its body."""
        attached = self.attached
        return {
            "messageId": self.message_id,
            "queue": self.source.name,
            "orderId": order_of(self.letter.body),
            "reason": self.reason,
            "reasonKnown": attached is not None,
            "errorType": attached.error_type if attached else None,
            "sentAt": iso(self.sent_at),
            "diedAt": iso(attached.died_at) if attached else None,
            "receives": self.receives,
            "sentBack": self.sent_back,
            "copies": len(self.copies),
            "bytes": self.letter.size,
        }

    def whole_document(self, judged: JudgedMessage, stack: str, body: str) -> DeadLetterDocument:
        """Return the dead letter in full as JSON for scripts; `body` is its body as it is shown."""
        return {
            **self.document(),
            "errorAt": list(self.attached.error_at) if self.attached else [],
            "what": judged.what,
            "verdict": judged.verdict.value,
            "why": judged.why,
            "problems": problem_documents(judged.problems),
            "log": self.log_query(stack),
            "body": body,
        }


def dead_letters(source: Source, letters: Sequence[Letter]) -> list[Dead]:
    """Return the dead letters in `letters`, oldest first; copies of a message are combined.

    `letters` come from the dead-letter queue of `source`. The reason on a letter that SQS moved is
    that of an earlier death: it came back without it being removed, and no function gave a new one.
    """
    by_sqs: dict[str, Letter] = {}
    found: dict[str, Dead] = {}
    for letter in letters:
        attached = None if letter.moved else read_dead_letter(letter.attribute(ATTRIBUTE))
        if attached is None:
            by_sqs[letter.message_id] = letter
        elif attached.message_id in found:
            first = found[attached.message_id]
            found[attached.message_id] = replace(
                first, attached=attached, copies=(*first.copies, letter)
            )
        else:
            found[attached.message_id] = Dead(source, letter, attached)
    for message_id, letter in by_sqs.items():
        earlier = found.get(message_id)
        found[message_id] = (
            replace(earlier, copies=(*earlier.copies, letter))
            if earlier
            else Dead(source, letter, None)
        )
    return sorted(found.values(), key=lambda dead: dead.sent_at)


@dataclass(frozen=True, slots=True)
class DeadQueue:
    """The messages that were read from one dead-letter queue."""

    source: Source
    held: Counts
    dead: list[Dead]
    more: bool
    """Whether the limit left messages unread."""

    def document(self) -> DeadQueueDocument:
        """Return the queue as a JSON object for --json."""
        oldest = min((one.sent_at for one in self.dead), default=None)
        return {
            "queue": self.source.name,
            "deadLetterQueue": self.source.dead_url.rpartition("/")[2],
            "function": self.source.function,
            "about": self.held.all,
            "hidden": self.held.hidden,
            "oldestSentAt": iso(oldest) if oldest is not None else None,
        }


def look_at(stack: DeployedStack, queue: str | None, limit: int) -> list[DeadQueue]:
    """Read at most `limit` dead letters in total, of one queue or of all queues (None).

    If `queue` is None, queues that SQS counts as empty are skipped. Raises NotFound if there is no
    such queue, and InspectorError if it has no dead-letter queue or if reading would move messages.
    """
    asked = [find_source(stack, queue)] if queue else sources(stack)
    found: list[DeadQueue] = []
    for source in asked:
        left = limit - sum(len(one.dead) for one in found)
        with QueuePeek(stack.sqs, source.dead_url) as look:
            if not look.counts.all and queue is None:
                continue
            letters = list(look.letters(left + 1)) if left > 0 else []
        dead = dead_letters(source, letters[: max(0, left)])
        found.append(DeadQueue(source, look.counts, dead, len(letters) > left or left <= 0))
    return found


def find_dead_letter(stack: DeployedStack, asked: str) -> Dead:
    """Return the dead letter whose id begins with `asked`, from any queue.

    Raises NotFound if none matches, and InvalidArgument if several do.
    """
    everything = [dead for one in look_at(stack, None, MOST) for dead in one.dead]
    return chosen(everything, asked, "dead letter", f"in {stack.name}")


def delete_dead_letter(stack: DeployedStack, dead: Dead) -> None:
    """Delete the dead letter and its copies. Raises InspectorError if one is hidden now."""
    ids = {letter.message_id for letter in dead.letters}
    with QueuePeek(stack.sqs, dead.source.dead_url) as look:
        for letter in look.letters(MOST):
            if letter.message_id in ids:
                look.delete(letter)
                ids.remove(letter.message_id)
            if not ids:
                return
    raise InspectorError(
        f"{dead.message_id} was not deleted: another reader hides it now. Try again in a minute."
    )
