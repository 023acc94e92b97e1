"""Documents about holds on agents and on orders, and their end."""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

from roundsman_console.base.constraints import Count, Instant


class HoldDocument(TypedDict):
    """Why an agent takes no work, and until when."""

    since: Instant
    until: Instant
    by: str
    """The operator, or the circuit breaker."""
    reason: str
    passes: Sequence[str]
    """The ids of orders that it lets pass, such as one that is tried."""


class OrderHoldDocument(HoldDocument):
    """Why no step of the orders of a workflow, or of all orders, begins."""

    workflow: str | None
    """Null for the orders of all workflows."""
    undosToo: bool
    """Whether undos wait as well."""
    released: Count
    """The share of the orders that go on, in percent."""


class AgentHeldDocument(TypedDict):
    """An agent that was put on hold."""

    agent: str
    command: Literal["hold"]
    outcome: Literal["done"]
    hold: HoldDocument
    """The hold that is now in force."""
    replaced: HoldDocument | None
    """The operator's hold that was in force before."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""


class OrdersHeldDocument(TypedDict):
    """Orders that were put on hold."""

    agent: None
    workflow: str | None
    """Null for the orders of all workflows."""
    command: Literal["hold"]
    outcome: Literal["done"]
    hold: OrderHoldDocument
    """The hold that is now in force."""
    replaced: OrderHoldDocument | None
    """The hold that was in force before."""
    unknownWorkflow: bool
    """Whether open orders were found, and none of them is of the workflow."""


HeldDocument: TypeAlias = AgentHeldDocument | OrdersHeldDocument


class WokenDocument(TypedDict):
    """The orders that the command has woken after a release. The supervisor wakes the others."""

    woken: Count
    more: bool
    """Whether others may wait."""


class AgentReleasedDocument(WokenDocument):
    """An agent that was released, and the tasks that were woken after it."""

    agent: str
    command: Literal["release"]
    outcome: Literal["done"]
    by: str
    reason: str | None
    hold: HoldDocument | None
    """The operator's hold that was ended."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""


class ReleaseWatchDocument(TypedDict):
    """What became of the first orders that a release woke."""

    orders: Count
    """The number of orders that were watched."""
    failed: Count
    """The number of those that have failed, or are in a failure group."""
    groups: list[str]
    """The failure groups of those orders."""
    heldAgain: OrderHoldDocument | None
    """The new hold, because too many failed."""


class OrdersReleasedDocument(WokenDocument):
    """Orders that were let go on, and those of them that were woken."""

    agent: None
    workflow: str | None
    """Null for the orders of all workflows."""
    command: Literal["release"]
    outcome: Literal["done", "heldAgain"]
    by: str
    reason: str | None
    share: Count
    """The share of the orders that go on, in percent."""
    hold: OrderHoldDocument
    """The hold as it was before."""
    watched: ReleaseWatchDocument | None
    """Null if the release was not watched."""


ReleasedDocument: TypeAlias = AgentReleasedDocument | OrdersReleasedDocument
