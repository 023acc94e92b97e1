"""Presenting a hold to people (sentences) and scripts (JSON)."""

from roundsman.command_line import command_line
from roundsman.model.holds import EVERY_WORKFLOW, Hold
from roundsman.model.instants import iso, second
from roundsman_console.facts.hold.documents import HoldDocument, OrderHoldDocument


def hold_document(hold: Hold) -> HoldDocument:
    """Return a hold as JSON for scripts."""
    return {
        "since": iso(hold.since),
        "until": iso(hold.until),
        "by": hold.by,
        "reason": hold.reason,
        "passes": hold.passes,
    }


def order_hold_document(hold: Hold) -> OrderHoldDocument:
    """Return a hold on orders as JSON for scripts."""
    return {
        **hold_document(hold),
        "workflow": workflow_of(hold),
        "undosToo": hold.undos,
        "released": hold.released,
    }


def workflow_of(hold: Hold) -> str | None:
    """Return the workflow of a hold on orders; None if it holds the orders of all workflows."""
    return None if hold.workflow == EVERY_WORKFLOW else hold.workflow


def orders_of(workflow: str) -> str:
    """Return which orders a verb is about: `everything`, or `the orders of order_fulfilment`."""
    return "everything" if workflow == EVERY_WORKFLOW else f"the orders of {workflow}"


def order_hold_sentence(hold: Hold) -> str:
    """Return a sentence about a hold on orders."""
    goes = f", except {hold.released} % of the orders" if hold.released else ""
    also = ", undos too" if hold.undos else ""
    until = "" if hold.unreadable else f" until {second(hold.until)}"
    return f"{beginning(hold.target)} is held by {hold.by}{until}{goes}{also}: {hold.reason}."


def beginning(words: str) -> str:
    """Return words as a sentence begins with them: `Everything`."""
    return words[:1].upper() + words[1:]


def circuit_sentence(circuit: Hold) -> str:
    """Return a sentence about an open circuit."""
    return (
        f"The circuit of {circuit.agent} is open, until {second(circuit.until)} at least "
        f"({circuit.reason}). Only a successful call closes it."
    )


def release_command(hold: Hold) -> str:
    """Return the command that ends an operator's hold."""
    if hold.agent:
        return command_line("release", hold.agent)
    if hold.workflow == EVERY_WORKFLOW:
        return command_line("release", options=("--all",))
    return command_line("release", options=("--workflow", hold.workflow))
