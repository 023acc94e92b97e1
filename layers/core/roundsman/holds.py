"""Holds: why an agent takes no work for a time, and how that shows on the board."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from roundsman.events import AgentView
from roundsman.marks import UNREAD, queue_key
from roundsman.ports import BREAKER, Hold
from roundsman.values import MINUTE, clock_time
from roundsman.workflow import Priority

UNREADABLE_FOR = 5 * MINUTE
"""How long a hold that cannot be read is taken to last, from each reading of it: it ends when
somebody replaces or releases it."""


def unreadable_hold(agent: str, kind: str, problem: str, now: int) -> Hold:
    """What stands for a hold that cannot be read; `problem` says why, in a few words.

    It is in force: that somebody, or a breaker, wanted the service left alone is all that is known.
    """
    reason = f"its hold cannot be read ({problem}); release {agent}, or hold it anew"
    return Hold(agent, kind, now, now + UNREADABLE_FOR, reason, "somebody", unreadable=True)


def in_force(holds: Iterable[Hold], now: int) -> list[Hold]:
    """Those that have not ended at `now` (epoch ms), by agent and kind."""
    return sorted(
        (hold for hold in holds if hold.until > now), key=lambda hold: (hold.agent, hold.kind)
    )


def why_held(hold: Hold) -> str:
    """One hold in words: `on hold by anna until 10:42:07: acquirer maintenance`."""
    if hold.unreadable:
        return f"on hold: {hold.reason}"
    until = clock_time(hold.until)
    if hold.kind == BREAKER:
        return f"its circuit is open until {until}: {hold.reason}"
    return f"on hold by {hold.by} until {until}: {hold.reason}"


def with_holds(
    views: Mapping[str, AgentView], holds: Iterable[Hold], now: int
) -> dict[str, AgentView]:
    """The views by queue, each with what holds its agent at `now`, as long as the longest does.

    An agent is held with both its queues, also one that was never read and so has no view yet.
    """
    found = dict(views)
    by_agent: dict[str, list[Hold]] = {}
    for hold in in_force(holds, now):
        by_agent.setdefault(hold.agent, []).append(hold)
    for agent, its_holds in by_agent.items():
        until = max(hold.until for hold in its_holds)
        why = "; ".join(why_held(hold) for hold in its_holds)
        for priority in Priority:
            queue = queue_key(agent, priority)
            known = found.get(queue, UNREAD)
            found[queue] = replace(known, held_until=until, held_why=why)
    return found
