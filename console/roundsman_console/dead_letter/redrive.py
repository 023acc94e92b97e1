"""Redrives dead letters: assesses them, and sends them back to their queue one by one.

A letter is sent before it is deleted. If the process ends in between, the message is in both
queues; it takes effect once, because the functions are idempotent. An interruption leaves the other
letters in the dead-letter queue.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman_console.clock import pause
from roundsman_console.dead_letter.assess import Judged, Verdict, judge
from roundsman_console.dead_letter.documents import (
    RedriveCandidateDocument,
    RedriveDocument,
)
from roundsman_console.dead_letter.listing import Dead, dead_letters
from roundsman_console.dead_letter.peek import HIDDEN_FOR, MOST, Letter, QueuePeek
from roundsman_console.dead_letter.queues import Source, counts
from roundsman_console.dead_letter.send import send_back
from roundsman_console.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    NotFound,
    aws_sentence,
)
from roundsman_console.progress import Working, no_progress
from roundsman_console.sanitize import inert
from roundsman_console.stack.stack import DeployedStack

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
    dry: bool
    """Whether nothing is sent if there is more than one letter (the user did not confirm)."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A dead letter, and the predicted effect of sending it back."""

    dead: Dead
    judged: Judged
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


@dataclass(slots=True)
class RedriveResult:
    """The result of a redrive."""

    wanted: Redrive
    candidates: Sequence[Candidate]
    more: bool
    """Whether the queue has more dead letters than were read."""
    dry: bool
    """Whether nothing was sent because there is more than one letter."""
    sent: list[str] = field(default_factory=list)
    """The ids of the messages that were sent back."""
    error: InspectorError | None = None
    """What ended the sending early; None if all letters were tried."""

    @property
    def going(self) -> list[Dead]:
        """The letters that are sent unless this is dry."""
        return [one.dead for one in self.candidates if one.goes]

    def document(self) -> RedriveDocument:
        """Return the result as JSON for scripts."""
        verdicts = Counter(one.judged.verdict for one in self.candidates)
        return {
            "command": "redrive",
            "queue": self.wanted.source.name,
            "dryRun": self.dry,
            "verdicts": {
                "acts": verdicts[Verdict.ACTS],
                "passed_over": verdicts[Verdict.PASSED_OVER],
                "rejected": verdicts[Verdict.REJECTED],
                "fails": verdicts[Verdict.FAILS],
            },
            "cameBack": sum(one.dead.sent_back > 0 for one in self.candidates),
            "sent": len(self.sent),
            "left": len(self.candidates) - len(self.sent),
            "more": self.more,
            "messages": [
                one.document(one.dead.letter.message_id in self.sent) for one in self.candidates
            ],
        }


def redrive(
    stack: DeployedStack,
    wanted: Redrive,
    *,
    working: Working = no_progress,
    on_judged: Callable[[Sequence[Candidate]], None] = lambda _: None,
) -> RedriveResult:
    """Assess the dead letters and send them back (see `Redrive.dry`).

    All letters are read and sent within one look, so that exactly the assessed letters are sent.
    `on_judged` is called with the assessed letters before the first one is sent.

    Raises InspectorError if the queue has no dead-letter queue, or one that moves messages when it
    is read; NotFound or InvalidArgument if `Redrive.only` matches no letter or several; and
    Interrupted on Ctrl-C between the first letter sent and the last: its `result` is the
    RedriveResult until then.
    """
    url = wanted.source.dead_url
    counts(stack.sqs, url)  # raises if a look could move messages
    longest = HIDDEN_FOR + int(wanted.limit * (1 / wanted.rate + EACH))
    with QueuePeek(stack.sqs, url, hidden_for=longest) as look:
        with working("Assessing the dead letters"):
            candidates, more = _candidates(stack, wanted, look)
        result = RedriveResult(wanted, candidates, more, wanted.dry and len(candidates) > 1)
        on_judged(candidates)
        if result.going and not result.dry:
            with working(f"Sending {len(result.going)} back"):
                try:
                    result.error = _send(stack, wanted, look, result.going, result.sent)
                except KeyboardInterrupt as error:
                    interrupted = Interrupted(f"Interrupted {_how_far(result.sent)}", result)
                    result.error = interrupted
                    raise interrupted from error
    return result


def _candidates(
    stack: DeployedStack, wanted: Redrive, look: QueuePeek
) -> tuple[list[Candidate], bool]:
    """Return the letters with their predicted effect, and whether the queue has more letters."""
    most = MOST if wanted.only is not None else wanted.limit
    letters = list(look.letters(most + 1))
    found = dead_letters(wanted.source, letters[:most])
    if wanted.only is not None:
        found = [_only(found, wanted.only, wanted.source.name)]
    judged = [(dead, judge(stack, wanted.source, dead.letter.body, now())) for dead in found]
    candidates = [
        Candidate(dead, effect, wanted.anyway or effect.verdict is not Verdict.FAILS)
        for dead, effect in judged
    ]
    return candidates, wanted.only is None and len(letters) > most


def _only(found: Sequence[Dead], asked: str, queue: str) -> Dead:
    meant = [dead for dead in found if asked and dead.letter.message_id.startswith(asked)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise InvalidArgument(f"{inert(asked)} matches the beginning of {len(meant)} ids.")
    raise NotFound(
        f"No dead letter {inert(asked[:80])!r} of {queue}, or another reader hides it: if so, "
        "it is visible again within a minute.",
    )


def _send(
    stack: DeployedStack, wanted: Redrive, look: QueuePeek, going: Sequence[Dead], sent: list[str]
) -> InspectorError | None:
    """Send the letters, and append the id of each to `sent`.

    Return the error that ended the sending early; None if all letters were sent.
    """
    try:
        for dead in going:
            if sent:
                pause(1 / wanted.rate)
            _send_one(stack, wanted.source, look, dead.letter)
            sent.append(dead.letter.message_id)
            for copy in dead.copies:
                look.delete(copy)
    except (ClientError, BotoCoreError) as error:
        return InspectorError(f"{aws_sentence(error)} Stopped {_how_far(sent)}")
    return None


def _how_far(sent: Sequence[str]) -> str:
    return f"after {len(sent)}. The others were not moved."


def _send_one(stack: DeployedStack, source: Source, look: QueuePeek, letter: Letter) -> None:
    send_back(stack.sqs, source.url, letter)
    look.delete(letter)
