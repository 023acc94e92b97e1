"""Documents about agents."""

from typing import TypedDict

from roundsman_console.base.constraints import Duration
from roundsman_console.facts.hold.documents import HoldDocument, OrderHoldDocument


class AgentDocument(TypedDict):
    """One agent."""

    agent: str
    takesWork: bool
    hold: HoldDocument | None
    """The hold of an operator."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""
    lag: dict[str, Duration]
    """How far the agent is behind in its request queues, in seconds, by priority."""


class AgentListDocument(TypedDict):
    """The agents of a stack."""

    agents: list[AgentDocument]
    orderHolds: list[OrderHoldDocument]
    """The holds on orders, by which all agents get less work or none."""
