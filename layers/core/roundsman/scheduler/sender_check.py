"""Notes who sent each command, and alerts if a principal sent it that is not an operator's."""

from dataclasses import replace

from roundsman.model.instants import MINUTE
from roundsman.model.senders import Senders, is_foreign, principal_of, with_sender
from roundsman.ports import Clock, Outbox
from roundsman.wire.alert import foreign_command_alert
from roundsman.wire.commands import Command

ALERTED_FOR = 60 * MINUTE
"""ms for which one instance sends no second alert about the same principal: a run over many orders
sends a command for each, and the history has the sender of every one."""


class SenderCheck:
    """The check of one instance of the scheduler."""

    def __init__(self, senders: Senders, *, outbox: Outbox, clock: Clock) -> None:
        self._senders = senders
        self._outbox = outbox
        self._clock = clock
        self._alerted: dict[str | None, int] = {}

    def checked(self, command: Command, sender: str | None) -> tuple[Command, bool]:
        """Return the command with its sender, and whether that principal is foreign.

        `sender` is the principal that sent the message, as AWS authenticated it. A command of a
        foreign principal is executed like any other, since SQS has accepted it. Its alert is
        published first: raises TryAgain or CallRefused if it cannot be, and the message is
        redelivered. `start` and `inspect` are not checked: they are harmless at any time.
        """
        event = command.event
        if event is None:
            return command, False
        foreign = is_foreign(event, sender, self._senders)
        found = with_sender(event, sender, self._senders)
        if foreign:
            self._alert(command, event.asked.by, found.asked.sender)
        return replace(command, event=found), foreign

    def _alert(self, command: Command, by: str, sender: str | None) -> None:
        now, principal = self._clock(), principal_of(sender)
        if self._alerted.get(principal, now) > now:
            return
        self._outbox.publish(foreign_command_alert(command.kind, command.task_id, by, sender))
        self._alerted = {one: until for one, until in self._alerted.items() if until > now}
        self._alerted[principal] = now + ALERTED_FOR
