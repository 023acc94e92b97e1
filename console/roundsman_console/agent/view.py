"""Presenting an agent and its holds to people (text) and scripts (JSON)."""

from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import iso, second
from roundsman_console.agent.documents import AgentDocument, HoldDocument
from roundsman_console.agent.reading import AgentNow


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


def hold_document(hold: Hold) -> HoldDocument:
    """Return a hold as JSON for scripts."""
    return {
        "since": iso(hold.since),
        "until": iso(hold.until),
        "by": hold.by,
        "reason": hold.reason,
    }


def circuit_sentence(circuit: Hold) -> str:
    """Return a sentence about an open circuit."""
    return (
        f"The circuit of {circuit.agent} is open, until {second(circuit.until)} at least "
        f"({circuit.reason}). Only a successful call closes it."
    )
