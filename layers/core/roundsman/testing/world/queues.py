"""Queues as SQS has them, on a clock that is moved: late, hidden, come again, put aside.

A message that was read is hidden for its queue's visibility time-out, and is there again unless
it was deleted; after so many receives it goes to the dead letters.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

from roundsman.model.instants import SECOND, milliseconds

ORDERS, COMMANDS, REPLIES, REQUESTS = "orders", "commands", "replies", "requests"
EFFECTS = "effects"
"""No queue of the stack: calls to remote services that are still on their way."""

VISIBILITY: Mapping[str, int] = {
    ORDERS: 60 * SECOND,
    COMMANDS: 60 * SECOND,
    REPLIES: 60 * SECOND,
    REQUESTS: 180 * SECOND,
    EFFECTS: SECOND,
}
"""ms until what was read and not deleted is there again: the defaults of the template."""

MOST_RECEIVES = 5
"""As the template's MaxReceiveCount."""


@dataclass(order=True, slots=True)
class QueuedMessage:
    """A message in a queue. Those that are visible at the same instant go by `number`.

    `to` is the agent and the priority of a request (`payment/normal`), else empty.
    """

    visible_at: int
    number: int
    queue: str = field(compare=False)
    body: str = field(compare=False)
    to: str = field(compare=False, default="")
    receives: int = field(compare=False, default=0)

    @property
    def message_id(self) -> str:
        """Kept by redeliveries, as SQS keeps it."""
        return f"message-{self.number}"

    def __str__(self) -> str:
        return f"{self.message_id} of {self.to or self.queue}"


class Fate:
    """What becomes of the next messages that a rule is about; each method adds to it."""

    def __init__(self) -> None:
        """They arrive as they are sent."""
        self._copies: deque[tuple[int, ...]] = deque()

    def is_lost(self, times: int = 1) -> "Fate":
        """Never delivered."""
        self._copies.extend([()] * times)
        return self

    def is_late(self, by: timedelta, times: int = 1) -> "Fate":
        """Delivered so much later."""
        self._copies.extend([(milliseconds(by),)] * times)
        return self

    def comes_twice(self, after: timedelta = timedelta(), times: int = 1) -> "Fate":
        """Delivered, and as another copy so much later."""
        self._copies.extend([(0, milliseconds(after))] * times)
        return self

    def arrives(self, times: int = 1) -> "Fate":
        """As it is sent: the rules that follow are about later ones."""
        self._copies.extend([(0,)] * times)
        return self

    @property
    def over(self) -> bool:
        """Whether it has befallen all the messages that it was said of."""
        return not self._copies

    def next(self) -> tuple[int, ...]:
        """By how many ms each copy of the message that is sent now is late."""
        return self._copies.popleft() if self._copies else (0,)


class Queues:
    """All queues of one world. `dead` are the messages that were read too often."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._numbers = 0
        self._mail: list[QueuedMessage] = []
        self._fates: list[tuple[str, str, Fate]] = []
        self.dead: list[QueuedMessage] = []

    @property
    def waiting(self) -> tuple[QueuedMessage, ...]:
        """All that is neither deleted nor dead, hidden ones included, the earliest first."""
        return tuple(sorted(self._mail))

    def fate(self, queue: str, containing: str = "") -> Fate:
        """Of what is sent to a queue from now on and has this in its text.

        The first rule counts that is not used up.

        Raises ValueError for a queue that there is not.
        """
        if queue not in VISIBILITY:
            raise ValueError(f"queue must be one of {', '.join(VISIBILITY)}, not {queue!r}")
        self._fates.append((queue, containing, fate := Fate()))
        return fate

    def send(self, queue: str, body: str, *, delay: int = 0, to: str = "") -> None:
        """Put a message into a queue, to be read in `delay` ms at the earliest.

        A copy has the message id of what it is a copy of, as SQS has it.
        """
        self._numbers += 1
        for late in self._fate_of(queue, body):
            at = self._clock() + delay + late
            self._mail.append(QueuedMessage(at, self._numbers, queue, body, to))

    def _fate_of(self, queue: str, body: str) -> tuple[int, ...]:
        for about, containing, fate in self._fates:
            if about == queue and containing in body and not fate.over:
                return fate.next()
        return (0,)

    def first(self) -> QueuedMessage | None:
        """The message that is, or will be, visible first."""
        return min(self._mail, default=None)

    def visible(self) -> list[QueuedMessage]:
        """What can be read now, the earliest first."""
        now = self._clock()
        return sorted(mail for mail in self._mail if mail.visible_at <= now)

    def receive(self, mail: QueuedMessage) -> bool:
        """Hide it while it is handled; False where it was read too often and is dead now."""
        if mail.receives >= MOST_RECEIVES:
            self._mail.remove(mail)
            self.dead.append(mail)
            return False
        mail.receives += 1
        mail.visible_at = self._clock() + VISIBILITY[mail.queue]
        return True

    def delete(self, mail: QueuedMessage) -> None:
        """It was handled."""
        self._mail.remove(mail)

    def delay(self, mail: QueuedMessage, by: int) -> None:
        """Let it come `by` ms from now."""
        mail.visible_at = self._clock() + by
