"""The verbs on dead letters and rejected messages: send back and delete."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, Any

from roundsman.model.json import sha256
from roundsman_console.acts.set_aside.edits import laid_out
from roundsman_console.acts.verb import (
    Argument,
    Asked,
    Confirmed,
    Form,
    Preview,
    StackVerb,
    Subject,
    Verb,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.result import Noun, Result, document_of
from roundsman_console.facts.set_aside.documents import MessageDocument, RedriveDocument
from roundsman_console.facts.set_aside.masked import masked_body
from roundsman_console.facts.set_aside.messages import (
    SetAside,
    SetAsideQueue,
    dead_queues,
    held,
    rejected_queue,
)
from roundsman_console.facts.set_aside.peek import WHILE_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveVerb(Verb):
    """Send dead letters back to their queue.

    Each message is assessed first: it would take effect, be ignored, or fail again. Messages
    that would fail again stay.

    Example: roundsman dlq redrive SchedulerQueue --limit 20 --yes
    """

    name = "dlq redrive"
    title = "Send back"
    reason = ""
    reason_options = ()
    needs_reason = "none"
    document = RedriveDocument

    queue: Annotated[str, Argument(help="The queue to send the dead letters back to.", label="")]
    only: Annotated[
        str | None,
        Argument(
            "--only",
            "Only this message: its id, or the beginning of it.",
            label="Only this message",
            hint="Its id, or the beginning of it.",
        ),
    ] = None
    anyway: Annotated[bool, Argument("--anyway", "Also send messages that would fail again.")] = (
        False
    )


@dataclass(frozen=True, slots=True)
class Dropped(Result):
    """A message that was deleted."""

    message: SetAside

    def words(self) -> Sequence[str]:
        return [f"Deleted {self.message.message_id}."]

    def document(self) -> Mapping[str, Any]:
        return document_of(self.message.document(body=self.message.body))


@dataclass(frozen=True, slots=True, kw_only=True)
class DropVerb(StackVerb):
    """What deletes a message."""

    title = "Delete"
    danger = True
    reason = ""
    reason_options = ()
    needs_reason = "none"
    confirmed = Confirmed.BY_YES
    of_application = True
    json_help = "Print the deleted message as one JSON object."

    message: Annotated[str, Argument(help="The message id, or the beginning of it.", label="")]

    @classmethod
    @abstractmethod
    def places(cls, stack: DeployedStack) -> Sequence[SetAsideQueue]:
        """Return where the message can be."""

    @classmethod
    def subject(cls, stack: DeployedStack, given: Form) -> Subject:
        with held(cls.places(stack), given.get("message", "")) as (_, one):
            return _subject(stack, one)

    def preview(self, stack: DeployedStack) -> Preview:
        places = self.places(stack)
        with ExitStack() as until:
            look, one = until.enter_context(held(places, self.message, WHILE_ASKED))
            order = one.order or ("an unknown order" if one.is_dead else None)
            about = f" of {order}" if order else ""

            def go(_asked: Asked) -> Dropped:
                for letter in one.letters:
                    look.delete(letter)
                return Dropped(one)

            return Preview(
                f"{one.message_id} would be deleted for good. Nobody can undo that.",
                go,
                sha256(one.body),
                f"Delete the {places[0].noun} {one.message_id}{about} for good?",
                subject=_subject(stack, one),
                close=until.pop_all().close,
            )


def _subject(stack: DeployedStack, one: SetAside) -> Subject:
    return Subject(
        one.message_id,
        {"message": one.message_id},
        notes=[str(problem) for problem in one.problems],
        text=laid_out(masked_body(stack, one.body)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDeadLetterVerb(DropVerb):
    """Delete one dead letter for good.

    Example: roundsman dlq drop 5fea7756 --yes
    """

    name = "dlq drop"
    document = MessageDocument
    noun = Noun.DEAD_LETTERS

    @classmethod
    def places(cls, stack: DeployedStack) -> Sequence[SetAsideQueue]:
        return dead_queues(stack)


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRejectedVerb(DropVerb):
    """Delete one rejected message for good.

    Example: roundsman rejected drop 5fea7756 --yes
    """

    name = "rejected drop"
    document = MessageDocument
    noun = Noun.REJECTED

    @classmethod
    def places(cls, stack: DeployedStack) -> Sequence[SetAsideQueue]:
        return [rejected_queue(stack)]
