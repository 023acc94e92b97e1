"""The polling of a step whose agent looks at an outside job until that is done."""

from dataclasses import dataclass, replace
from typing import Annotated

from roundsman.model.field_table import Stored
from roundsman.model.instants import SECOND, format_duration

SHORTEST_INTERVAL = SECOND
"""The least time in ms between two polls of one step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Polling:
    """What is known of a step that is polled. Instants are epoch ms."""

    count: Annotated[int, Stored("Polls", since=7)]
    """How often its agent has replied that the outside job is not done yet."""
    since: Annotated[int, Stored("PolledSince", since=7)]
    """When its agent first replied so."""
    until: Annotated[int, Stored("PollUntil", since=7)]
    """Until when the step is polled. If the job is not done then, the step has failed."""

    @classmethod
    def begun(cls, now: int, within: int) -> "Polling":
        """Return the polling that begins with a first reply at `now` and lasts for `within` ms."""
        return cls(count=1, since=now, until=now + max(within, SHORTEST_INTERVAL))

    def again(self) -> "Polling":
        """Return the polling with one more reply. Its end stays as it is."""
        return replace(self, count=self.count + 1)

    def later(self, by: int) -> "Polling":
        """Return the polling that ends `by` ms later."""
        return replace(self, until=self.until + by)

    def is_over(self, now: int) -> bool:
        """Whether its time is over at `now`."""
        return self.until <= now

    def next_poll(self, now: int, after: int) -> int:
        """Return when to poll again if the agent asks for that in `after` ms, from `now` on."""
        return min(now + max(after, SHORTEST_INTERVAL), self.until)

    def words(self, now: int) -> str:
        """Return how often the step was polled, and for how long: `polled 7 times in 12 min`."""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        return f"polled {times} in {format_duration(max(0, now - self.since))}"
