"""What is known of the queues that the scheduler reads: commands, and the replies of each agent.

A reply that waits in its queue looks like a timeout. So the engine counts a timeout only by
evidence that the reply queue holds no reply to the attempt (`roundsman.engine.timeouts`). There are
two sources:

*Read marks.* The scheduler stores when a message was sent that it has read and handled. It does so
only for a message that waited for longer than PROMPT, and while somebody wants a mark; so a system
in which nothing waits writes none. The marks are in the same row as those of the agents, with the
same format (`roundsman.model.queue_lag`), so that every version of the code can read the row.

*Looks.* SQS reports how many messages of a queue are visible and in flight. The numbers are
approximate: they may be up to a minute old (AWS documentation of GetQueueAttributes).

A queue in which messages are read all the time is rarely seen empty, and it has no mark if nothing
in it waits. Whoever finds it so stores that a mark is wanted.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from roundsman.model.instants import MINUTE
from roundsman.model.queue_lag import PROMPT, ReadMark, queue_key

REPLIES = "replies"
WANTED = "wanted"
COMMANDS = "scheduler/commands"
"""The key of the mark of the SchedulerQueue. No queue of an agent has it: these end in a
priority."""

MARK_VALID_FOR = MINUTE
"""How long after it was read, in ms, a message that waited shows that its queue is behind."""

WANTED_FOR = 10 * MINUTE
"""How long a wish for a mark lasts, in ms: twice the longest time between two checks of an
attempt."""

HIDDEN_FOR = 2 * MINUTE
"""The longest time in ms for which a message of the scheduler that was read and not handled is
hidden: twice the visibility timeout of its queue, which a throttled scheduler may use."""

REPLY_ORDER_UNCERTAINTY = MINUTE // 2
"""How much later than another reply, in ms, a reply must have been sent to be surely read after it:
the order of a standard queue is best effort, and clocks differ."""


def replies_key(agent: str) -> str:
    """Return the key of the mark of an agent's reply queue: `payment/replies`."""
    return queue_key(agent, REPLIES)


def wanted_key(agent: str) -> str:
    """Return the key of the wish for a mark of an agent's reply queue: `payment/wanted`."""
    return queue_key(agent, WANTED)


def is_read_mark(key: str) -> bool:
    """Whether the mark with this key records how far the scheduler has read a queue."""
    return key == COMMANDS or key.endswith(f"/{REPLIES}")


def is_of_scheduler(key: str) -> bool:
    """Whether what is stored under this key is about a queue that the scheduler reads."""
    return is_read_mark(key) or key.endswith(f"/{WANTED}")


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many messages a queue has, as SQS reports."""

    visible: int
    """Messages that can be received now."""
    in_flight: int
    """Messages that were received and are hidden."""

    @property
    def empty(self) -> bool:
        """Whether there is no message, read or not."""
        return not self.visible and not self.in_flight


@dataclass(frozen=True, slots=True)
class QueueView:
    """What is known of one queue. Instants are epoch ms."""

    mark: ReadMark | None = None
    """The last read mark; None if there is none."""
    looked_at: int | None = None
    """When the depth was last read; None if it cannot be read."""
    empty_since: int | None = None
    """Since when each look has found the queue empty; None if the last one found messages."""
    confirmed_for: int = 0
    """How long the queue must have been seen empty, in ms, before that proves anything. 0 if one
    look is enough, because the scheduler is at work and nothing waits for it."""

    def lag(self, now: int) -> int:
        """How long the message of the mark waited, in ms; 0 if the mark is out of date."""
        mark = self.mark
        if mark is None or now - mark.read_at > MARK_VALID_FOR:
            return 0
        return max(0, mark.read_at - mark.sent_at)

    def is_behind(self, now: int) -> bool:
        """Whether messages wait in the queue, as its mark shows."""
        return self.lag(now) > PROMPT

    def is_slow(self, now: int) -> bool:
        """Whether the scheduler may be behind or down: one more message would make it slower."""
        return self.confirmed_for > 0 or self.is_behind(now)


UNKNOWN = QueueView()


@dataclass(frozen=True, slots=True)
class SchedulerQueues:
    """What a decision knows of the queues that the scheduler reads."""

    replies: Mapping[str, QueueView] = field(default_factory=dict)
    """The reply queues by agent. Only those that matter for the decision are here."""
    commands_wait: bool = False
    """Whether the SchedulerQueue has messages that nobody has read."""


NOTHING_KNOWN = SchedulerQueues()


def is_mark_due(sent_at: int, now: int, wanted: ReadMark | None) -> bool:
    """Whether the scheduler stores that it has read a message sent at `sent_at` (epoch ms)."""
    return now - sent_at > PROMPT or (wanted is not None and now - wanted.read_at <= WANTED_FOR)
