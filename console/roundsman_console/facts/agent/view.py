"""Presenting an agent to scripts (JSON)."""

from roundsman.model.holds import BREAKER, OPERATOR
from roundsman_console.facts.agent.documents import AgentDocument
from roundsman_console.facts.agent.reading import AgentNow
from roundsman_console.facts.hold.view import hold_document


def agent_document(agent: AgentNow) -> AgentDocument:
    """Return the agent as JSON for scripts; lags are in seconds."""
    operator, breaker = agent.hold(OPERATOR), agent.hold(BREAKER)
    lags = agent.lags or {}
    return {
        "agent": agent.name,
        "takesWork": not agent.holds,
        "hold": hold_document(operator) if operator else None,
        "circuit": hold_document(breaker) if breaker else None,
        "lag": {priority: lag / 1000 for priority, lag in sorted(lags.items())},
    }
