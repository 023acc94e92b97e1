"""Redrives dead letters: assesses them, and sends them back to their queue one by one.

A letter is sent before it is deleted. If the process ends in between, the message is in both
queues; it takes effect once, because the functions are idempotent. An interruption leaves the other
letters in the dead-letter queue.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import typer
from botocore.exceptions import BotoCoreError, ClientError

from roundsman.aws.clock import now
from roundsman.model.json import Json
from roundsman_console.cli_errors import (
    FAILED,
    INTERRUPTED,
    NOT_FOUND,
    USAGE,
    ConsoleError,
    aws_sentence,
)
from roundsman_console.dead_letters.assess import Judged, Verdict, judge
from roundsman_console.dead_letters.format import SHORT_ID, say, working
from roundsman_console.dead_letters.listing import Dead, dead_letters
from roundsman_console.dead_letters.peek import HIDDEN_FOR, MOST, Letter, QueuePeek
from roundsman_console.dead_letters.queues import Source, counts
from roundsman_console.dead_letters.send import send_back
from roundsman_console.polling import pause
from roundsman_console.read.stack import DeployedStack
from roundsman_console.sanitize import inert

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

    def document(self, sent: bool) -> dict[str, Json]:
        """Return the candidate as JSON for scripts."""
        return {
            **self.dead.document(),
            "what": self.judged.what,
            "verdict": self.judged.verdict.value,
            "why": self.judged.why,
            "sent": sent,
        }


def redrive(stack: DeployedStack, wanted: Redrive, *, as_json: bool) -> None:
    """Print the dead letters and their predicted effect, and send them (see `Redrive.dry`).

    All letters are read and sent within one look, so that exactly the assessed letters are sent.
    Raises ConsoleError if sending was interrupted or failed, and typer.Exit if none could be sent.
    """
    url = wanted.source.dead_url
    counts(stack.sqs, url)  # raises if a look could move messages
    longest = HIDDEN_FOR + int(wanted.limit * (1 / wanted.rate + EACH))
    sent: list[str] = []
    broken: ConsoleError | None = None
    with QueuePeek(stack.sqs, url, hidden_for=longest) as look:
        with working("Judging what is dead", quiet=as_json):
            candidates, more = _candidates(stack, wanted, look)
        going = [one.dead for one in candidates if one.goes]
        dry = wanted.dry and len(candidates) > 1
        if not as_json:
            _tell(wanted.source, candidates)
        if going and not dry:
            with working(f"Sending {len(going)} back", quiet=as_json):
                broken = _send(stack, wanted, look, going, sent)
    if as_json:
        print(json.dumps(_document(wanted, candidates, sent, dry=dry, more=more)))
    elif dry:
        say(f"Nothing was sent. To send {len(going)} of them: say --yes.")
    elif candidates:
        left = len(candidates) - len(sent)
        stays = (
            " --anyway sends also what would fail again." if len(going) < len(candidates) else ""
        )
        say(f"{len(sent)} sent back to {wanted.source.name}, {left} left.{stays}")
    if more and not as_json:
        say(f"There are more than these {wanted.limit}: raise --limit, or say it again.")
    if broken is not None:
        raise broken
    if candidates and not going:
        raise typer.Exit(FAILED)


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
        Candidate(dead, said, wanted.anyway or said.verdict is not Verdict.FAILS)
        for dead, said in judged
    ]
    return candidates, wanted.only is None and len(letters) > most


def _only(found: Sequence[Dead], asked: str, queue: str) -> Dead:
    meant = [dead for dead in found if asked and dead.letter.message_id.startswith(asked)]
    if len(meant) == 1:
        return meant[0]
    if meant:
        raise ConsoleError(f"{inert(asked)} is the beginning of {len(meant)} ids.", USAGE)
    raise ConsoleError(
        f"There is no dead letter {inert(asked[:80])!r} of {queue} (or somebody else is looking "
        "at it: it is back within a minute).",
        NOT_FOUND,
    )


def _send(
    stack: DeployedStack, wanted: Redrive, look: QueuePeek, going: Sequence[Dead], sent: list[str]
) -> ConsoleError | None:
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
    except KeyboardInterrupt:
        why, code = "Interrupted", INTERRUPTED
    except (ClientError, BotoCoreError) as error:
        why, code = f"{aws_sentence(error)} Broken off", FAILED
    else:
        return None
    return ConsoleError(f"{why} after {len(sent)}: the rest is where it was.", code)


def _send_one(stack: DeployedStack, source: Source, look: QueuePeek, letter: Letter) -> None:
    send_back(stack.sqs, source.url, letter)
    look.delete(letter)


def _tell(source: Source, candidates: Sequence[Candidate]) -> None:
    if not candidates:
        say(f"No dead letters of {source.name}.")
    for one in candidates:
        which = one.dead.letter.message_id[:SHORT_ID]
        again = f"; sent back {one.dead.sent_back} times before" if one.dead.sent_back else ""
        words = one.judged.verdict.words
        say(f"{which}  {one.judged.what}: {words}, {one.judged.why}{again}")


def _document(
    wanted: Redrive, candidates: Sequence[Candidate], sent: Sequence[str], *, dry: bool, more: bool
) -> dict[str, Json]:
    verdicts = Counter(one.judged.verdict for one in candidates)
    return {
        "command": "redrive",
        "queue": wanted.source.name,
        "dryRun": dry,
        "verdicts": {verdict.value: verdicts[verdict] for verdict in Verdict},
        "cameBack": sum(one.dead.sent_back > 0 for one in candidates),
        "sent": len(sent),
        "left": len(candidates) - len(sent),
        "more": more,
        "messages": [one.document(one.dead.letter.message_id in sent) for one in candidates],
    }
