"""Dead letters as they lie there, each with what is known of why."""

from collections.abc import Sequence
from dataclasses import dataclass

from roundsman.model.instants import iso
from roundsman.model.json import Json
from roundsman.wire.dead_letters import ATTRIBUTE, DeadLetter, read_dead_letter
from roundsman_console.dead_letters.assess import order_of
from roundsman_console.dead_letters.peek import Letter
from roundsman_console.dead_letters.queues import Source
from roundsman_console.dead_letters.send import times_sent_back

NO_REASON = "the function ended before it could say why: crash, time-out or memory"
CRASHES = '?"platform.runtimeDone" ?"Task timed out" ?"Runtime exited" ?"MemoryError"'
"""What Lambda logs of a function that ended so, as a filter of CloudWatch Logs.

The first is logged of each failed invocation, with its status (`timeout`, `error`, `failure`), and
of others only at SystemLogLevel DEBUG; the second where the log's format is not JSON.
"""


@dataclass(frozen=True, slots=True)
class Dead:
    """One dead letter. `said` is what its function said of it; None where SQS moved it.

    `copies` are further letters of the same message: the function died after it had sent the
    first, and SQS moved the message as well.
    """

    source: Source
    letter: Letter
    said: DeadLetter | None
    copies: tuple[Letter, ...] = ()

    @property
    def reason(self) -> str:
        """Why it is here, in a sentence."""
        return self.said.reason if self.said else NO_REASON

    @property
    def sent_at(self) -> int:
        """When it was first sent, in epoch ms."""
        return self.said.sent_at if self.said else self.letter.sent_at

    @property
    def receives(self) -> int:
        """How often its function received it; SQS's own count has every look in it too."""
        return self.said.receives if self.said else self.source.policy.most_receives

    @property
    def sent_back(self) -> int:
        """How often an operator has sent it back before."""
        return times_sent_back(self.letter.attributes)

    def log_query(self, stack: str) -> str:
        """The command that finds in the log what happened to it."""
        group = f"/aws/lambda/{stack}/{self.source.function}"
        found = f"'\"{self.said.message_id}\"'" if self.said else f"'{CRASHES}'"
        if self.said and self.said.log_group:
            group = self.said.log_group
        return (
            f"aws logs filter-log-events --log-group-name {group} "
            f"--start-time {self.sent_at} --filter-pattern {found}"
        )

    def document(self) -> dict[str, Json]:
        """As scripts read it, without its text."""
        said = self.said
        return {
            "messageId": self.letter.message_id,
            "queue": self.source.name,
            "orderId": order_of(self.letter.body),
            "reason": self.reason,
            "reasonKnown": said is not None,
            "errorType": said.error_type if said else None,
            "sentAt": iso(self.sent_at),
            "diedAt": iso(said.died_at) if said else None,
            "receives": self.receives,
            "sentBack": self.sent_back,
            "copies": len(self.copies),
            "bytes": self.letter.size,
        }


def dead_letters(source: Source, letters: Sequence[Letter]) -> list[Dead]:
    """What these letters of its dead-letter queue are, oldest first; copies are put together."""
    by_sqs: dict[str, Letter] = {}
    found: dict[str, Dead] = {}
    for letter in letters:
        said = read_dead_letter(letter.attribute(ATTRIBUTE))
        if said is None:
            by_sqs[letter.message_id] = letter
        elif said.message_id in found:
            first = found[said.message_id]
            found[said.message_id] = Dead(source, first.letter, said, (*first.copies, letter))
        else:
            found[said.message_id] = Dead(source, letter, said)
    for message_id, letter in by_sqs.items():
        told = found.get(message_id)
        copies = (*told.copies, letter) if told else ()
        found[message_id] = (
            Dead(source, told.letter, told.said, copies) if told else Dead(source, letter, None)
        )
    return sorted(found.values(), key=lambda dead: dead.sent_at)
