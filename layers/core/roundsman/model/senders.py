"""Who sent a command: the principal that AWS authenticated, and whether it is an operator's.

A command states who sends it (`by`), and nothing proves that. SQS notes with each message the
principal that sent it, its `SenderId`: `AROAEXAMPLE:session` for a role with the name of its
session, `AIDAEXAMPLE` for an IAM user, the number of the account for its root user. See
https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids
"""

from dataclasses import dataclass, replace

from roundsman.model.events import Cancel, OperatorEvent, Signalled

LONGEST_SENDER = 128
"""Longer than any `SenderId`: the unique id of a role, a colon, and 64 characters of a session."""

THROUGH_CONSOLE = " (through console)"
"""Follows the name of a person who asked through the console of a team. No `SenderId` has a space,
so no principal has such a name."""


@dataclass(frozen=True, slots=True)
class Senders:
    """The principals that may send the commands of operators without an alert."""

    operators: frozenset[str] = frozenset()
    """The unique ids of the operators' roles and users; empty if any principal is fine."""
    submission: str | None = None
    """The unique id of the role of the submission function, which forwards the cancellations and
    signals of applications; None if it is not known."""
    supervisor: str | None = None
    """The unique id of the role of the supervisor function, which sends the commands of bulk runs;
    None if it is not known."""
    console: str | None = None
    """The unique id of the role of the console that a team shares, which says who is signed in;
    None if there is no such console."""


ANY_SENDER = Senders()
"""No principal causes an alert, and no command is taken for one that submission forwards."""


def with_sender(event: OperatorEvent, sender: str | None, senders: Senders) -> OperatorEvent:
    """Return the event of a message from `sender` with the principal that asked for it.

    That is `sender`, or the principal whose event submission forwards or whose bulk run the
    supervisor carries out. For the console's role, it is the person who is signed in there, with
    THROUGH_CONSOLE. What a message of anybody else states about its sender is ignored.
    """
    who = _who_asked(event, sender, senders)
    return replace(event, asked=replace(event.asked, sender=who))


def _who_asked(event: OperatorEvent, sender: str | None, senders: Senders) -> str | None:
    stated = event.asked.forwarded_for
    if not stated:
        return sender
    if _is_console(sender, senders):
        return stated + THROUGH_CONSOLE
    if _carries_out(sender, senders):
        # The console starts a bulk run in its own name, and signs it with that of the person.
        return event.asked.by + THROUGH_CONSOLE if _is_console(stated, senders) else stated
    return stated if _forwards(event, sender, senders) else sender


def is_foreign(event: OperatorEvent, sender: str | None, senders: Senders) -> bool:
    """Whether the event came from a principal that may not send it without an alert.

    A command of a bulk run comes from the principal that started the run. The console's role is an
    operator's.
    """
    if not senders.operators or _forwards(event, sender, senders):
        return False
    asking = event.asked.forwarded_for if _carries_out(sender, senders) else sender
    return not (principal_of(asking) in senders.operators or _is_console(asking, senders))


def principal_of(sender: str | None) -> str | None:
    """Return the unique id in a `SenderId`, without the name of the session."""
    return sender and sender.partition(":")[0]


def _forwards(event: OperatorEvent, sender: str | None, senders: Senders) -> bool:
    """Whether submission forwards the event: a cancellation or a signal of an application."""
    known = senders.submission is not None and principal_of(sender) == senders.submission
    return known and isinstance(event, Cancel | Signalled)


def _carries_out(sender: str | None, senders: Senders) -> bool:
    """Whether the sender is the supervisor, which sends only the commands of bulk runs."""
    return senders.supervisor is not None and principal_of(sender) == senders.supervisor


def _is_console(sender: str | None, senders: Senders) -> bool:
    return senders.console is not None and principal_of(sender) == senders.console
