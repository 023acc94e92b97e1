"""What is known of the queues that the scheduler reads. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from roundsman.model.instants import format_duration
from roundsman.model.queue_lag import PROMPT, ReadMark
from roundsman.model.scheduler_queues import COMMANDS, QueueView, replies_key


@dataclass(frozen=True, slots=True)
class SchedulerNow:
    """What is known of the queues that the scheduler reads, at one instant."""

    marks: Mapping[str, ReadMark] = field(default_factory=dict)
    """The read marks of the queues, by key (`roundsman.model.scheduler_queues`)."""
    waiting: int | None = None
    """The number of messages in the SchedulerQueue; None if it is not known."""

    def behind(self, at: int, agent: str | None = None) -> str:
        """Return how far the scheduler is behind with its commands, or the replies of `agent`.

        `at` is the instant in epoch ms. The sentence is empty if no mark that is in date says so.
        """
        keys = [COMMANDS, *([replies_key(agent)] if agent else ())]
        lag = max(QueueView(self.marks.get(key)).lag(at) for key in keys)
        return f"the scheduler is {format_duration(lag)} behind" if lag > PROMPT else ""

    def start_words(self, at: int) -> str:
        """Return where a late Start is at `at` (epoch ms); empty if it does not wait."""
        behind = self.behind(at)
        if not behind and self.waiting == 0:
            return ""
        return "its start waits in the scheduler's queue" + (f"; {behind}" if behind else "")


NOTHING_KNOWN = SchedulerNow()
