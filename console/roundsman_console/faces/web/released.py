"""The agents that were released in this console: a release leaves no record in the stack."""

from collections import deque
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from roundsman.model.holds import OPERATOR, Hold
from roundsman_console.acts.hold import results
from roundsman_console.acts.hold.agents import AgentRelease
from roundsman_console.acts.hold.wake import Woken
from roundsman_console.base.result import Result
from roundsman_console.inspector import Inspector

MOST = 100
"""The number of releases that are remembered; the earliest is forgotten first."""


@dataclass(eq=False)
class ReleasedHere:
    """An agent that was released here. The thread that wakes its orders changes it."""

    agent: str
    at: int
    """In epoch ms."""
    by: str
    reason: str
    """Empty if none was given."""
    hold: Hold | None
    """The hold that it ended; None if it could not be read."""
    woken: Woken | None = None
    """The orders that were woken at once; None before they were."""
    release: AgentRelease | None = None


_RELEASED: WeakKeyDictionary[Inspector, deque[ReleasedHere]] = WeakKeyDictionary()


def note_result(inspector: Inspector, result: Result) -> None:
    """Remember the release of an agent, and then whom it woke, for as long as the console runs."""
    found = _RELEASED.setdefault(inspector, deque(maxlen=MOST))
    if isinstance(result, results.Released) and isinstance(result.release, AgentRelease):
        release, hold = result.release, result.release.agent.hold(OPERATOR)
        agent = release.agent.name
        at, by, reason = release.released_at, release.by, release.reason
        found.append(ReleasedHere(agent, at, by, reason, hold, release=release))
    elif isinstance(result, results.Woke):
        for one in found:
            if one.release is result.release:
                one.woken = result.woken


def released_here(inspector: Inspector, agent: str, since: int) -> list[ReleasedHere]:
    """Return the releases of an agent in this console at or after `since` (epoch ms)."""
    found = _RELEASED.get(inspector, ())
    return [one for one in found if one.agent == agent and one.at >= since]
