"""An Outbox over a world's queues, and what left the stack: statuses, alerts, rejections."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from roundsman.errors import Problem, UnknownAgent
from roundsman.testing.world.queues import COMMANDS, REPLIES, REQUESTS
from roundsman.wire.alert import Alert
from roundsman.wire.commands import INSPECT, START, Command
from roundsman.wire.messages import AgentRequest

Post = Callable[[str, str, int, str], None]
"""Puts a text into a queue, with a delay in ms; of a request, for whom (`payment/normal`)."""


@dataclass(frozen=True, slots=True)
class Status:
    """A status that an application was sent; repeated ones included."""

    order_id: str
    name: str
    seq: int
    detail: str
    queue_url: str


@dataclass(frozen=True, slots=True)
class PutAside:
    """A message in the RejectedQueue: where it was, its text, and all that is wrong with it."""

    queue: str
    body: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"a message of {self.queue}, {'; '.join(map(str, self.problems))}"


@dataclass
class WorldOutbox:
    """Outbox of every part. What leaves the stack is kept here, in the order of sending.

    `agents` are those that have queues. `dead_queues` are reply queues that take nothing.
    `on_alert` is told each alert as it is published.
    """

    post: Post
    agents: Collection[str]
    dead_queues: set[str] = field(default_factory=set)
    statuses: list[Status] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    put_aside: list[PutAside] = field(default_factory=list)
    told: dict[str, set[str]] = field(default_factory=dict)
    on_alert: Callable[[Alert], None] = lambda _: None

    def reopened(self, task_id: str) -> None:
        """Its end was none: the next one is to be told anew."""
        self.told.pop(task_id, None)

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Send each; raises UnknownAgent after all, where one has no queue."""
        unknown: list[UnknownAgent] = []
        for agent, priority, request in requests:
            if agent in self.agents:
                self.post(REQUESTS, request.body(), 0, f"{agent}/{priority}")
            else:
                unknown.append(UnknownAgent(agent, priority))
        if unknown:
            raise unknown[0]

    def send_reply(self, body: str) -> None:
        """An agent's."""
        self.post(REPLIES, body, 0, "")

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """To the scheduler."""
        self.post(COMMANDS, Command(START, task_id).body(), delay, "")

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """To the scheduler."""
        self.post(COMMANDS, Command(INSPECT, task_id).body(), delay, "")

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Each to the scheduler."""
        for task_id, delay in inspects:
            self.send_inspect(task_id, delay=delay)

    def send_command(self, command: Command) -> None:
        """To the scheduler."""
        self.post(COMMANDS, command.body(), 0, "")

    def send_status(self, queue_url: str, body: str) -> bool:
        """Keep it; False, and nothing kept, for a dead queue."""
        said = json.loads(body)
        order_id, name = str(said["orderId"]), str(said["status"])
        self.told.setdefault(order_id, set()).add(name)  # of a dead queue, as well as it can be
        if queue_url in self.dead_queues:
            return False
        self.statuses.append(Status(order_id, name, said["seq"], str(said["detail"]), queue_url))
        return True

    def publish(self, alert: Alert) -> None:
        """Keep it."""
        self.alerts.append(alert)
        self.on_alert(alert)

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Keep it."""
        self.put_aside.append(PutAside(queue, body, tuple(problems)))
