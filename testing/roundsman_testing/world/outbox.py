"""The outbox of a world: sends to its queues and keeps statuses, alerts and rejected messages."""

import json
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from roundsman.errors import Problem, UnknownAgent
from roundsman.wire.alert import Alert
from roundsman.wire.commands import INSPECT, START, Command
from roundsman.wire.messages import AgentRequest, read_reply
from roundsman_testing.world.queues import A_FUNCTION, COMMANDS, REPLIES, REQUESTS


class Post(Protocol):
    """Puts a text into a queue.

    The arguments are the queue, the text, the delay in ms, the agent and priority of a request
    (`payment/normal`) or the agent of a reply, empty for other messages, and the sender.
    """

    def __call__(
        self, queue: str, body: str, delay: int, to: str, sender: str | None = A_FUNCTION, /
    ) -> None:
        """Send it as this principal."""


@dataclass(frozen=True, slots=True)
class Status:
    """A status that was sent to an application. A repeated status is a second object."""

    order_id: str
    name: str
    seq: int
    detail: str
    queue_url: str


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """A message in the RejectedQueue."""

    queue: str
    """The queue from which the message came."""
    body: str
    problems: tuple[Problem, ...]

    def __str__(self) -> str:
        return f"a message of {self.queue}, {'; '.join(map(str, self.problems))}"


@dataclass
class WorldOutbox:
    """The Outbox that all parts of a world share. It keeps what leaves the stack, in order."""

    post: Post
    agents: Collection[str]
    """The agents that have queues."""
    post_as_supervisor: Callable[[str, int], None] = lambda *_: None
    """Puts a command into the scheduler's queue, from the supervisor, after `delay` ms."""
    dead_queues: set[str] = field(default_factory=set)
    """The URLs of reply queues that no longer exist and never accept a status."""
    statuses: list[Status] = field(default_factory=list)
    alerts: list[Alert] = field(default_factory=list)
    put_aside: list[RejectedMessage] = field(default_factory=list)
    status_names: dict[str, set[str]] = field(default_factory=dict)
    """The names of the statuses sent since the task was last reopened, by task."""
    on_alert: Callable[[Alert], None] = lambda _: None
    """Called with each alert when it is published."""
    on_status: Callable[[str, str, int], None] = lambda *_: None
    """Called with the order, the name and the `seq` of each status."""
    on_rejected_signal: Callable[[str, str], None] = lambda *_: None
    """Called with the order and the id of each signal that is rejected after it was accepted."""

    def reopened(self, task_id: str) -> None:
        """Forget the statuses of a task that goes on after its end: its next end needs a status."""
        self.status_names.pop(task_id, None)

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Send the requests. Raises UnknownAgent at the end if an agent has no queue."""
        unknown: list[UnknownAgent] = []
        for agent, priority, request in requests:
            if agent in self.agents:
                self.post(REQUESTS, request.body(), 0, f"{agent}/{priority}")
            else:
                unknown.append(UnknownAgent(agent, priority))
        if unknown:
            raise unknown[0]

    def send_reply(self, body: str) -> None:
        """Send an agent's reply to the scheduler."""
        self.post(REPLIES, body, 0, read_reply(body).agent)

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Send a Start to the scheduler, `delay` ms from now."""
        self.post(COMMANDS, Command(START, task_id).body(), delay, "")

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """Send an Inspect to the scheduler, `delay` ms from now."""
        self.post(COMMANDS, Command(INSPECT, task_id).body(), delay, "")

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Send an Inspect to the scheduler for each (task id, delay in ms)."""
        for task_id, delay in inspects:
            self.send_inspect(task_id, delay=delay)

    def send_command(self, command: Command) -> None:
        """Send a command to the scheduler."""
        self.post(COMMANDS, command.body(), 0, "")

    def send_commands(self, commands: Sequence[tuple[Command, int]]) -> None:
        """Send each (command, delay in ms) to the scheduler, as the supervisor."""
        for command, delay in commands:
            self.post_as_supervisor(command.body(), delay)

    def send_status(self, queue_url: str, body: str) -> bool:
        """Keep the status. Returns False and keeps nothing if the queue is in `dead_queues`."""
        status = json.loads(body)
        order_id, name = str(status["orderId"]), str(status["status"])
        self.status_names.setdefault(order_id, set()).add(name)  # counts even if the queue is gone
        self.on_status(order_id, name, status["seq"])
        if queue_url in self.dead_queues:
            return False
        self.statuses.append(
            Status(order_id, name, status["seq"], str(status["detail"]), queue_url)
        )
        return True

    def publish(self, alert: Alert) -> None:
        """Keep the alert and call `on_alert` with it."""
        self.alerts.append(alert)
        self.on_alert(alert)

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Keep the rejected message."""
        self.put_aside.append(RejectedMessage(queue, body, tuple(problems)))

    def reject_command(self, body: str, problems: Sequence[Problem]) -> None:
        """Keep the rejected message about a signal that was accepted."""
        found = json.loads(body)
        self.on_rejected_signal(str(found["taskId"]), str(found["commandId"]))
        self.reject(COMMANDS, body, problems)
