"""`roundsman agents`: lists the agents, and which are on hold and why."""

import json
from typing import Annotated

import typer

from roundsman_console.agent.documents import AgentListDocument
from roundsman_console.agent.reading import find_agents
from roundsman_console.agent.text import agents_table
from roundsman_console.agent.view import agent_document
from roundsman_console.cli.stack_option import StackOption
from roundsman_console.cli.target import find_stack
from roundsman_console.cli_errors import sentences
from roundsman_console.clock import now
from roundsman_console.terminal import results


def agents_command(
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the agents, whether they take work, and why if not. Example: roundsman agents"""
    with sentences():
        found = find_agents(find_stack(stack))
        if as_json:
            agents = [agent_document(agent) for agent in found]
            print(json.dumps(AgentListDocument(agents=agents)))
            return
        results().print(agents_table(found, now()) if found else "No agents.")
