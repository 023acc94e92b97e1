"""Faults of the stack itself, and not of an order: what a supervisor sees and stores of them.

A stack with few alarms has its supervisor look at the queues (`roundsman.supervisor.stack_watch`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class FaultKind(StrEnum):
    """What is wrong."""

    DEAD_LETTERS = "dead_letters"
    """Messages failed each of their deliveries."""
    REJECTED = "rejected"
    """Messages can never be handled."""
    BACKLOG = "backlog"
    """Messages wait in a queue at each look."""
    BEHIND = "behind"
    """Orders wait for the scheduler."""
    LATE = "late"
    """The supervisor finds tasks that were overdue for long."""


@dataclass(frozen=True, slots=True)
class QueueLook:
    """The messages of a queue and of its dead-letter queue, as SQS reports: roughly."""

    name: str
    """The queue's name without that of the stack: `PaymentRequestQueue`."""
    visible: int
    """Messages that can be received now."""
    hidden: int
    """Messages that were received and are hidden, and those that are delayed."""
    dead: int = 0
    """Messages of its dead-letter queue, hidden or not; 0 if it has none."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """A fault that was seen now."""

    kind: FaultKind
    about: str
    """The queue that it is about, or the function."""
    amount: int
    """Messages; for BEHIND and LATE the delay in ms."""

    @property
    def key(self) -> str:
        """The name under which the fault is stored."""
        return fault_key(self.kind, self.about)


def fault_key(kind: str, about: str) -> str:
    """Return the name under which a fault is stored: `dead_letters/PaymentRequestQueue`."""
    return f"{kind}/{about}"


@dataclass(frozen=True, slots=True)
class StackFault:
    """A fault as stored. Instants are epoch ms."""

    kind: str
    about: str
    since: int
    """When it was first seen."""
    amount: int
    """What was seen then: messages, or a delay in ms."""
    alerting_until: int = 0
    """Until then another supervisor may be sending an alert about it; 0 if none is."""
    alerted_at: int | None = None
    """When it was alerted; None if it was not yet."""
    clear_since: int | None = None
    """Since when it is not seen any more; None while it is."""


@dataclass(frozen=True, slots=True)
class StackFaults:
    """The record of all faults."""

    version: int = 0
    """Counts the writes of the record; 0 if there is no record."""
    by_key: Mapping[str, StackFault] = field(default_factory=dict)
