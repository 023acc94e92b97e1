"""Presenting an agent and its holds to people (text) and scripts (JSON)."""

from roundsman.model.holds import BREAKER, EVERY_WORKFLOW, OPERATOR, Hold
from roundsman.model.instants import iso, second
from roundsman_console.agent.documents import AgentDocument, HoldDocument, OrderHoldDocument
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


def workflow_of(hold: Hold) -> str | None:
    """Return the workflow of a hold on orders; None if it holds the orders of all workflows."""
    return None if hold.workflow == EVERY_WORKFLOW else hold.workflow


def order_hold_document(hold: Hold) -> OrderHoldDocument:
    """Return a hold on orders as JSON for scripts."""
    return {
        **hold_document(hold),
        "workflow": workflow_of(hold),
        "undosToo": hold.undos,
        "released": hold.released,
    }


def order_hold_sentence(hold: Hold) -> str:
    """Return a sentence about a hold on orders."""
    goes = f", except {hold.released} % of the orders" if hold.released else ""
    also = ", undos too" if hold.undos else ""
    target = hold.target[:1].upper() + hold.target[1:]
    until = "" if hold.unreadable else f" until {second(hold.until)}"
    return f"{target} is held by {hold.by}{until}{goes}{also}: {hold.reason}."


def circuit_sentence(circuit: Hold) -> str:
    """Return a sentence about an open circuit."""
    return (
        f"The circuit of {circuit.agent} is open, until {second(circuit.until)} at least "
        f"({circuit.reason}). Only a successful call closes it."
    )
