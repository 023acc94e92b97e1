"""The agents that were released in this console: a release leaves no record in the stack."""

from collections import deque
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from roundsman.model.holds import OPERATOR, Hold
from roundsman_console.acts.hold.agents import AgentRelease
from roundsman_console.acts.hold.wake import Woken
from roundsman_console.base.clock import now
from roundsman_console.inspector import Inspector

MOST = 100
"""The number of releases that are remembered; the earliest is forgotten first."""


@dataclass(eq=False)
class Released:
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
    """The orders that were examined and woken so far; None before the first ones."""

    def note(self, woken: Woken) -> None:
        """Remember the orders that were woken so far."""
        self.woken = woken


_RELEASED: WeakKeyDictionary[Inspector, deque[Released]] = WeakKeyDictionary()


def note_release(inspector: Inspector, release: AgentRelease) -> Released:
    """Remember a release for as long as the console runs."""
    found = _RELEASED.setdefault(inspector, deque(maxlen=MOST))
    agent = release.agent
    hold = agent.hold(OPERATOR)
    released = Released(agent.name, now(), release.by, release.reason, hold)
    found.append(released)
    return released


def released_here(inspector: Inspector, agent: str, since: int) -> list[Released]:
    """Return the releases of an agent in this console at or after `since` (epoch ms)."""
    found = _RELEASED.get(inspector, ())
    return [one for one in found if one.agent == agent and one.at >= since]
