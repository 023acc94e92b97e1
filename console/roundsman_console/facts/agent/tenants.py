"""Reading which tenants are at their rate at an agent, or have a rate that was lifted."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import islice

from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.instants import second
from roundsman.model.priority import Priority
from roundsman.model.tenant_rate import tenant_lane
from roundsman.ports import ParkedEntry
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.result import EpochMs
from roundsman_console.base.sanitize import inert


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantNow:
    """A tenant that is at its rate at an agent, or whose rate is lifted."""

    agent: str
    tenant: str | None
    """Absent if the order that shows its name is gone."""
    returns_until: EpochMs
    """Until when the steps above the rate come again; in the past if none does."""
    lifted_until: EpochMs
    """In the past if the rate is not lifted."""
    by: str
    """Who has lifted the rate; empty if nobody has."""

    def words(self, at: int) -> str:
        """Return what is known of it, in a sentence."""
        who = "a tenant" if self.tenant is None else f"tenant {inert(self.tenant)}"
        if self.lifted_until > at:
            until = second(self.lifted_until)
            return f"{self.agent}: the rate of {who} is lifted until {until} by {inert(self.by)}."
        until = second(self.returns_until)
        return f"{self.agent}: {who} is at its rate; the calls above it come again until {until}."


def tenants_at_rate(stack: DeployedStack, agents: Sequence[str], at: int) -> list[TenantNow]:
    """Return the tenants at the rates of these agents that were noted last, by agent and tenant.

    Raises CallRefused for a person who may not read the rows of rates.
    """
    found = []
    for agent in agents:
        for key, order in stack.tenant_rates.noted(agent):
            row = stack.tenant_rates.read(agent, key)
            if max(row.returns_until, row.lifted_until) <= at:
                continue
            found.append(
                TenantNow(
                    agent=agent,
                    tenant=_tenant_of(stack, order, at),
                    returns_until=row.returns_until,
                    lifted_until=row.lifted_until,
                    by=row.by,
                )
            )
    return sorted(found, key=lambda one: (one.agent, one.tenant or ""))


def _tenant_of(stack: DeployedStack, order: str, at: int) -> str | None:
    try:
        task = stack.tasks.load(order, at, latest=False)
    except (SchemaTooNew, UnreadableRecord):
        return None
    return None if task is None else task.tenant


def waiting_for_rate(stack: DeployedStack, agent: str, tenant: str, most: int) -> list[ParkedEntry]:
    """Return the first orders that wait for the rate: urgent ones first, then those that have
    waited for longest."""
    lane, found = tenant_lane(agent, tenant), list[ParkedEntry]()
    for priority in (Priority.URGENT, Priority.NORMAL):
        shards = (stack.tasks.parked(lane, priority, shard, after=0) for shard in stack.every_shard)
        found += islice(merge(*shards, key=lambda one: one.since), most - len(found))
    return found
