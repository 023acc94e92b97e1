"""The facts of a run, which are read from the tables, the queues and the services' ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.model.task import Task
from roundsman.ports import OrderRow
from roundsman_console.base.constraints import Count


@dataclass(frozen=True, slots=True)
class SeenRejection:
    """A rejected message."""

    body: str
    """The message as it was sent."""
    problems: tuple[tuple[str, str], ...]
    """The path and a sentence for each problem."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSeen:
    """An alert that an operator received."""

    order_id: str | None = None
    """Null if the alert is not about a task (an alarm)."""
    kind: str = ""
    subject: str
    reason: str
    look: str = ""
    """A CLI command that shows the subject of the alert; empty if the alert has none."""


@dataclass(frozen=True, slots=True)
class LedgerEffect:
    """The ledger entry of the remote services for one idempotency key."""

    key: str
    order_id: str
    service: str
    effects: Count
    """How many times the effect took place."""
    calls: Count
    """How many calls used the key."""
    undone: bool = False
    """The effect of this `perform` key was undone. The key can never have an effect again."""


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """The number of messages in one queue."""

    name: str
    messages: int
    """Visible, in flight and delayed messages."""
    dead_letters: bool = False
    """The queue is the dead-letter queue of another queue."""


@dataclass(frozen=True, kw_only=True)
class DemoFacts:
    """All facts of a run at one time. The mappings are by order ID."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    rows: Mapping[str, OrderRow] = field(default_factory=dict)
    first_rows: Mapping[str, OrderRow] = field(default_factory=dict)
    """The order rows before any message was sent a second time."""
    rejections: Sequence[SeenRejection] = ()
    alerts: Sequence[AlertSeen] = ()
    effects: Sequence[LedgerEffect] = ()
    queues: Sequence[QueueDepth] = ()
    struck: Sequence[int] = ()
    """How many times each fault rule was applied, in the order of the rules."""
    hanging: int = 0
    """The number of calls that hang at the remote services."""
