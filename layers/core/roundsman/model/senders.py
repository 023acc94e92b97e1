"""Who sent a command: the principal that AWS authenticated, and whether it is an operator's.

A command states who sends it (`by`), and nothing proves that. SQS notes with each message the
principal that sent it, its `SenderId`: `AROAEXAMPLE:session` for a role with the name of its
session, `AIDAEXAMPLE` for an IAM user, the number of the account for its root user. See
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
"""

from dataclasses import dataclass, replace

from roundsman.model.events import Cancel, OperatorEvent

LONGEST_SENDER = 128
"""Longer than any `SenderId`: the unique id of a role, a colon, and 64 characters of a session."""


@dataclass(frozen=True, slots=True)
class Senders:
    """The principals that may send the commands of operators without an alert."""

    operators: frozenset[str] = frozenset()
    """The unique ids of the operators' roles and users; empty if any principal is fine."""
    submission: str | None = None
    """The unique id of the role of the submission function, which forwards the cancellations of
    applications; None if it is not known."""
    supervisor: str | None = None
    """The unique id of the role of the supervisor function, which sends the commands of bulk runs;
    None if it is not known."""


ANY_SENDER = Senders()
"""No principal causes an alert, and no command is taken for one that submission forwards."""


def with_sender(event: OperatorEvent, sender: str | None, senders: Senders) -> OperatorEvent:
    """Return the event of a message from `sender` with the principal that asked for it.

    That is `sender`, or the principal whose event submission forwards or whose bulk run the
    supervisor carries out. What a message of anybody else states about its sender is ignored.
    """
    believed = _forwards(event, sender, senders) or _carries_out(sender, senders)
    forwarded = believed and event.asked.forwarded_for is not None
    asked = replace(event.asked, sender=event.asked.forwarded_for if forwarded else sender)
    return replace(event, asked=asked)


def is_foreign(event: OperatorEvent, sender: str | None, senders: Senders) -> bool:
    """Whether the event came from a principal that may not send it without an alert.

    A command of a bulk run comes from the principal that started the run.
    """
    if not senders.operators or _forwards(event, sender, senders):
        return False
    asking = event.asked.forwarded_for if _carries_out(sender, senders) else sender
    return principal_of(asking) not in senders.operators


def principal_of(sender: str | None) -> str | None:
    """Return the unique id in a `SenderId`, without the name of the session."""
    return sender and sender.partition(":")[0]


def _forwards(event: OperatorEvent, sender: str | None, senders: Senders) -> bool:
    """Whether submission forwards the event. Of all commands it sends only cancellations."""
    known = senders.submission is not None and principal_of(sender) == senders.submission
    return known and isinstance(event, Cancel)


def _carries_out(sender: str | None, senders: Senders) -> bool:
    """Whether the sender is the supervisor, which sends only the commands of bulk runs."""
    return senders.supervisor is not None and principal_of(sender) == senders.supervisor
