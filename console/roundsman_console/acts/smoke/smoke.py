"""A smoke test: sends one order through a deployed stack, and follows it to its end.

The order is an ordinary one, so a test that is not undone has the effects of an order. With `undo`,
it is cancelled as soon as one of its steps has begun, and every effect is undone: the scheduler
waits for the step that is under way first. An order that is Completed cannot be cancelled any more;
`undo` takes it back.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError

from roundsman.client import Client
from roundsman.command_line import command_line
from roundsman.errors import RoundsmanError, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.acts.documents.smoke import SmokeDocument, SmokeOutcome
from roundsman_console.acts.order.commands import CommandOutcome, send_command
from roundsman_console.acts.order.verbs import CancelVerb, OrderVerb, UndoVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import moment, now, wait_for
from roundsman_console.base.errors import Interrupted, NotFound
from roundsman_console.facts.order.view import may_stand
from roundsman_console.facts.order.why import Diagnosis
from roundsman_console.facts.order.why_facts import why, why_document
from roundsman_console.facts.overview.queues import Queue, find_queues
from roundsman_console.facts.set_aside.messages import rejected_queue

REASON = "smoke test"
_NOT_BEGUN: Final = (ProcessState.PENDING, ProcessState.SKIPPED)
FIRST_LOOK_AT_REJECTED = 5.0  # seconds
_LETTERS_READ = 50
"""The number of rejected messages among which the order's event is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeSpec:
    """One smoke test."""

    event: Mapping[str, Json]
    """The order event, with an order id that no other order has."""
    file: str
    """Where the event comes from, for the report."""
    expect: TaskState
    """The state in which the order must end."""
    undo: bool
    """Whether the order is cancelled on its way, or undone if it fails."""
    within: float
    """The most seconds to wait for the end."""
    by: str
    """Who asks, for the order's history."""

    @property
    def order_id(self) -> str:
        """The id of the order."""
        return str(self.event["orderId"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SmokeResult:
    """How a smoke test ended."""

    spec: SmokeSpec
    outcome: SmokeOutcome
    sentence: str
    seconds: float
    task: Task | None = None
    changes: Sequence[str] = ()
    diagnosis: Diagnosis | None = None
    queues: Sequence[Queue] = ()
    left: Sequence[str] = ()
    next: str | None = None

    @property
    def ok(self) -> bool:
        """Whether the order ended as expected."""
        return self.outcome == "asExpected"

    def document(self) -> SmokeDocument:
        """Return the result as JSON for scripts."""
        spec, found = self.spec, self.diagnosis
        return {
            "orderId": spec.order_id,
            "event": spec.file,
            "ok": self.ok,
            "outcome": self.outcome,
            "expected": spec.expect,
            "state": self.task.state if self.task else None,
            "sentence": self.sentence,
            "changes": list(self.changes),
            "why": None if found is None else why_document(spec.order_id, self.task, found),
            "queues": [
                {
                    "queue": queue.name,
                    "waiting": queue.waiting,
                    "inFlight": queue.in_flight,
                    "oldestSeconds": None if queue.oldest is None else queue.oldest // SECOND,
                }
                for queue in self.queues
            ],
            "left": list(self.left),
            "next": self.next,
            "seconds": round(self.seconds, 1),
        }


def run_smoke_test(
    stack: DeployedStack, spec: SmokeSpec, progress: Callable[[str], None] = lambda _: None
) -> SmokeResult:
    """Send the order, follow it to its end, and say where it is if it does not end.

    `progress` is called with each change of the order in words. Raises InvalidCall if the event
    cannot be sent, the errors of `Client.submit`, and Interrupted on Ctrl-C after the order was
    sent: its `result` is a SmokeResult.
    """
    test = _Test(stack, spec, progress)
    Client(stack.outputs, sqs=stack.sqs).submit(spec.event)
    try:
        test.note(f"sent {spec.order_id} to {stack.name}")
        wait_for(test.look, spec.within)
        return test.result()
    except KeyboardInterrupt as interrupt:
        result = SmokeResult(
            spec=spec,
            outcome="notEnded",
            sentence=f"Interrupted: {spec.order_id} was sent, and continues.",
            seconds=test.seconds,
            task=test.task,
            changes=test.changes,
            left=(f"the order {spec.order_id} goes on by itself",),
            next=command_line("why", spec.order_id),
        )
        raise Interrupted(f"{result.sentence} See: {result.next}", result) from interrupt


@dataclass
class _Test:
    """A smoke test under way."""

    stack: DeployedStack
    spec: SmokeSpec
    progress: Callable[[str], None]
    task: Task | None = None
    changes: list[str] = field(default_factory=list)
    asked: str = ""
    """What was asked of the scheduler: `cancel`, `undo`, or nothing yet."""
    refused: str = ""
    """Why the scheduler would refuse that; empty if it does not."""
    archived: str = ""
    """Why the order was archived before it was undone; empty if it was not."""
    rejected: str = ""
    """Why the event was rejected; empty if it was not, as far as is known."""
    look_at_rejected_after: float = FIRST_LOOK_AT_REJECTED
    """The seconds after which an order without a task is looked for in the RejectedQueue."""
    began: float = field(default_factory=moment)

    @property
    def seconds(self) -> float:
        return moment() - self.began

    def note(self, change: str) -> None:
        line = f"{self.seconds:.1f} s  {change}"
        self.changes.append(line)
        self.progress(line)

    def look(self) -> bool | None:
        """Read the task once; True if there is nothing more to wait for."""
        try:
            task = self.stack.tasks.load(self.spec.order_id, now())
        except TryAgain:
            return None
        except (SchemaTooNew, UnreadableRecord):
            return True
        if task is None:
            return True if self._is_rejected() else None
        if self.task is None or task.version != self.task.version:
            self._note_changes(task)
            self.task = task
        if self.spec.undo and not self.asked:
            self._undo(task)
        return True if task.ended and not task.owed and not self._undoes(task) else None

    def _is_rejected(self) -> bool:
        """Look into the RejectedQueue, at growing intervals: a look hides its messages a while."""
        if self.seconds >= self.look_at_rejected_after:
            self.look_at_rejected_after = 2 * self.seconds
            self.rejected = _rejected(self.stack, self.spec.order_id)
        return bool(self.rejected)

    def _note_changes(self, task: Task) -> None:
        before = self.task
        for name, step in task.steps.items():
            if before is None or before.step(name).process_state is not step.process_state:
                self.note(f"{name} {step.process_state}")
        if before is None or before.state is not task.state:
            self.note(f"the order is {task.state}")

    def _undo(self, task: Task) -> None:
        """Cancel the order once a step has begun; undo it if it was archived before."""
        if task.state is TaskState.ARCHIVED:
            self.archived = task.ending.why if task.ending else "no reason is stored"
            self._send(task.task_id, UndoVerb())
        elif not task.ended and _has_begun(task):
            self._send(task.task_id, CancelVerb())

    def _send(self, order: str, verb: OrderVerb) -> None:
        found = send_command(self.stack, order, verb, by=self.spec.by, reason=REASON, wait=0)
        if found.outcome is CommandOutcome.REFUSED and not _is_over(found.task):
            self.refused = found.sentence
        self.asked = verb.name
        self.note(f"{verb.name} asked" if found.sent else f"{verb.name} refused")

    def _undoes(self, task: Task) -> bool:
        """Whether an archived order is still to be undone."""
        if task.state is not TaskState.ARCHIVED or not self.spec.undo or self.refused:
            return False
        if self.asked == "cancel":  # its undo failed, and a second one would fail in the same way
            return False
        return bool(self.archived)

    def result(self) -> SmokeResult:
        """Return how it ended."""
        task, spec = self.task, self.spec
        if task is None:
            return self._without_task()
        if not task.ended or task.owed or self._undoes(task):
            return self._stuck(task)
        seconds = f"{self.seconds:.1f} s"
        left = self._left(task)
        if task.state is spec.expect and not (self.archived or self.refused):
            return SmokeResult(
                spec=spec,
                outcome="asExpected",
                sentence=f"{spec.order_id} is {task.state} after {seconds}, as expected.",
                seconds=self.seconds,
                task=task,
                changes=self.changes,
                left=left,
            )
        _, found = why(self.stack, spec.order_id)
        reason = f": {task.ending.why}" if task.ending else ""
        sentence = (
            f"{spec.order_id} is {task.state} after {seconds}, and should be {spec.expect}{reason}."
        )
        if self.archived:
            sentence += f" It was archived first: {self.archived}."
        if self.refused:
            sentence += f" {self.refused}"
        elif spec.undo and task.state is TaskState.COMPLETED:
            sentence += (
                " It completed before the cancellation reached it. `roundsman undo` takes it back. "
                "For an order that is always undone, send one that its last service refuses, with "
                "--expect Undone."
            )
        return SmokeResult(
            spec=spec,
            outcome="endedOtherwise",
            sentence=sentence,
            seconds=self.seconds,
            task=task,
            changes=self.changes,
            diagnosis=found,
            left=left,
            next=command_line("show", spec.order_id) if found.next is None else found.next,
        )

    def _left(self, task: Task) -> list[str]:
        stands = may_stand(task)
        if not stands:
            return []
        return [f"the effects of {', '.join(stands)} of {task.task_id}"]

    def _stuck(self, task: Task) -> SmokeResult:
        _, found = why(self.stack, task.task_id)
        queues = _busy(self.stack)
        sentence = (
            f"{task.task_id} has not ended within {self.spec.within:g} s; it is {task.state}. "
            f"{found.sentence}"
        )
        if queues:
            sentence += f" Messages wait in {', '.join(map(_queue_words, queues))}."
        left = [f"the order {task.task_id}, which goes on by itself"]
        if self.asked and not self.refused:
            left.append(f"its {self.asked}, which takes effect when the scheduler handles it")
        undo = command_line("cancel", task.task_id, options=("--reason", REASON))
        return SmokeResult(
            spec=self.spec,
            outcome="notEnded",
            sentence=sentence,
            seconds=self.seconds,
            task=task,
            changes=self.changes,
            diagnosis=found,
            queues=queues,
            left=left,
            next=found.next if self.asked or found.next else undo,
        )

    def _without_task(self) -> SmokeResult:
        """The event was rejected, or waits, or its record cannot be read."""
        order_id = self.spec.order_id
        problems = self.rejected or _rejected(self.stack, order_id)
        if problems:
            return SmokeResult(
                spec=self.spec,
                outcome="rejected",
                sentence=f"The submission function rejected {self.spec.file}: {problems}.",
                seconds=self.seconds,
                changes=self.changes,
                left=("the event in the RejectedQueue; it never becomes an order",),
                next="roundsman rejected ls",
            )
        queues = _busy(self.stack)
        waits = f"Messages wait in {', '.join(map(_queue_words, queues))}." if queues else ""
        try:
            _, found = why(self.stack, order_id)
            reason, diagnosis = found.sentence, found
        except NotFound as error:
            reason, diagnosis = str(error), None
        return SmokeResult(
            spec=self.spec,
            outcome="noTask",
            sentence=(
                f"{order_id} has no readable task {self.spec.within:g} s after it was sent. "
                f"{waits or 'No queue has messages: read the log of the submission function.'} "
                f"{reason}"
            ),
            seconds=self.seconds,
            changes=self.changes,
            diagnosis=diagnosis,
            queues=queues,
            left=(f"the event of {order_id}; if it is read later, the order begins",),
            next=command_line("why", order_id),
        )


def _has_begun(task: Task) -> bool:
    return any(step.process_state not in _NOT_BEGUN for step in task.steps.values())


def _is_over(task: Task | None) -> bool:
    return task is not None and task.ended


def _busy(stack: DeployedStack) -> list[Queue]:
    """Return the queues that have messages; none if they cannot be read."""
    try:
        found = find_queues(stack, now())
    except (RoundsmanError, ClientError, BotoCoreError):
        return []  # only evidence: the result does not depend on it
    return [queue for queue in found if not queue.empty and queue.name != "RejectedQueue"]


def _queue_words(queue: Queue) -> str:
    count = queue.waiting + queue.in_flight + queue.delayed
    oldest = "" if queue.oldest is None else f", the oldest for {queue.oldest // SECOND} s"
    return f"{queue.name} ({count}{oldest})"


def _rejected(stack: DeployedStack, order_id: str) -> str:
    """Return why the event was rejected; empty if it is not among the rejected messages."""
    try:
        place = rejected_queue(stack)
        with place.look() as look:
            for found in place.read(look.letters(_LETTERS_READ)):
                if found.order == order_id:
                    return found.reason
    except (RoundsmanError, ClientError, BotoCoreError):
        return ""  # only evidence: without it, the result names the queues
    return ""
