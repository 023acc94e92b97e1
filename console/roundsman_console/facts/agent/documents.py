"""What commands say of agents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.holds import BREAKER, OPERATOR
from roundsman.model.instants import SECOND
from roundsman_console.base.constraints import Duration
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.agent.tenants import TenantNow
from roundsman_console.facts.hold.documents import HoldDocument, OrderHoldDocument
from roundsman_console.facts.hold.view import hold_document


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentDocument:
    """One agent."""

    agent: str
    takes_work: bool
    hold: HoldDocument | None
    """The hold of an operator."""
    circuit: HoldDocument | None
    """The hold of the circuit breaker."""
    lag: Mapping[str, Duration]
    """How far the agent is behind in its request queues, in seconds, by priority."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentListDocument:
    """The agents of a stack."""

    agents: Sequence[AgentDocument]
    order_holds: Sequence[OrderHoldDocument]
    """The holds on orders, by which all agents get less work or none."""
    tenants: Sequence[TenantNow] | None
    """Those that are at their rate at an agent, or whose rate is lifted; null if you may not read
    it."""


def agent_document(agent: AgentNow) -> AgentDocument:
    """Return the agent as JSON for scripts."""
    operator, breaker = agent.hold(OPERATOR), agent.hold(BREAKER)
    return AgentDocument(
        agent=agent.name,
        takes_work=not agent.holds,
        hold=hold_document(operator) if operator else None,
        circuit=hold_document(breaker) if breaker else None,
        lag={priority: lag / SECOND for priority, lag in sorted((agent.lags or {}).items())},
    )
