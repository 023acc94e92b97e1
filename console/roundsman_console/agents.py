"""The agents of a stack, and `roundsman agents`: who takes work, who is held, who is behind.

Which agents there are is told by the stack's outputs: each agent has its request queues there. Who
holds one, and how far behind it is, stands in ControlTable.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from roundsman.model.holds import BREAKER, OPERATOR, Hold
from roundsman.model.instants import format_duration, iso
from roundsman.model.json import Json
from roundsman_console.inert import inert, plain
from roundsman_console.sentences import NOT_FOUND, ConsoleError, sentences
from roundsman_console.stack import DeployedStack, StackOption, find_stack
from roundsman_console.task_view import second

_QUEUE = re.compile(r"([A-Z][A-Za-z0-9]*?)(?:Urgent)?RequestQueueUrl")
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class AgentNow:
    """One agent as it is now. `lags` (ms) are by priority, of queues that were read lately."""

    name: str
    holds: tuple[Hold, ...] = ()
    lags: Mapping[str, int] | None = None

    def hold(self, kind: str) -> Hold | None:
        """The hold of that kind, where there is one in force."""
        return next((hold for hold in self.holds if hold.kind == kind), None)


def find_agents(stack: DeployedStack) -> list[AgentNow]:
    """The stack's agents, in the order of their names."""
    views, holds = stack.board.agents(), stack.holds.holds()
    lags: dict[str, dict[str, int]] = {}
    for queue, view in views.items():
        agent, _, priority = queue.partition("/")
        lags.setdefault(agent, {})[priority] = view.lag
    return [
        AgentNow(name, tuple(hold for hold in holds if hold.agent == name), lags.get(name, {}))
        for name in agent_names(stack.outputs, {*lags, *(hold.agent for hold in holds)})
    ]


def find_agent(stack: DeployedStack, name: str) -> AgentNow:
    """The agent of that name. Raises ConsoleError where the stack has none."""
    agents = find_agents(stack)
    found = next((agent for agent in agents if agent.name == name), None)
    if found is None:
        known = ", ".join(agent.name for agent in agents) or "none"
        raise ConsoleError(
            f"There is no agent {inert(name[:50])!r} in {stack.name}; there are: {known}.",
            NOT_FOUND,
        )
    return found


def agent_names(outputs: Mapping[str, str], noted: set[str]) -> list[str]:
    """`PaymentBackupRequestQueueUrl` is of payment_backup.

    An output's name does not say where a figure stood alone (`mail_2`); what the agent itself has
    noted does.
    """
    spelled = {name.replace("_", ""): name for name in noted}
    found = set()
    for output in outputs:
        queue = _QUEUE.fullmatch(output)
        if queue:
            name = _WORDS.sub("_", queue[1]).lower()
            found.add(spelled.get(name.replace("_", ""), name))
    return sorted(found)


def agents_command(
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the agents: which take work, which are held and why. Example: roundsman agents"""
    with sentences():
        found = find_agents(find_stack(stack))
        if as_json:
            print(json.dumps({"agents": [agent_document(agent) for agent in found]}))
            return
        Console(highlight=False).print(agents_table(found) if found else "No agents.")


def agent_document(agent: AgentNow) -> dict[str, Json]:
    """The agent as scripts read it; lags in seconds."""
    operator, breaker = agent.hold(OPERATOR), agent.hold(BREAKER)
    lags = agent.lags or {}
    return {
        "agent": agent.name,
        "takesWork": not agent.holds,
        "hold": hold_document(operator),
        "circuit": hold_document(breaker),
        "lag": {priority: lag / 1000 for priority, lag in sorted(lags.items())},
    }


def hold_document(hold: Hold | None) -> Json:
    """One hold as scripts read it."""
    if hold is None:
        return None
    return {
        "since": iso(hold.since),
        "until": iso(hold.until),
        "by": hold.by,
        "reason": hold.reason,
    }


def hold_words(hold: Hold) -> str:
    """Why the agent takes no work, after its name: `is held by amy: maintenance`."""
    if hold.kind == OPERATOR:
        return f"is held by {hold.by}: {hold.reason}"
    return f"has its circuit open: {hold.reason}"


def agents_table(agents: list[AgentNow]) -> Table:
    """A row for each agent, and for each reason why it takes no work."""
    table = Table(box=None, pad_edge=False)
    held = any(agent.holds for agent in agents)
    for heading in ("Agent", "Work", *(("Since", "Until") if held else ()), "Lag"):
        table.add_column(heading, no_wrap=True)
    if held:
        table.add_column("Why", overflow="fold")
    for agent in agents:
        lag = max((agent.lags or {}).values(), default=0)
        behind = plain(format_duration(lag) if lag else "")
        if not agent.holds:
            rest = [plain("") for _ in range(2 if held else 0)]
            table.add_row(plain(agent.name), plain("taken", "green"), *rest, behind)
        for row, hold in enumerate(agent.holds):
            operator = hold.kind == OPERATOR
            table.add_row(
                plain("" if row else agent.name),
                plain("held" if operator else "circuit open", "yellow" if operator else "red"),
                plain(second(hold.since)),
                plain(second(hold.until)),
                plain("") if row else behind,
                plain(f"{hold.by}: {hold.reason}" if operator else hold.reason),
            )
    return table
