"""What came of a run of the demo, as its JSON has it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman_console.base.constraints import Count, Duration
from tools.demo.facts import AlertSeen, LedgerEffect


@dataclass(frozen=True, slots=True)
class DemoOrderEnd:
    """One message of the demo, with its expected and its actual end."""

    order_id: str | None
    event: str
    """The file in events/."""
    shows: str
    expected: str
    actual: str
    ok: bool
    detail: str
    failure_counts: Mapping[str, Count]
    """The failure count of each step that has one."""


@dataclass(frozen=True, slots=True)
class DemoQueues:
    """What was left in the queues."""

    looked_at: Count
    """The number of queues."""
    messages: Count


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The result of the demo."""

    ok: bool
    orders: Sequence[DemoOrderEnd]
    alerts: Sequence[AlertSeen]
    effects: Sequence[LedgerEffect]
    queues: DemoQueues
    differences: Sequence[str]
    """What is not as expected; empty if all is."""
    seconds: Duration
    """How long the demo took."""
