"""`roundsman agents`: lists the agents, which are on hold and why, and which orders are."""

import json
from contextlib import suppress
from typing import Annotated

import typer

from roundsman.errors import CallRefused
from roundsman_console.base.clock import now
from roundsman_console.base.result import document_of
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import find_stack
from roundsman_console.faces.cli.terminal import results, say
from roundsman_console.faces.cli.text.agent import agents_table, order_hold_lines
from roundsman_console.facts.agent.documents import AgentListDocument, agent_document
from roundsman_console.facts.agent.reading import find_agents_and_order_holds
from roundsman_console.facts.agent.tenants import tenants_at_rate
from roundsman_console.facts.hold.view import order_hold_document


def agents_command(
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the agents, whether they take work, and why if not.

    Above them are the holds on orders, and below them the tenants that are at their rate.

    Example: roundsman agents
    """
    with sentences():
        of_stack = find_stack(stack)
        found, of_orders = find_agents_and_order_holds(of_stack)
        tenants = None
        with suppress(CallRefused):  # the policies of an older stack
            tenants = tenants_at_rate(of_stack, [one.name for one in found], now())
        if as_json:
            listed = AgentListDocument(
                agents=[*map(agent_document, found)],
                order_holds=[*map(order_hold_document, of_orders)],
                tenants=tenants,
            )
            print(json.dumps(document_of(listed)))
            return
        say(*order_hold_lines(of_orders))
        results().print(agents_table(found, now()) if found else "No agents.")
        if tenants is None:
            say("You may not read which tenants are at their rates.")
        say(*(one.words(now()) for one in tenants or ()))
