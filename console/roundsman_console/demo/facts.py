"""What can be known of a run: read from the tables, the queues and the services' ledger."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roundsman.model.task import Task
from roundsman.ports import OrderRow


@dataclass(frozen=True, slots=True)
class SeenRejection:
    """A message that was set aside: its text as it was sent, and what is wrong with it."""

    body: str
    problems: tuple[tuple[str, str], ...]  # path and sentence


@dataclass(frozen=True, slots=True)
class AlertSeen:
    """What an operator received. `order_id` is None for what is not about a task (an alarm)."""

    subject: str
    reason: str
    order_id: str | None = None
    kind: str = ""
    look: str = ""


@dataclass(frozen=True, slots=True)
class LedgerEffect:
    """What the ledger of the remote services says about one idempotency key.

    `undone` of a perform: its key is spent, so that it can never have its effect again.
    """

    key: str
    order_id: str
    service: str
    effects: int
    calls: int
    undone: bool = False


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many messages a queue holds: waiting, being read or delayed."""

    name: str
    messages: int
    dead_letters: bool = False


@dataclass(frozen=True, kw_only=True)
class DemoFacts:
    """One look at all of it.

    `first_rows` are the order rows as they were before anything was sent a second time. `struck`
    says how often each fault rule struck; `hanging` how many calls hang at the services.
    """

    tasks: Mapping[str, Task] = field(default_factory=dict)
    rows: Mapping[str, OrderRow] = field(default_factory=dict)
    first_rows: Mapping[str, OrderRow] = field(default_factory=dict)
    rejections: Sequence[SeenRejection] = ()
    alerts: Sequence[AlertSeen] = ()
    effects: Sequence[LedgerEffect] = ()
    queues: Sequence[QueueDepth] = ()
    struck: Sequence[int] = ()
    hanging: int = 0
