"""Holds: why an agent takes no work for a time, and how that shows on the board."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from roundsman.model.events import AgentView
from roundsman.model.instants import MINUTE, clock_time
from roundsman.model.queue_lag import UNREAD, queue_key
from roundsman.model.workflow import Priority


@dataclass(frozen=True, slots=True)
class Hold:
    """Why an agent takes no work, since when and until when (epoch ms).

    `kind` is OPERATOR (somebody asked for it, `by` says who) or BREAKER (its circuit is open).
    An agent may be held for both reasons at once. `reason` is for people. One that is `unreadable`
    stands for a stored hold that cannot be read: it is in force until it is replaced or released.
    """

    agent: str
    kind: str
    since: int
    until: int
    reason: str
    by: str
    unreadable: bool = False


OPERATOR, BREAKER = "operator", "breaker"


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
