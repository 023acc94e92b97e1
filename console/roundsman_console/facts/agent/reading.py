"""Reading the agents of a stack: their names, holds and lags.

The names come from the stack's outputs, which contain the request queues of each agent. The holds
and the read marks, from which the lags are computed, are in ControlTable.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from roundsman.model.holds import Hold, on_orders
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import NotFound
from roundsman_console.base.sanitize import inert

_QUEUE = re.compile(r"([A-Z][A-Za-z0-9]*?)(?:Urgent)?RequestQueue")
_WORDS = re.compile(r"(?<!^)(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class AgentNow:
    """The current state of one agent."""

    name: str
    holds: tuple[Hold, ...] = ()
    """The holds in force."""
    lags: Mapping[str, int] | None = None
    """The lag in ms of each request queue, by priority; 0 if the read mark is out of date. A queue
    that was never read is missing, unless the agent is on hold."""

    def hold(self, kind: str) -> Hold | None:
        """Return the hold of this kind; None if there is none in force."""
        return next((hold for hold in self.holds if hold.kind == kind), None)


def find_agents(stack: DeployedStack) -> list[AgentNow]:
    """Return the stack's agents, sorted by name."""
    agents, _ = find_agents_and_order_holds(stack)
    return agents


def find_agents_and_order_holds(stack: DeployedStack) -> tuple[list[AgentNow], list[Hold]]:
    """Return the stack's agents, sorted by name, and the holds on orders in force, of one read."""
    views, holds = stack.board.agents(), stack.holds.holds()
    lags: dict[str, dict[str, int]] = {}
    for queue, view in views.items():
        agent, _, priority = queue.partition("/")
        lags.setdefault(agent, {})[priority] = view.lag
    agents = [
        AgentNow(name, tuple(hold for hold in holds if hold.agent == name), lags.get(name, {}))
        for name in agent_names(stack.outputs, {*lags, *(hold.agent for hold in holds)})
    ]
    return agents, on_orders(holds)


def find_agent(stack: DeployedStack, name: str) -> AgentNow:
    """Return the agent with this name. Raises NotFound if the stack has no such agent."""
    agents = find_agents(stack)
    found = next((agent for agent in agents if agent.name == name), None)
    if found is None:
        known = ", ".join(agent.name for agent in agents) or "none"
        raise NotFound(
            f"No agent {inert(name[:50])!r} in {stack.name}. The agents are {known}.",
        )
    return found


def agent_names(outputs: Mapping[str, str], noted: set[str]) -> list[str]:
    """Return the names of the agents whose request queues are in the outputs, sorted.

    The output `PaymentBackupRequestQueueUrl` belongs to the agent `payment_backup`. An output's
    name does not show an underscore before a digit (`mail_2`), so a name is taken from `noted`,
    the names in the read marks and holds, if it differs only in underscores.
    """
    spelled = {name.replace("_", ""): name for name in noted}
    found = set()
    for output in outputs:
        name = agent_of_queue(output.removesuffix("Url"))
        if name is not None:
            found.add(spelled.get(name.replace("_", ""), name))
    return sorted(found)


def agent_of_queue(queue: str) -> str | None:
    """Return the agent of a request queue by the queue's name in the template.

    `PaymentBackupUrgentRequestQueue` is that of `payment_backup`. None for another queue.
    """
    found = _QUEUE.fullmatch(queue)
    return _WORDS.sub("_", found[1]).lower() if found else None
