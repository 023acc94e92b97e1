"""Reads the dead letters of a stack's queues, finds one by its id, and deletes it."""

from dataclasses import dataclass

from roundsman.model.instants import iso
from roundsman_console.dead_letter.assess import Judged
from roundsman_console.dead_letter.documents import DeadLetterDocument, DeadQueueDocument
from roundsman_console.dead_letter.listing import Dead, dead_letters
from roundsman_console.dead_letter.peek import MOST, QueuePeek
from roundsman_console.dead_letter.queues import (
    Counts,
    Source,
    counts,
    find_source,
    sources,
)
from roundsman_console.dead_letter.rejections import problem_documents
from roundsman_console.errors import InspectorError, InvalidArgument, NotFound
from roundsman_console.sanitize import inert
from roundsman_console.stack.stack import DeployedStack


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


def dead_letter_document(dead: Dead, judged: Judged, stack: str, body: str) -> DeadLetterDocument:
    """Return one dead letter in full as JSON for scripts; `body` is its body as it is shown."""
    return {
        **dead.document(),
        "errorAt": list(dead.attached.error_at) if dead.attached else [],
        "what": judged.what,
        "verdict": judged.verdict.value,
        "why": judged.why,
        "problems": problem_documents(judged.problems),
        "log": dead.log_query(stack),
        "body": body,
    }


def look_at(stack: DeployedStack, queue: str | None, limit: int) -> list[DeadQueue]:
    """Read at most `limit` dead letters in total, of one queue or of all queues (None).

    If `queue` is None, queues that SQS counts as empty are skipped. Raises NotFound if there is no
    such queue, and InspectorError if it has no dead-letter queue or if reading would move messages.
    """
    asked = [find_source(stack, queue)] if queue else sources(stack)
    found: list[DeadQueue] = []
    for source in asked:
        held = counts(stack.sqs, source.dead_url)
        if not held.all and queue is None:
            continue
        left = limit - sum(len(one.dead) for one in found)
        with QueuePeek(stack.sqs, source.dead_url) as look:
            letters = list(look.letters(left + 1)) if left > 0 else []
        dead = dead_letters(source, letters[: max(0, left)])
        found.append(DeadQueue(source, held, dead, len(letters) > left or left <= 0))
    return found


def find_dead_letter(stack: DeployedStack, asked: str) -> Dead:
    """Return the dead letter whose id begins with `asked`, from any queue.

    Raises NotFound if none matches, and InvalidArgument if several do.
    """
    everything = [dead for one in look_at(stack, None, MOST) for dead in one.dead]
    found = [dead for dead in everything if asked and dead.letter.message_id.startswith(asked)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(dead.letter.message_id for dead in found[:5])
        raise InvalidArgument(f"{inert(asked)} matches the beginning of {len(found)} ids: {ids}.")
    raise NotFound(
        f"No dead letter {inert(asked[:80])!r} in {stack.name}, or another reader hides it: "
        "if so, it is visible again within a minute."
    )


def delete_dead_letter(stack: DeployedStack, dead: Dead) -> None:
    """Delete the dead letter and its copies. Raises InspectorError if one is hidden now."""
    ids = {dead.letter.message_id, *(copy.message_id for copy in dead.copies)}
    with QueuePeek(stack.sqs, dead.source.dead_url) as look:
        for letter in look.letters(MOST):
            if letter.message_id in ids:
                look.delete(letter)
                ids.remove(letter.message_id)
            if not ids:
                return
    raise InspectorError(
        f"{dead.letter.message_id} was not deleted: another reader hides it now. Try again in "
        "a minute."
    )
