"""How long a proof takes by calculation, with the instances that its agents may have.

The times of deployments and of the removal are assumed: they were not measured on AWS.
"""

from collections.abc import Mapping
from math import ceil
from typing import Final

from roundsman_dev.prove.application.agents import AGENTS
from roundsman_dev.prove.application.orders import ProofOrder, Treatment
from roundsman_dev.prove.application.services import HANGS, LATE, SLOW
from roundsman_dev.prove.faults import FAULTS

INSTANCES: Final[Mapping[str, int]] = {"stock": 4, "payment": 2, "courier": 2}
"""The most instances of each agent, as in the template of a proof. So an account whose quota is ten
always has one for the supervisor and one for the scheduler."""

TIMEOUT = 45.0
"""How long, in seconds, a function of an agent may run, as in the template."""

CALLS = 0.4
"""How long, in seconds, an agent needs for the calls of an order that are answered at once."""

CREATION, UPDATE, REMOVAL = 360.0, 180.0, 300.0
"""How long, in seconds, the first deployment takes, each later one, and the removal."""

LAST = 300.0
"""How long, in seconds, the last order takes if its service gives no answer, and then until no
message is hidden any more: a request that was read is hidden for 120 seconds."""

_HOLDS: Final[Mapping[Treatment, float]] = {
    Treatment.SLOW: SLOW,
    Treatment.HANGS: HANGS,
    Treatment.REFUSED_LATE: LATE,
    Treatment.RUNS_OUT: TIMEOUT,
}
_AGENT_OF: Final = {step.name: name for name, steps in AGENTS.items() for step in steps}


def seconds_of_orders(orders: int) -> float:
    """Return how long the orders take from the first to the last, in seconds, with the faults.

    It is the time of the agent with the most work, and of what stands still meanwhile.
    """
    held = dict.fromkeys(INSTANCES, CALLS * orders)
    for order in map(ProofOrder, range(orders)):
        agent = _AGENT_OF[order.struck.partition("[")[0]]
        held[agent] += _HOLDS.get(order.treatment, 0.0)
    work = max(seconds / INSTANCES[name] for name, seconds in held.items())
    faults = sum(fault.seconds + fault.deployments * UPDATE for fault in FAULTS)
    return work + faults + LAST


def estimated_minutes(orders: int) -> int:
    """Return how long a whole proof of so many orders takes, in minutes."""
    return ceil((CREATION + seconds_of_orders(orders) + REMOVAL) / 60)


def longest_minutes(within: int) -> int:
    """Return how long a whole proof may take, in minutes.

    `within` is the longest time from the first order until all have ended, in minutes.
    """
    return ceil((CREATION + REMOVAL) / 60) + within
