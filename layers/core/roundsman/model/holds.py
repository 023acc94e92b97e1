"""Holds on agents: while a hold is in force, its agent takes no work."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from roundsman.model.events import AgentView
from roundsman.model.instants import MINUTE, second
from roundsman.model.priority import Priority
from roundsman.model.queue_lag import UNREAD, queue_key


@dataclass(frozen=True, slots=True)
class Hold:
    """A hold on an agent. An agent may have one hold of each kind at the same time."""

    agent: str
    kind: str
    """OPERATOR (an operator holds the agent) or BREAKER (its circuit breaker is open)."""
    since: int
    """When the hold began, in epoch ms."""
    until: int
    """When the hold ends, in epoch ms."""
    reason: str
    """The reason in words, for people."""
    by: str
    """Who holds the agent."""
    unreadable: bool = False
    """The stored hold cannot be read. It stays in force until somebody replaces or releases it."""


OPERATOR, BREAKER = "operator", "breaker"


UNREADABLE_HOLD_LASTS = 5 * MINUTE
"""The `until` of an unreadable hold is this many ms after each read. So the hold stays in force
until somebody replaces or releases it."""


def unreadable_hold(agent: str, kind: str, problem: str, now: int) -> Hold:
    """Return the hold that replaces a stored hold that cannot be read.

    `problem` states in a few words why it cannot be read. The hold is in force: the only known fact
    is that an operator or a circuit breaker wanted no calls to the service.
    """
    reason = f"its hold cannot be read ({problem}); release {agent}, or hold it again"
    return Hold(agent, kind, now, now + UNREADABLE_HOLD_LASTS, reason, "somebody", unreadable=True)


def in_force(holds: Iterable[Hold], now: int) -> list[Hold]:
    """Return the holds that have not ended at `now` (epoch ms), ordered by agent and kind."""
    return sorted(
        (hold for hold in holds if hold.until > now), key=lambda hold: (hold.agent, hold.kind)
    )


def describe_hold(hold: Hold) -> str:
    """Describe a hold in words: `on hold by amy until 2027-01-15T08:30:00Z: maintenance`."""
    if hold.unreadable:
        return f"on hold: {hold.reason}"
    until = second(hold.until)
    if hold.kind == BREAKER:
        return f"its circuit is open until {until}: {hold.reason}"
    return f"on hold by {hold.by} until {until}: {hold.reason}"


def hold_words(hold: Hold) -> str:
    """Return the reason for the hold, to follow the agent's name: `is held by amy: maintenance`."""
    if hold.kind == OPERATOR:
        return f"is held by {hold.by}: {hold.reason}"
    return f"has an open circuit: {hold.reason}"


def with_holds(
    views: Mapping[str, AgentView], holds: Iterable[Hold], now: int
) -> dict[str, AgentView]:
    """Return the views by queue, with the holds in force at `now` (epoch ms) added.

    `held_until` is the end of the agent's longest hold. A hold applies to both queues of its
    agent; a queue that was never read, and so has no view, gets one.
    """
    found = dict(views)
    by_agent: dict[str, list[Hold]] = {}
    for hold in in_force(holds, now):
        by_agent.setdefault(hold.agent, []).append(hold)
    for agent, its_holds in by_agent.items():
        until = max(hold.until for hold in its_holds)
        why = "; ".join(describe_hold(hold) for hold in its_holds)
        for priority in Priority:
            queue = queue_key(agent, priority)
            known = found.get(queue, UNREAD)
            found[queue] = replace(known, held_until=until, held_why=why)
    return found
