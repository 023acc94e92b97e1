"""In-memory queues that behave like SQS queues, on the clock of a world.

A message that was received is hidden for the visibility timeout of its queue. It is redelivered
unless it is deleted in that time. After the receives of MOST_RECEIVES it becomes a dead letter.
"""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from heapq import heappop, heappush, nsmallest
from itertools import count

from roundsman.model.instants import SECOND, milliseconds
from roundsman.model.redelivery import hidden_for
from roundsman.model.scheduler_queues import QueueDepth

ORDERS, COMMANDS, REPLIES, REQUESTS = "orders", "commands", "replies", "requests"
EFFECTS = "effects"
"""Not a queue of the stack: it holds calls to remote services that arrive late."""

OPERATOR_PRINCIPAL = "AROAOPERATOR"
"""The unique id of the role of a world's operators."""
SUBMISSION_PRINCIPAL = "AROASUBMISSION"
"""The unique id of the role of a world's submission function."""
SUPERVISOR_PRINCIPAL = "AROASUPERVISOR"
"""The unique id of the role of a world's supervisors."""
CONSOLE_PRINCIPAL = "AROACONSOLE"
"""The unique id of the role of a console that a world's operators share."""
SUPERVISOR_SENDER = f"{SUPERVISOR_PRINCIPAL}:fn"
OPERATOR_SENDER, SUBMISSION_SENDER = f"{OPERATOR_PRINCIPAL}:ann", f"{SUBMISSION_PRINCIPAL}:fn"
APPLICATION_SENDER = "AROAAPPLICATION:shop"
SERVICE_SENDER = "AIDASERVICE"
"""What SQS notes of a service of AWS: an id of the service's own, which nothing documents."""
A_FUNCTION = ""
"""The sender of what a function of the stack sends: the queue decides which one."""
AGENT_SENDER, ANSWER_SENDER = "AROAAGENT:fn", "AROAAPPROVALS:desk"
"""The principal that sends the events of a world's application."""

VISIBILITY: Mapping[str, int] = {
    ORDERS: 60 * SECOND,
    COMMANDS: 60 * SECOND,
    REPLIES: 60 * SECOND,
    REQUESTS: 240 * SECOND,
    EFFECTS: SECOND,
}
"""The visibility timeout of each queue, in ms: the defaults of the template."""

MOST_RECEIVES: Mapping[str, int] = {
    ORDERS: 180,
    COMMANDS: 180,
    REPLIES: 180,
    REQUESTS: 5,
    EFFECTS: 5,
}
"""The receives after which a message becomes a dead letter: the template's redrive policies."""


@dataclass(order=True, slots=True)
class QueuedMessage:
    """A message in a queue. Messages are ordered by `visible_at`, then by `number`."""

    visible_at: int
    """When the message can be received, in epoch ms."""
    number: int
    """The position of the message among all messages sent; a copy has the same number."""
    queue: str = field(compare=False)
    body: str = field(compare=False)
    to: str = field(compare=False, default="")
    """The agent and the priority of a request (`payment/normal`), the agent of a reply, and empty
    for other messages. A queue of the stack is `queue` and `to` together."""
    sender: str | None = field(compare=False, default=None)
    """The principal that sent the message, in the form of the `SenderId` of SQS."""
    receives: int = field(compare=False, default=0)
    """How often the message was received."""
    sent_at: int = field(compare=False, default=0)
    """When the message was sent, in epoch ms: the `SentTimestamp` of SQS."""
    gone: bool = field(compare=False, default=False)
    """Whether the message was deleted or is a dead letter."""

    @property
    def message_id(self) -> str:
        """The message id, which a redelivery keeps, as in SQS."""
        return f"message-{self.number}"

    def __str__(self) -> str:
        return f"{self.message_id} of {self.to if self.queue == REQUESTS else self.queue}"


class DeliveryRule:
    """A rule that says how the next messages are delivered. Each method adds to it, in order.

    `times` is the number of messages to which an addition applies.
    """

    def __init__(self) -> None:
        """Start without additions: every message is delivered normally."""
        self._copies: deque[tuple[int, ...]] = deque()

    def is_lost(self, times: int = 1) -> "DeliveryRule":
        """Never deliver the message."""
        self._copies.extend([()] * times)
        return self

    def is_late(self, by: timedelta, times: int = 1) -> "DeliveryRule":
        """Deliver the message late, by `by`."""
        self._copies.extend([(milliseconds(by),)] * times)
        return self

    def comes_twice(self, after: timedelta = timedelta(), times: int = 1) -> "DeliveryRule":
        """Deliver the message, and a copy of it `after` later."""
        self._copies.extend([(0, milliseconds(after))] * times)
        return self

    def arrives(self, times: int = 1) -> "DeliveryRule":
        """Deliver the message normally; additions after this one apply to later messages."""
        self._copies.extend([(0,)] * times)
        return self

    @property
    def over(self) -> bool:
        """Whether the rule is used up."""
        return not self._copies

    def next(self) -> tuple[int, ...]:
        """The delay in ms of each copy of the message that is sent now; empty if it is lost."""
        return self._copies.popleft() if self._copies else (0,)


class WorldQueues:
    """All queues of one world. `dead` lists the dead letters."""

    def __init__(self, clock: Callable[[], int]) -> None:
        self._clock = clock
        self._numbers = 0
        self._mail: list[QueuedMessage] = []
        self._soonest: dict[tuple[str, str], list[tuple[int, int, int, QueuedMessage]]] = {}
        self._places = count()
        self._fates: list[tuple[str, str, DeliveryRule]] = []
        self.dead: list[QueuedMessage] = []
        self.hidden_requests: dict[str, int] = {}
        """The visibility timeout of an agent's requests, in ms, if it is not the default."""

    @property
    def sent(self) -> int:
        """How many messages were sent so far."""
        return self._numbers

    @property
    def waiting(self) -> tuple[QueuedMessage, ...]:
        """All messages that are not deleted or dead, hidden ones included, earliest first."""
        return tuple(sorted(self._mail))

    def fate(self, queue: str, containing: str = "") -> DeliveryRule:
        """Add a rule for the messages that are sent to a queue from now on.

        It applies to messages whose text contains `containing`. If several rules apply to a
        message, the first that is not used up counts. Raises ValueError if there is no such queue.
        """
        if queue not in VISIBILITY:
            raise ValueError(f"queue must be one of {', '.join(VISIBILITY)}, not {queue!r}")
        self._fates.append((queue, containing, fate := DeliveryRule()))
        return fate

    def send(
        self,
        queue: str,
        body: str,
        *,
        delay: int = 0,
        to: str = "",
        sender: str | None = None,
        sent_at: int | None = None,
    ) -> None:
        """Put a message into a queue; it is visible `delay` ms from now at the earliest.

        `sent_at` is when it is sent (epoch ms); None means now. A copy of a message has the same
        message id, as in SQS.
        """
        self._numbers += 1
        now = self._clock()
        for late in self._fate_of(queue, body):
            mail = QueuedMessage(now + delay + late, self._numbers, queue, body, to, sender)
            mail.sent_at = now if sent_at is None else sent_at
            self._mail.append(mail)
            self._place(mail)

    def _place(self, mail: QueuedMessage) -> None:
        """Put the message at its place in its queue, by `visible_at`."""
        places = self._soonest.setdefault((mail.queue, mail.to), [])
        heappush(places, (mail.visible_at, mail.number, next(self._places), mail))

    def _fate_of(self, queue: str, body: str) -> tuple[int, ...]:
        for about, containing, fate in self._fates:
            if about == queue and containing in body and not fate.over:
                return fate.next()
        return (0,)

    def first(self) -> QueuedMessage | None:
        """The message that is or becomes visible first; None if all queues are empty."""
        return min(self.heads(), default=None)

    def heads(self) -> list[QueuedMessage]:
        """The message of each queue that is or becomes visible first."""
        return [places[0][-1] for places in self._soonest.values() if self._pruned(places)]

    def _pruned(self, places: list[tuple[int, int, int, QueuedMessage]]) -> bool:
        """Remove the places that messages have left. Returns False if none is left."""
        while places and (places[0][-1].gone or places[0][0] != places[0][-1].visible_at):
            heappop(places)
        return bool(places)

    def next_of(self, mail: QueuedMessage, most: int) -> list[QueuedMessage]:
        """Up to `most` visible messages of the queue of this message, the earliest first."""
        if most < 1:
            return []
        place, now = (mail.queue, mail.to), self._clock()
        found = [each for each in self._mail if (each.queue, each.to) == place]
        return nsmallest(most, (each for each in found if each.visible_at <= now))

    def depth(self, queue: str, to: str = "") -> QueueDepth:
        """How many messages of a queue are visible now, and how many are in flight.

        `to` is the agent of a queue of replies, or the agent and priority of one of requests. A
        message is in flight from when it is received until it is deleted or visible again. A
        delayed message is neither before its delay is over, nor is a reply before it is sent. A
        reply that is delivered late is in its queue, and so counts as visible.
        """
        now = self._clock()
        found = [mail for mail in self._mail if (mail.queue, mail.to) == (queue, to)]
        in_flight = sum(mail.receives > 0 and mail.visible_at > now for mail in found)
        if queue == REPLIES:
            return QueueDepth(sum(mail.sent_at <= now for mail in found) - in_flight, in_flight)
        return QueueDepth(sum(mail.visible_at <= now for mail in found), in_flight)

    def visible(self) -> list[QueuedMessage]:
        """The messages that are visible now, earliest first."""
        now = self._clock()
        return sorted(mail for mail in self._mail if mail.visible_at <= now)

    def receive(self, mail: QueuedMessage) -> bool:
        """Hide the message for the visibility timeout of its queue.

        Returns False if it was received too often and is now a dead letter.
        """
        if mail.receives >= MOST_RECEIVES[mail.queue]:
            self.delete(mail)
            self.dead.append(mail)
            return False
        mail.receives += 1
        mail.visible_at = self._clock() + self._hidden(mail)
        self._place(mail)
        return True

    def _hidden(self, mail: QueuedMessage) -> int:
        default = VISIBILITY[mail.queue]
        if mail.queue != REQUESTS:
            return default
        return self.hidden_requests.get(mail.to.partition("/")[0], default)

    def delete(self, mail: QueuedMessage) -> None:
        """Delete a message that was handled."""
        self._mail.remove(mail)
        mail.gone = True

    def put_back(self, mail: QueuedMessage) -> None:
        """Put a message back that was deleted: it comes again after its visibility timeout."""
        if mail.gone:
            mail.gone = False
            self._mail.append(mail)
            self._place(mail)

    def empty(self, *queues: str) -> None:
        """Delete all messages of these queues, hidden ones included."""
        for mail in self.waiting:
            if mail.queue in queues:
                self.delete(mail)

    def withdraw(self, agent: str) -> None:
        """Delete the replies that the agent would send from now on, at the ends of its calls."""
        for mail in [mail for mail in self._mail if (mail.queue, mail.to) == (REPLIES, agent)]:
            if mail.sender == AGENT_SENDER and mail.sent_at > self._clock():
                self.delete(mail)

    def hide_longer(self, mail: QueuedMessage, drawn: float) -> None:
        """Hide a message that was throttled, as its function does; `drawn` is from 0 to 1.

        An agent does not, so a request stays hidden for the visibility timeout of its queue.
        """
        hidden = hidden_for(VISIBILITY[mail.queue], mail.receives, drawn)
        if mail.queue in (ORDERS, COMMANDS, REPLIES) and hidden is not None:
            self.delay(mail, hidden)

    def delay(self, mail: QueuedMessage, by: int) -> None:
        """Make the message visible `by` ms from now."""
        mail.visible_at = self._clock() + by
        self._place(mail)
