"""Reads the dead letters of a queue, with the reason of each as far as it is known."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from roundsman.model.instants import iso
from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter, read_dead_letter
from roundsman_console.dead_letter.assess import order_of
from roundsman_console.dead_letter.documents import DeadLetterSummaryDocument
from roundsman_console.dead_letter.peek import Letter
from roundsman_console.dead_letter.queues import Source
from roundsman_console.dead_letter.send import times_sent_back

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
            "messageId": self.letter.message_id,
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
