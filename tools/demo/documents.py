"""Documents about a run of the demo."""

from typing import TypedDict

from roundsman_console.base.constraints import Count, Duration


class DemoOrderDocument(TypedDict):
    """One message of the demo, with its expected and its actual end."""

    orderId: str | None
    event: str
    """The file in events/."""
    shows: str
    expected: str
    actual: str
    ok: bool
    detail: str
    failureCounts: dict[str, Count]
    """The failure count of each step that has one."""


class DemoAlertDocument(TypedDict):
    """An alert that was sent during the demo."""

    orderId: str | None
    kind: str
    subject: str
    reason: str
    look: str


class DemoEffectDocument(TypedDict):
    """The effects of one idempotency key at a remote service."""

    key: str
    """The idempotency key."""
    orderId: str
    service: str
    effects: Count
    calls: Count
    undone: bool


class DemoQueuesDocument(TypedDict):
    """What was left in the queues."""

    lookedAt: Count
    """The number of queues."""
    messages: Count


class DemoDocument(TypedDict):
    """The result of the demo."""

    ok: bool
    orders: list[DemoOrderDocument]
    alerts: list[DemoAlertDocument]
    effects: list[DemoEffectDocument]
    queues: DemoQueuesDocument
    differences: list[str]
    """What is not as expected; empty if all is."""
    seconds: Duration
    """How long the demo took."""
