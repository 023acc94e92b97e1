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

from roundsman.client import OrderEnded, OrderRejected, OrderStatus, WaitResult
from roundsman.command_line import command_line
from roundsman.errors import RoundsmanError, SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.acts.documents.smoke import SmokeDocument, SmokeOutcome, SmokeQueueDocument
from roundsman_console.acts.order.following import client_of, follow
from roundsman_console.acts.order.send import send_command
from roundsman_console.acts.order.sent import CommandResult
from roundsman_console.acts.order.verbs import CancelVerb, OrderVerb, UndoVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import moment, now, wait_for
from roundsman_console.base.errors import Interrupted, NotFound
from roundsman_console.base.result import CommandOutcome, filled_from
from roundsman_console.facts.order.effects import may_stand
from roundsman_console.facts.order.why import Diagnosis
from roundsman_console.facts.order.why_facts import why, why_document
from roundsman_console.facts.overview.queues import Queue, find_queues

REASON = "smoke test"
_NOT_BEGUN: Final = (ProcessState.PENDING, ProcessState.SKIPPED)


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
    state: TaskState | None = None
    """The state of the task that was read last; None if none was."""
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
        return filled_from(
            self,
            SmokeDocument,
            order_id=spec.order_id,
            event=spec.file,
            expected=spec.expect,
            why=found and why_document(spec.order_id, self.task, found),
            queues=[
                filled_from(
                    queue,
                    SmokeQueueDocument,
                    queue=queue.name,
                    oldest_seconds=None if queue.oldest is None else queue.oldest // SECOND,
                )
                for queue in self.queues
            ],
        )


def run_smoke_test(
    stack: DeployedStack, spec: SmokeSpec, progress: Callable[[str], None] = lambda _: None
) -> SmokeResult:
    """Send the order, follow it to its end, and say where it is if it does not end.

    `progress` is called with each change of the order in words. Raises InvalidCall if the event
    cannot be sent, the errors of `Client.submit`, and Interrupted on Ctrl-C after the order was
    sent: its `result` is a SmokeResult.
    """
    test = _Test(stack, spec, progress)
    client = client_of(stack)
    client.submit(spec.event)
    test.note(f"sent {spec.order_id} to {stack.name}")

    def followed() -> WaitResult | None:
        try:
            return follow(client, spec.order_id, test.left, test.changed)
        except (TryAgain, SchemaTooNew, UnreadableRecord):
            return None  # `why` says it

    try:
        end = followed()
        if test.undoes_archived():
            end = followed()
        if (
            isinstance(end, OrderEnded)
            and not test.is_undo_pending
            and wait_for(test.is_settled, test.left)
        ):
            return test.ended(end.status)
        return test.stuck(test.status) if test.status else test.without_task(end)
    except (KeyboardInterrupt, Interrupted) as interrupt:
        sentence = f"Interrupted: {spec.order_id} was sent, and continues."
        left = [f"the order {spec.order_id} goes on by itself"]
        following = command_line("why", spec.order_id)
        result = test.result("notEnded", sentence, left=left, next=following)
        raise Interrupted(f"{sentence} See: {following}", result) from interrupt


@dataclass
class _Test:
    """A smoke test under way."""

    stack: DeployedStack
    spec: SmokeSpec
    progress: Callable[[str], None]
    status: OrderStatus | None = None
    """What was read of the order last; None if nothing was."""
    task: Task | None = None
    """The task that has ended, once it is read."""
    changes: list[str] = field(default_factory=list)
    asked: CommandResult | None = None
    """What was asked of the scheduler, a cancellation or an undo; None for nothing yet."""
    refused: str = ""
    """Why the scheduler refuses that; empty if it does not."""
    archived: str = ""
    """Why the order was archived before it was undone; empty if it was not."""
    began: float = field(default_factory=moment)

    @property
    def seconds(self) -> float:
        return moment() - self.began

    @property
    def left(self) -> float:
        """The seconds that are left."""
        return self.spec.within - self.seconds

    @property
    def is_undo_pending(self) -> bool:
        """Whether it is not known what became of the undo of an archived order."""
        asked = self.asked
        return bool(self.archived and asked and asked.outcome is CommandOutcome.UNCONFIRMED)

    def note(self, change: str) -> None:
        line = f"{self.seconds:.1f} s  {change}"
        self.changes.append(line)
        self.progress(line)

    def changed(self, status: OrderStatus) -> None:
        """Note what has changed, and cancel the order once a step of it has begun."""
        before, self.status = self.status, status
        for name, state in status.steps.items():
            if before is None or before.steps.get(name, ProcessState.PENDING) is not state:
                self.note(f"{name} {state}")
        if before is None or before.state is not status.state:
            self.note(f"the order is {status.state}")
        begun = any(state not in _NOT_BEGUN for state in status.steps.values())
        if self.spec.undo and begun and not status.ended and self.asked is None:
            self._send(CancelVerb(), 0)

    def undoes_archived(self) -> bool:
        """Undo the order if it was archived before it was cancelled; return whether it is undone.

        A cancelled order whose undo failed is left: a second one would fail in the same way.
        """
        status = self.status
        if status is None or not self.spec.undo or self.asked is not None:
            return False
        if status.state is not TaskState.ARCHIVED:
            return False
        self.archived = status.reason or "no reason is stored"
        self._send(UndoVerb(), self.left)
        return not self.refused and not self.is_undo_pending

    def _send(self, verb: OrderVerb, wait: float) -> None:
        order, by = self.spec.order_id, self.spec.by
        found = send_command(self.stack, order, verb, by=by, reason=REASON, wait=wait)
        completed = found.task is not None and found.task.state is TaskState.COMPLETED
        if found.outcome is CommandOutcome.REFUSED and not completed:
            self.refused = found.sentence
        self.asked = found
        self.note(f"{verb.name} asked" if found.sent else f"{verb.name} refused")

    def is_settled(self) -> bool | None:
        """Read the task that has ended; None while it owes something."""
        try:
            self.task = self.stack.tasks.load(self.spec.order_id, now())
        except TryAgain:
            return None
        return None if self.task is not None and self.task.owed else True

    def result(
        self,
        outcome: SmokeOutcome,
        sentence: str,
        *,
        task: Task | None = None,
        diagnosis: Diagnosis | None = None,
        queues: Sequence[Queue] = (),
        left: Sequence[str] = (),
        next: str | None = None,  # as in the JSON
    ) -> SmokeResult:
        return SmokeResult(
            spec=self.spec,
            outcome=outcome,
            sentence=sentence,
            seconds=self.seconds,
            state=self.status.state if self.status else None,
            task=task,
            changes=self.changes,
            diagnosis=diagnosis,
            queues=queues,
            left=left,
            next=next,
        )

    def ended(self, status: OrderStatus) -> SmokeResult:
        """The order has ended, as expected or not."""
        spec, order = self.spec, self.spec.order_id
        now_is = f"{order} is {status.state} after {self.seconds:.1f} s"
        stands = may_stand(self.task) if self.task else []
        left = [f"the effects of {', '.join(stands)} of {order}"] if stands else []
        if status.state is spec.expect and not (self.archived or self.refused):
            return self.result("asExpected", f"{now_is}, as expected.", left=left)
        task, found = why(self.stack, order)
        reason = f": {status.reason}" if status.reason else ""
        sentence = f"{now_is}, and should be {spec.expect}{reason}."
        if self.archived:
            sentence += f" It was archived first: {self.archived}."
        if self.refused:
            sentence += f" {self.refused}"
        elif spec.undo and status.state is TaskState.COMPLETED:
            sentence += (
                " It completed before the cancellation reached it. `roundsman undo` takes it back. "
                "For an order that is always undone, send one that its last service refuses, with "
                "--expect Undone."
            )
        following = found.next or command_line("show", order)
        return self.result(
            "endedOtherwise", sentence, task=task, diagnosis=found, left=left, next=following
        )

    def stuck(self, status: OrderStatus) -> SmokeResult:
        """The order has not ended in time."""
        order, asked = self.spec.order_id, self.asked
        task, found = why(self.stack, order)
        queues = _busy(self.stack)
        sentence = (
            f"{order} has not ended within {self.spec.within:g} s; it is {status.state}. "
            f"{found.sentence}"
        )
        if queues:
            sentence += f" Messages wait in {', '.join(map(_queue_words, queues))}."
        left = [f"the order {order}, which goes on by itself"]
        if asked and not self.refused:
            left.append(f"its {asked.command}, which takes effect when the scheduler handles it")
        following = found.next
        if asked is None and following is None:
            following = command_line("cancel", order, options=("--reason", REASON))
        return self.result(
            "notEnded",
            sentence,
            task=task,
            diagnosis=found,
            queues=queues,
            left=left,
            next=following,
        )

    def without_task(self, end: WaitResult | None) -> SmokeResult:
        """The event was rejected, or waits, or its record cannot be read."""
        order = self.spec.order_id
        if isinstance(end, OrderRejected):
            problems = "; ".join(map(str, end.problems))
            return self.result(
                "rejected",
                f"The submission function rejected {self.spec.file}: {problems}.",
                left=("the event in the RejectedQueue; it never becomes an order",),
                next="roundsman rejected ls",
            )
        queues = _busy(self.stack)
        waits = f"Messages wait in {', '.join(map(_queue_words, queues))}." if queues else ""
        try:
            task, found = why(self.stack, order)
            reason, diagnosis = found.sentence, found
        except NotFound as error:
            task, reason, diagnosis = None, str(error), None
        return self.result(
            "noTask",
            f"{order} has no readable task {self.spec.within:g} s after it was sent. "
            f"{waits or 'No queue has messages: read the log of the submission function.'} "
            f"{reason}",
            task=task,
            diagnosis=diagnosis,
            queues=queues,
            left=(f"the event of {order}; if it is read later, the order begins",),
            next=command_line("why", order),
        )


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
