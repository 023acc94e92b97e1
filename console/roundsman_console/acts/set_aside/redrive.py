"""Redrives dead letters: assesses them, and sends them back to their queue one by one.

A letter is sent before it is deleted. If the process ends in between, the message is in both
queues; it takes effect once, because the functions are idempotent. An interruption leaves the other
letters in the dead-letter queue.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from roundsman.aws.clock import now
from roundsman_console.acts.set_aside.send import SendResult, send_back
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import pause
from roundsman_console.base.progress import Working, no_progress
from roundsman_console.facts.set_aside.assess import JudgedMessage, ResendVerdict, judge
from roundsman_console.facts.set_aside.documents import (
    RedriveCandidateDocument,
    RedriveDocument,
)
from roundsman_console.facts.set_aside.listing import Dead, dead_letters
from roundsman_console.facts.set_aside.peek import HIDDEN_FOR, MOST, QueuePeek, chosen
from roundsman_console.facts.set_aside.queues import Source

EACH = 0.25
"""Seconds that one letter takes in addition to the pause of the rate, on a slow connection to AWS:
to read, assess, send and delete it."""


@dataclass(frozen=True, slots=True)
class Redrive:
    """The options of a redrive."""

    source: Source
    """The queue whose dead letters are sent back to it."""
    only: str | None
    """The id of one message, or the beginning of it; None for all messages."""
    limit: int
    """The maximum number of letters that are read; without effect if `only` is set."""
    rate: float
    """The maximum number of letters that are sent per second."""
    anyway: bool
    """Whether letters are sent that would fail again."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dead letter, and the predicted effect of sending it back."""

    dead: Dead
    judged: JudgedMessage
    goes: bool
    """Whether the letter is sent: it would not fail again, or `anyway` is set."""

    def document(self, sent: bool) -> RedriveCandidateDocument:
        """Return the candidate as JSON for scripts."""
        return {
            **self.dead.document(),
            "what": self.judged.what,
            "verdict": self.judged.verdict.value,
            "why": self.judged.why,
            "sent": sent,
        }


@dataclass(slots=True, kw_only=True)
class RedriveResult(SendResult[str]):
    """The result of a redrive; `sent` has the ids of the messages."""

    wanted: Redrive
    candidates: Sequence[Candidate]

    @property
    def going(self) -> list[Dead]:
        """The letters that are sent, unless this is dry."""
        return [one.dead for one in self.candidates if one.goes]

    def document(self) -> RedriveDocument:
        """Return the result as JSON for scripts."""
        verdicts = Counter(one.judged.verdict for one in self.candidates)
        return {
            "command": "redrive",
            "queue": self.wanted.source.name,
            "dryRun": self.dry,
            "verdicts": {
                "acts": verdicts[ResendVerdict.ACTS],
                "passed_over": verdicts[ResendVerdict.PASSED_OVER],
                "rejected": verdicts[ResendVerdict.REJECTED],
                "fails": verdicts[ResendVerdict.FAILS],
            },
            "cameBack": sum(one.dead.sent_back > 0 for one in self.candidates),
            "sent": len(self.sent),
            "left": len(self.candidates) - len(self.sent),
            "more": self.more,
            "messages": [one.document(one.dead.message_id in self.sent) for one in self.candidates],
        }


def redrive(
    stack: DeployedStack,
    wanted: Redrive,
    agreed: Callable[[RedriveResult], bool],
    *,
    working: Working = no_progress,
) -> RedriveResult:
    """Assess the dead letters, and send them back if `agreed` returns true.

    All letters are read and sent within one look, so that exactly the assessed letters are sent.
    `agreed` is called with the assessed letters before the first one is sent.

    Raises InspectorError if the queue has no dead-letter queue, or one that moves messages when it
    is read; NotFound or InvalidArgument if `Redrive.only` matches no letter or several; and
    Interrupted on Ctrl-C between the first letter sent and the last: its `result` is the
    RedriveResult until then.
    """
    longest = HIDDEN_FOR + int(wanted.limit * (1 / wanted.rate + EACH))
    with QueuePeek(stack.sqs, wanted.source.dead_url, hidden_for=longest) as look:
        with working("Assessing the dead letters"):
            candidates, more = _candidates(stack, wanted, look)
        result = RedriveResult(wanted=wanted, candidates=candidates, more=more)
        result.dry = not agreed(result)

        def send(dead: Dead) -> None:
            if result.sent:
                pause(1 / wanted.rate)
            send_back(stack.sqs, wanted.source.url, dead.letter, dead.body_to_send)
            look.delete(dead.letter)
            result.sent.append(dead.message_id)
            for copy in dead.copies:
                look.delete(copy)

        if result.going and not result.dry:
            with working(f"Sending {len(result.going)} back"):
                result.send_each(result.going, send)
    return result


def _candidates(
    stack: DeployedStack, wanted: Redrive, look: QueuePeek
) -> tuple[list[Candidate], bool]:
    """Return the letters with their predicted effect, and whether the queue has more letters."""
    most = MOST if wanted.only is not None else wanted.limit
    letters = list(look.letters(most + 1))
    found = dead_letters(wanted.source, letters[:most])
    if wanted.only is not None:
        found = [chosen(found, wanted.only, "dead letter", f"of {wanted.source.name}")]
    candidates = []
    for dead in found:
        judged = judge(stack, wanted.source, dead.letter.body, now())
        goes = wanted.anyway or judged.verdict is not ResendVerdict.FAILS
        candidates.append(Candidate(dead, judged, goes))
    return candidates, wanted.only is None and len(letters) > most
