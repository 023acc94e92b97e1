"""How much the functions of a world do at once, and when they are down.

By default an invocation takes no time, and any number of them run at once. A function with a
`Capacity` reads its queues only while an instance is free. Nothing reads the queues of a function
that is down.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from heapq import heappop, heappush
from itertools import count

from roundsman.model.instants import milliseconds
from roundsman.testing.world.queues import (
    COMMANDS,
    EFFECTS,
    ORDERS,
    REPLIES,
    VISIBILITY,
    QueuedMessage,
)

SUBMISSION, SCHEDULER, SUPERVISOR = "submission", "scheduler", "supervisor"
READERS: Mapping[str, str] = {
    ORDERS: SUBMISSION,
    COMMANDS: SCHEDULER,
    REPLIES: SCHEDULER,
    EFFECTS: EFFECTS,
}
"""The function that reads each queue. The queue of an agent's requests is read by the agent."""

LIMITED = (SUBMISSION, SCHEDULER)
"""The functions that may have a capacity. An agent's visit has a clock of its own."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much one function does at once.

    An invocation reads its messages at its begin and handles them at its end.
    """

    instances: int = 1
    """How many invocations run at once."""
    takes: timedelta = timedelta(seconds=0.5)
    """The time of one invocation, however many messages it reads."""
    batch: int = 1
    """The most messages of one queue that an invocation reads."""

    def __post_init__(self) -> None:
        """Raises ValueError if a value makes no sense."""
        if self.instances < 1 or self.batch < 1:
            raise ValueError(
                f"instances and batch must be 1 or more, not {self.instances}, {self.batch}"
            )
        longest = min(VISIBILITY[ORDERS], VISIBILITY[COMMANDS])
        if not 0 < milliseconds(self.takes) < longest:
            raise ValueError(
                f"takes must be more than nothing and less than the {longest // 1000} s for which "
                f"a message that was read is hidden, not {self.takes}"
            )


def reader_of(mail: QueuedMessage) -> str:
    """The function that reads this message: a part of the engine, or an agent by its name."""
    return READERS.get(mail.queue) or mail.to.partition("/")[0]


class Functions:
    """The functions of a world: which are busy, and which are down."""

    def __init__(self, capacity: Mapping[str, Capacity]) -> None:
        """Raises ValueError if a function has a capacity and cannot have one."""
        if strange := sorted(capacity.keys() - set(LIMITED)):
            known = ", ".join(LIMITED)
            raise ValueError(f"no capacity is known for {strange[0]!r}; there are {known}")
        self.invocations: Counter[str] = Counter()
        """The number of invocations, by function. An agent has its own name."""
        self.read: Counter[str] = Counter()
        """The number of messages that were read, by function."""
        self._capacity = capacity
        self._running: list[tuple[int, int, str, Sequence[QueuedMessage]]] = []
        self._busy: Counter[str] = Counter()
        self._down: dict[str, int] = {}
        self._numbers = count()

    @property
    def limited(self) -> bool:
        """Whether any function has a capacity or was down."""
        return bool(self._capacity or self._down)

    @property
    def timed(self) -> bool:
        """Whether any function has a capacity."""
        return bool(self._capacity)

    def capacity_of(self, function: str) -> Capacity | None:
        """The capacity of the function; None if it is not limited."""
        return self._capacity.get(function)

    def down(self, function: str, until: int) -> None:
        """Let the function begin no invocation before `until` (epoch ms)."""
        self._down[function] = max(until, self.down_until(function))

    def down_until(self, function: str) -> int:
        """Until when the function is down (epoch ms); 0 if it never was."""
        return self._down.get(function, 0)

    def free_at(self, mail: QueuedMessage) -> int | None:
        """When an instance can read the message, in epoch ms; None if all instances are busy.

        Then the next end of an invocation frees one.
        """
        function = reader_of(mail)
        capacity = self._capacity.get(function)
        if capacity is not None and self._busy[function] >= capacity.instances:
            return None
        return self._down.get(function, 0)

    def count(self, function: str, messages: int) -> None:
        """Count an invocation that has read this number of messages."""
        self.invocations[function] += 1
        self.read[function] += messages

    def begin(self, function: str, now: int, batch: Sequence[QueuedMessage]) -> None:
        """Begin an invocation of a function that has a capacity, with the messages it has read."""
        ends_at = now + milliseconds(self._capacity[function].takes)
        heappush(self._running, (ends_at, next(self._numbers), function, batch))
        self._busy[function] += 1

    def next_end(self) -> int | None:
        """When the next invocation ends, in epoch ms; None if none runs."""
        return self._running[0][0] if self._running else None

    def end(self) -> Sequence[QueuedMessage]:
        """End the invocation that ends next. Returns the messages that it has read."""
        _, _, function, batch = heappop(self._running)
        self._busy[function] -= 1
        return batch
