"""An outbox that records everything it is asked to send, for tests and experiments."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from roundsman.errors import Problem, UnknownAgent
from roundsman.wire.alert import Alert
from roundsman.wire.commands import Command
from roundsman.wire.messages import AgentRequest


@dataclass(frozen=True, slots=True)
class SentRequest:
    """A request in an agent's queue."""

    agent: str
    priority: str
    request: AgentRequest


@dataclass(frozen=True, slots=True)
class SentCommand:
    """A `start` or `inspect` in the SchedulerQueue, with its delay in ms."""

    kind: str
    task_id: str
    delay: int


@dataclass(frozen=True, slots=True)
class SentStatus:
    """A status in a reply queue."""

    queue_url: str
    body: str


@dataclass(frozen=True, slots=True)
class SentRejection:
    """A message in the RejectedQueue."""

    queue: str
    body: str
    problems: tuple[Problem, ...]


Sent: TypeAlias = SentRequest | SentCommand | Command | SentStatus | SentRejection | Alert


@dataclass(slots=True)
class RecordingOutbox:
    """Outbox that sends nothing and records everything in `sent`, in order."""

    agents: Collection[str] | None = None
    """The agents that have queues; None means all."""
    dead_queues: Collection[str] = ()
    """The URLs of reply queues that no longer exist and never accept a status."""
    sent: list[Sent] = field(default_factory=list)

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        """Record the requests. Raises UnknownAgent at the end if an agent has no queue."""
        unknown: list[UnknownAgent] = []
        for agent, priority, request in requests:
            if self.agents is None or agent in self.agents:
                self.sent.append(SentRequest(agent, priority, request))
            else:
                unknown.append(UnknownAgent(agent, priority))
        if unknown:
            raise unknown[0]

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        """Record the command."""
        self.sent.append(SentCommand("start", task_id, delay))

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        """Record the command."""
        self.sent.append(SentCommand("inspect", task_id, delay))

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        """Record the commands."""
        self.sent += [SentCommand("inspect", task_id, delay) for task_id, delay in inspects]

    def send_command(self, command: Command) -> None:
        """Record the command."""
        self.sent.append(command)

    def send_commands(self, commands: Sequence[tuple[Command, int]]) -> None:
        """Record the commands, without their delays."""
        self.sent += [command for command, _ in commands]

    def send_status(self, queue_url: str, body: str) -> bool:
        """Record the status. Returns False and records nothing if the queue is in `dead_queues`."""
        if queue_url in self.dead_queues:
            return False
        self.sent.append(SentStatus(queue_url, body))
        return True

    def publish(self, alert: Alert) -> None:
        """Record the alert."""
        self.sent.append(alert)

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        """Record the rejected message."""
        self.sent.append(SentRejection(queue, body, tuple(problems)))

    def reject_command(self, body: str, problems: Sequence[Problem]) -> None:
        """Record the rejected message about a command, as one from a queue `commands`."""
        self.reject("commands", body, problems)
