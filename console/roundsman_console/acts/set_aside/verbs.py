"""The verbs on dead letters and rejected messages: send back and delete."""

from dataclasses import dataclass
from typing import Annotated

from roundsman_console.acts.verb import Argument, Verb
from roundsman_console.facts.set_aside.documents import (
    DroppedDeadLetterDocument,
    RedriveDocument,
    RejectionDocument,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageVerb(Verb):
    """What a person asks of messages, which store no reason."""

    reason = ""
    reason_options = ()
    needs_reason = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class RedriveVerb(MessageVerb):
    """Send dead letters back to their queue.

    Each message is assessed first: it would take effect, be ignored, or fail again. Messages
    that would fail again stay.

    Example: roundsman dlq redrive SchedulerQueue --limit 20 --yes
    """

    name = "dlq redrive"
    title = "Send back"
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


@dataclass(frozen=True, slots=True, kw_only=True)
class DropVerb(MessageVerb):
    """What deletes a message."""

    title = "Delete"
    danger = True

    message: Annotated[str, Argument(help="The message id, or the beginning of it.", label="")]


@dataclass(frozen=True, slots=True, kw_only=True)
class DropDeadLetterVerb(DropVerb):
    """Delete one dead letter for good.

    Example: roundsman dlq drop 5fea7756 --yes
    """

    name = "dlq drop"
    document = DroppedDeadLetterDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class DropRejectedVerb(DropVerb):
    """Delete one rejected message for good.

    Example: roundsman rejected drop 5fea7756 --yes
    """

    name = "rejected drop"
    document = RejectionDocument
