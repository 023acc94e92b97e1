"""A whole system in one process, with its clock, its queues and a remote service.

Submission, scheduler, the real agent and the supervisor, each killed and restarted as told.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count

from roundsman.agent import Agent, Perform, StepRequest
from roundsman.alerts import Alert
from roundsman.birth import Wishes
from roundsman.commands import Command, read_command
from roundsman.draft import STATUSES
from roundsman.due import Lane
from roundsman.errors import PermanentError, Problem, TransientError, TryAgain
from roundsman.events import Outcome
from roundsman.messages import (
    AgentRequest,
    Reply,
    read_reply,
    read_request,
)
from roundsman.plan import plan_of
from roundsman.states import TaskState
from roundsman.task import StepError
from roundsman.testing.faults import Crash, Faults
from roundsman.values import MINUTE, SECOND, Json
from roundsman.workflow import Retry, Workflow
from tests.unit.machine_world import REPLY_TO
from tests.unit.shell_world import Shells, as_object

VISIBLE_AFTER = {"orders": 60, "commands": 60, "replies": 60, "requests": 180}
"""Seconds until what was not acknowledged comes again."""

ANSWERS = {"held": Outcome.HELD, "progress": Outcome.PROGRESS, "waits": Outcome.WAITING}
"""What an agent says of a step without ending it, or without having called its service."""

PASS_EVERY = 15 * SECOND
STEPS_AT_MOST = 300
TWO_SECONDS = Retry(max_attempts=4, first_delay=timedelta(seconds=2))


@dataclass(order=True)
class Mail:
    """A message in a queue."""

    visible_at: int
    number: int
    queue: str = field(compare=False)
    body: str = field(compare=False)


class Remote:
    """A remote service: each effect once for each key, and a script of how calls end."""

    def __init__(self, script: dict[str, Sequence[str]]) -> None:
        self._script = {name: list(ends) for name, ends in script.items()}
        self.effects: set[str] = set()
        self.undone: set[str] = set()
        self.calls: list[str] = []

    def perform(self, request: StepRequest) -> Json:
        """The last end in a step's script is that of every further call."""
        self.calls.append(request.step)
        ends = self._script.get(request.step, ["done"])
        end = ends.pop(0) if len(ends) > 1 else ends[0]
        if end == "unavailable":
            raise TransientError("503")
        if end == "refused":
            raise PermanentError("CardDeclined", "insufficient funds")
        if end == "hangs":
            raise Crash("the agent hangs until its function is ended")
        if request.idempotency_key in self.undone:
            raise PermanentError("KeyUndone", "this key is spent")
        self.effects.add(request.idempotency_key)
        if end == "answer lost":
            raise Crash("the agent dies with its answer")
        return {"done": request.step}

    def next_end(self, request: AgentRequest) -> str:
        """How the request's call would end; what the agent answers without one is taken off."""
        name = request.step if request.operation == "perform" else f"undo {request.step}"
        ends = self._script.get(name, ["done"])
        return ends.pop(0) if ends[0] in ANSWERS and len(ends) > 1 else ends[0]

    def compensate(self, request: StepRequest) -> None:
        """Spends the perform's key, whether or not it ever had its effect."""
        self.calls.append(f"undo {request.step}")
        ends = self._script.get(f"undo {request.step}", ["done"])
        end = ends.pop(0) if len(ends) > 1 else ends[0]
        if end == "unavailable":
            raise TransientError("503")
        if end == "refused":
            raise PermanentError("CannotBeUndone", "the parcel has left")
        self.undone.add(request.perform_key or request.idempotency_key)
        if end == "answer lost":
            raise Crash("the agent dies with its answer")

    @property
    def standing(self) -> set[str]:
        """The effects that happened and were not undone."""
        return self.effects - self.undone


@dataclass(frozen=True)
class Story:
    """An order, how the remote service behaves, and how it must end, whatever fails."""

    workflow: Workflow
    end: TaskState
    script: dict[str, Sequence[str]] = field(default_factory=dict)
    wishes: Wishes = field(default_factory=lambda: Wishes(reply_to=REPLY_TO))
    failed: str | None = None

    @property
    def statuses(self) -> list[str]:
        if self.wishes.reply_to is None:
            return []
        return ["received", "started", STATUSES[self.end]]


class System:
    """Everything there is, for one order."""

    def __init__(self, story: Story, faults: Faults, *, skew: int = 0) -> None:
        """The supervisor's clock is ahead of all others by `skew` ms."""
        self.faults = faults
        self.skew = skew
        self.shells = Shells(plan_of(story.workflow), wishes=story.wishes)
        self.remote = Remote(story.script)
        self.agent = agent_of(story.workflow, self.remote)
        self.mail: list[Mail] = []
        self.statuses: list[dict[str, Json]] = []
        self.alerts: list[str] = []
        self.crashes = 0
        self._numbers = count(1)
        self._last_pass = 0
        self.send("orders", story.workflow.name)

    # --- Outbox ------------------------------------------------------------------------------

    def send(self, queue: str, body: str, delay: int = 0) -> None:
        self.mail.append(Mail(self.shells.now + delay, next(self._numbers), queue, body))

    def send_requests(self, requests: Sequence[tuple[str, str, AgentRequest]]) -> None:
        for _, _, request in requests:
            self.send("requests", request.body())

    def send_command(self, command: Command) -> None:
        self.send("commands", command.body(), 0)

    def send_start(self, task_id: str, *, delay: int = 0) -> None:
        self.send("commands", Command(kind="start", task_id=task_id).body(), delay)

    def send_inspect(self, task_id: str, *, delay: int) -> None:
        self.send("commands", Command(kind="inspect", task_id=task_id).body(), delay)

    def send_inspects(self, inspects: Sequence[tuple[str, int]]) -> None:
        for task_id, delay in inspects:
            self.send_inspect(task_id, delay=delay)

    def send_status(self, queue_url: str, body: str) -> bool:
        self.statuses.append(as_object(body))
        return True

    def publish(self, alert: Alert) -> None:
        self.alerts.append(alert.attributes["kind"])

    def reject(self, queue: str, body: str, problems: Sequence[Problem]) -> None:
        raise AssertionError(f"{queue}: {problems}")

    # --- The course of things ----------------------------------------------------------------

    def run(self) -> "System":
        """Until nothing is on its way and nothing is watched."""
        for _ in range(STEPS_AT_MOST):
            if not self._step():
                return self
        raise AssertionError(f"still going: {self.shells.store.tasks()} {self.mail}")

    def _step(self) -> bool:
        mail = min(self.mail, default=None)
        look_at = self._next_look()
        if mail is not None and (look_at is None or mail.visible_at <= look_at):
            self._pass_time(mail.visible_at)
            mail.visible_at = self.shells.now + VISIBLE_AFTER[mail.queue] * SECOND
            if self._survives(lambda: self._handle(mail)):
                self.mail.remove(mail)
            return True
        if look_at is not None:
            self._pass_time(look_at)
            self._last_pass = self.shells.now
            self._survives(self._make_pass)
            return True
        return False

    def _next_look(self) -> int | None:
        watched = [
            task.due_at
            for task in self.shells.store.tasks()
            if task.lane.startswith(f"{Lane.OPEN}#")
        ]
        return max(min(watched), self._last_pass + PASS_EVERY) if watched else None

    def _pass_time(self, until: int) -> None:
        self.shells.now = max(self.shells.now + 5, until)

    def _survives(self, act: Callable[[], None]) -> bool:
        """Whether the invocation came to its end; otherwise its message is not acknowledged."""
        try:
            act()
        except (Crash, TryAgain):
            self.crashes += 1
            return False
        return True

    def _make_pass(self) -> None:
        supervisor = self.shells.supervisor(self.faults, to=self)
        self.shells.now += self.skew
        try:
            supervisor.make_pass(stop_at=self.shells.now + MINUTE)
        finally:
            self.shells.now -= self.skew

    def _handle(self, mail: Mail) -> None:
        message, instance = f"message-{mail.number}", f"{next(self._numbers):04x}"
        scheduler = self.shells.scheduler(self.faults, to=self, instance=instance)
        if mail.queue == "orders":
            submission = self.shells.submission(self.faults, to=self)
            submission.submit(self.shells.new_order())
        elif mail.queue == "commands":
            scheduler.command(read_command(mail.body), message)
        elif mail.queue == "replies":
            scheduler.reply(read_reply(mail.body), message)
        else:
            self._answer(read_request(mail.body))

    def _answer(self, request: AgentRequest) -> None:
        outcome = ANSWERS.get(self.remote.next_end(request))
        if outcome is not None:
            self._say(request, outcome)
        if outcome is Outcome.HELD:
            return
        ends_at = self.shells.now + MINUTE
        answer = self.agent.answer(
            request, clock=self.shells.clock, function_ends_at=ends_at, sleep=lambda _: None
        )
        if isinstance(answer, Reply):
            body = answer.body()
            self.faults.around("reply", lambda: self.send("replies", body))

    def _say(self, request: AgentRequest, outcome: Outcome) -> None:
        held = outcome is Outcome.HELD
        said = Reply(
            task_id=request.task_id,
            step=request.step,
            operation=request.operation,
            lock=request.lock,
            idempotency_key=request.idempotency_key,
            outcome=outcome,
            agent="worker",
            finished_at=self.shells.now,
            error=StepError("Held", "its breaker is open") if held else None,
            until=self.shells.now + MINUTE if outcome is Outcome.WAITING else None,
        )
        self.faults.around("reply", lambda: self.send("replies", said.body()))


def agent_of(made: Workflow, remote: Remote) -> Agent:
    agent = Agent("worker")
    for each in made.steps:
        perform: Perform = remote.perform
        agent.performs(each)(lambda request, perform=perform: perform(request))
        if each.compensation is not None:
            agent.compensates(each)(remote.compensate)
    return agent


# --- The stories -----------------------------------------------------------------------------
