"""A message for the scheduler, with what SQS knows of it."""

from dataclasses import dataclass
from typing import TypeAlias

from roundsman.model.events import Claimant, Event, Inspect, Start
from roundsman.model.scheduler_queues import COMMANDS, replies_key
from roundsman.wire.commands import INSPECT, START, Command
from roundsman.wire.messages import Reply

SchedulerMessage: TypeAlias = Command | Reply


def is_by_operator(message: SchedulerMessage) -> bool:
    """Whether it is an operator's command. It is decided alone, because it may be refused."""
    return isinstance(message, Command) and message.event is not None


@dataclass(frozen=True, slots=True)
class Arrived:
    """A command or a reply that has arrived."""

    message: SchedulerMessage
    message_id: str
    """Stays the same on a redelivery."""
    sender: str | None = None
    """The principal that sent a reply, as AWS authenticated it; None if it is not known."""
    sent_at: int | None = None
    """When the message was sent, in epoch ms; None if it is not known."""

    @property
    def task_id(self) -> str:
        """The id of the task that the message is about."""
        return self.message.task_id

    @property
    def says_only_when(self) -> bool:
        """Whether the message says nothing but that it is time to look: a Start or an Inspect."""
        return isinstance(self.message, Command) and self.message.event is None

    @property
    def inspects(self) -> bool:
        """Whether the message is an Inspect."""
        return isinstance(self.message, Command) and self.message.kind == INSPECT

    @property
    def queue(self) -> str:
        """The key of the read mark of the queue that the message came from."""
        return replies_key(self.message.agent) if isinstance(self.message, Reply) else COMMANDS

    @property
    def waits_since(self) -> int | None:
        """Since when the message waited to be read; None if not known, or if it was delayed."""
        delayed = isinstance(self.message, Command) and self.message.kind != START
        return None if delayed else self.sent_at

    def event(self, claimant: Claimant) -> Event:
        """The event that the engine decides."""
        if isinstance(self.message, Reply):
            return self.message.event(claimant, self.sender)
        return self.message.event or (Inspect() if self.inspects else Start(claimant))
