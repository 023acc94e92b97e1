"""The agents of a stack: who takes work, who is on hold, who is behind.

The stack's outputs say which agents there are: each agent has its request queues there. The holds
on an agent, and how far behind it is, are in ControlTable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.model.holds import Hold
from roundsman_console.cli_errors import NOT_FOUND, ConsoleError
from roundsman_console.read.stack import DeployedStack
from roundsman_console.sanitize import inert

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
