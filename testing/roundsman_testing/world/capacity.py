"""How much the functions of a world do at once, what runs, and when they are down.

By default an invocation takes no time, and any number of them run at once. A function with a
`Capacity` reads its queues only while an instance is free. Nothing reads the queues of a function
that is down.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heapify, heappop, heappush
from itertools import count

from roundsman.model.instants import milliseconds
from roundsman_testing.world.queues import (
    COMMANDS,
    EFFECTS,
    ORDERS,
    REPLIES,
    REQUESTS,
    VISIBILITY,
    QueuedMessage,
)
from roundsman_testing.world.versions import Version

SUBMISSION, SCHEDULER, SUPERVISOR = "submission", "scheduler", "supervisor"
READERS: Mapping[str, str] = {
    ORDERS: SUBMISSION,
    COMMANDS: SCHEDULER,
    REPLIES: SCHEDULER,
    EFFECTS: EFFECTS,
}
"""The function that reads each queue. The queue of an agent's requests is read by the agent."""

ENGINE = (SUBMISSION, SCHEDULER, SUPERVISOR)
"""The functions beside the agents."""


LARGEST_BATCH = 10
"""The most messages that an invocation reads in the template."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """How much one function does at once.

    An invocation reads its messages at its begin and handles them after the time `takes`. The calls
    of an agent begin then: its invocation lasts until they have ended, one request after the other.
    """

    instances: int = 1
    """How many invocations run at once. Of an agent: those for normal requests, as `Concurrency` in
    its block."""
    takes: timedelta = timedelta(seconds=0.5)
    """The time of one invocation, however many messages it reads, without the calls of an agent."""
    batch: int = 1
    """The most messages of one queue that an invocation reads. The supervisor reads none."""
    urgent: int = 1
    """How many invocations of an agent run at once for urgent requests, beside the others, as
    `UrgentConcurrency` in its block."""

    def __post_init__(self) -> None:
        """Raises ValueError if a value makes no sense."""
        if min(self.instances, self.batch, self.urgent) < 1:
            raise ValueError(
                "instances, batch and urgent must be 1 or more, not "
                f"{self.instances}, {self.batch}, {self.urgent}"
            )
        if self.batch > LARGEST_BATCH:
            raise ValueError(f"batch is at most {LARGEST_BATCH}, as in the template")
        longest = min(VISIBILITY[ORDERS], VISIBILITY[COMMANDS])
        if not 0 < milliseconds(self.takes) < longest:
            raise ValueError(
                f"takes must be more than nothing and less than the {longest // 1000} s for which "
                f"a message that was read is hidden, not {self.takes}"
            )


def reader_of(mail: QueuedMessage) -> str:
    """The function that reads this message: a part of the engine, or an agent by its name."""
    return READERS.get(mail.queue) or mail.to.partition("/")[0]


@dataclass(slots=True)
class SimulatedInvocation:
    """One invocation of a function."""

    function: str
    batch: Sequence[QueuedMessage]
    """The messages that it has read; a supervisor reads none."""
    version: Version
    """The code that it runs."""
    spent: int = 0
    """The time (ms) that its calls have taken so far, which only an agent's do."""
    handled: list[tuple[QueuedMessage, int]] = field(default_factory=list)
    """The messages that it has handled, each with its receives at that time."""
    calls: bool = False
    """Whether it has handled its messages, and lasts on because its calls do."""

    @property
    def pool(self) -> str:
        """The instances of which it takes one: those of a function, or of an agent's priority."""
        return _pool_of(self.batch[0]) if self.batch else self.function


def _pool_of(mail: QueuedMessage) -> str:
    return mail.to if mail.queue == REQUESTS else READERS[mail.queue]


class Functions:
    """The functions of a world: what runs, which are busy, and which are down."""

    def __init__(
        self, capacity: Mapping[str, Capacity], agents: Collection[str], account: int | None = None
    ) -> None:
        """Raises ValueError if there is no function for a capacity, or no sense in `account`.

        `account` is how many invocations of all functions run at once; None for any number.
        """
        for function in sorted(capacity):
            check_function(function, agents)
        if account is not None:
            _check_account(account, {*ENGINE, *agents} - capacity.keys())
        self._account = account
        self.throttled: Counter[str] = Counter()
        """How often a read found no instance left in the account, by function."""
        self.invocations: Counter[str] = Counter()
        """The number of invocations, by function. An agent has its own name."""
        self.read: Counter[str] = Counter()
        """The number of messages that were read, by function."""
        self._capacity = capacity
        self._running: list[tuple[int, int, SimulatedInvocation]] = []
        self._calling: list[tuple[int, SimulatedInvocation]] = []
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
        return self._down.get(function, 0) if self.is_free(function, _pool_of(mail)) else None

    def is_free(self, function: str, pool: str) -> bool:
        """Whether the function has an instance left in this pool (`SimulatedInvocation.pool`)."""
        capacity = self._capacity.get(function)
        if capacity is None:
            return True
        most = capacity.urgent if pool == f"{function}/urgent" else capacity.instances
        return self._busy[pool] < most

    def throttles(self, function: str) -> bool:
        """Whether the account has no instance left for an invocation that begins now."""
        full = self._account is not None and self._busy.total() >= self._account
        self.throttled[function] += full
        return full

    def count(self, function: str, messages: int) -> None:
        """Count an invocation that has read this number of messages."""
        self.invocations[function] += 1
        self.read[function] += messages

    def begin(self, run: SimulatedInvocation, now: int) -> None:
        """Begin an invocation of a function that has a capacity."""
        self._run(run, now + milliseconds(self._capacity[run.function].takes))

    def calling(self, run: SimulatedInvocation, now: int) -> bool:
        """Note that the calls of an invocation last on, after it has handled its messages.

        Returns whether it keeps its instance busy until they have ended.
        """
        ends_at = now + run.spent
        if run.function in self._capacity:
            run.calls = True
            self._run(run, ends_at)
            return True
        self._calling = [(at, other) for at, other in self._calling if at > now]
        self._calling.append((ends_at, run))
        return False

    def _run(self, run: SimulatedInvocation, ends_at: int) -> None:
        heappush(self._running, (ends_at, next(self._numbers), run))
        self._busy[run.pool] += 1

    def next_end(self) -> int | None:
        """When an instance has taken its time, or ends its calls; None if none is busy."""
        return self._running[0][0] if self._running else None

    def end(self) -> SimulatedInvocation:
        """The invocation of `next_end`, whose instance is free again."""
        _, _, run = heappop(self._running)
        self._busy[run.pool] -= 1
        return run

    def forget_calls(self) -> None:
        """Forget the calls of agents that have begun: nothing of them comes again."""
        self._calling.clear()

    def kill(self, function: str, now: int) -> list[QueuedMessage]:
        """End all invocations of the function, and free its instances.

        Returns the messages that were deleted too early for that: those of a function without a
        capacity whose calls last on.
        """
        for _, _, run in self._running:
            self._busy[run.pool] -= run.function == function
        self._running = [kept for kept in self._running if kept[2].function != function]
        heapify(self._running)
        ended = [run for at, run in self._calling if run.function == function and at > now]
        self._calling = [kept for kept in self._calling if kept[1].function != function]
        return [mail for run in ended for mail, _ in run.handled]


def _check_account(account: int, unlimited: Collection[str]) -> None:
    if account < 1:
        raise ValueError(f"account must be 1 or more, not {account}")
    if unlimited:
        raise ValueError(
            "with account, each function needs a capacity, or its invocations take no time; "
            f"these have none: {', '.join(sorted(unlimited))}"
        )


def check_function(function: str, agents: Collection[str]) -> None:
    """Raises ValueError if there is no such function."""
    known = (*ENGINE, *agents)
    if function not in known:
        raise ValueError(f"no function {function!r}; there are {', '.join(known)}")
