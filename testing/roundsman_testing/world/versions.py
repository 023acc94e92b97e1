"""The versions of a world's code: a deployment replaces the old one at once, or over some time.

On AWS, instances of the old version go on polling for a while, and submission and each agent are
replaced one after the other. So an order of the new version may reach an agent whose code does not
know the step, or that has no queue yet.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from roundsman.agents.agent import Agent
from roundsman.errors import RejectedOrder
from roundsman.submission.events import Asked

ReadOrder = Callable[[str], Sequence[Asked | RejectedOrder]]
"""A function that reads a message as submission does. It raises RejectedOrder or InvalidMessage."""


@dataclass(frozen=True, slots=True)
class Version:
    """The code of submission and of the agents after one deployment."""

    read: ReadOrder
    agents: Mapping[str, Agent]


class Versions:
    """The newest version and, until a deployment is over, the one before it."""

    def __init__(self, newest: Version, chance: Random) -> None:
        """`chance` decides which version an invocation runs."""
        self.newest = newest
        self._chance = chance
        self._old: Version | None = None
        self._until = 0
        self._appear: Mapping[str, int] = {}

    @property
    def two(self) -> bool:
        """Whether two versions ran side by side at the last invocation."""
        return self._old is not None

    def deploy(self, newest: Version, now: int, over: int) -> None:
        """Replace the newest version in `over` ms from `now` (epoch ms); 0 means at once."""
        old, self.newest = self.newest, newest
        self._until = now + over
        self._old = Version(old.read, {**newest.agents, **old.agents}) if over else None
        added = sorted(newest.agents.keys() - old.agents.keys()) if over else ()
        self._appear = {agent: now + round(self._chance.random() * over) for agent in added}

    def of_invocation(self, now: int) -> Version:
        """The version that an invocation runs which begins now: the old or the new, by chance."""
        if self._old is None or now >= self._until:
            self._old = None
            return self.newest
        return self._chance.choice((self._old, self.newest))

    def agents_with_queues(self, now: int) -> Collection[str]:
        """The agents that have queues: one that a deployment adds has them from some instant on."""
        return [agent for agent in self.newest.agents if self._appear.get(agent, 0) <= now]
