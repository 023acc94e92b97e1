"""Sending an operator's command for one task to the scheduler, and reporting its outcome.

The inspector first runs the engine's decision on the task's current record. A command that would be
refused is refused here, without a message. The scheduler decides again on the record that it reads,
and refuses a command if the task changed after the sender read it.
"""

import secrets
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TypeVar

from botocore.exceptions import HTTPClientError

from roundsman.aws.clock import now
from roundsman.command_line import command_line
from roundsman.definition.plan import Plan
from roundsman.engine.eligibility import REFUSED_ROW, decided
from roundsman.engine.signal_readers import lost_by
from roundsman.errors import CallRefused, InvalidMessage, Refused, RoundsmanError, TryAgain
from roundsman.model.events import (
    COMMAND_KINDS,
    CommandKind,
    CommandSource,
    HistoryRow,
    OperatorEvent,
)
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.wire.commands import command_of, read_command
from roundsman.wire.limits import MESSAGE_LIMIT, wire_text
from roundsman_console.acts.actor import signed_in
from roundsman_console.acts.documents.order import CommandDocument
from roundsman_console.acts.order.corrections import (
    InputChange,
    change_documents,
    check_correction,
    corrects,
)
from roundsman_console.acts.order.missing_statements import (
    MissingStatements,
    missing_statements,
)
from roundsman_console.acts.order.newest_plan import (
    PlanMove,
    invalid_inputs,
    named_plan,
    newest_plan,
    plan_document,
    plan_move,
    under_newest_plan,
)
from roundsman_console.acts.order.verbs import OrderVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import wait_for
from roundsman_console.base.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    Unconfirmed,
    aws_sentence,
)
from roundsman_console.base.limits import LONGEST_NAME, LONGEST_REASON
from roundsman_console.facts.order.lookup import find_task
from roundsman_console.facts.order.step_text import span


class CommandOutcome(StrEnum):
    """How a command ended. The values are part of the JSON output."""

    DONE = "done"
    REFUSED = "refused"
    SENT = "sent"
    UNCONFIRMED = "unconfirmed"
    DRY_RUN = "dryRun"


@dataclass(frozen=True, slots=True)
class SentResult:
    """The result of what is sent for one task."""

    outcome: CommandOutcome
    sentence: str
    """The result in words, for people."""

    @abstractmethod
    def document(self) -> object:
        """Return the result as JSON for scripts."""


R = TypeVar("R", bound=SentResult)
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CommandResult(SentResult):
    """The result of a command."""

    command: CommandKind
    asked: CommandSource
    sent: bool
    """False if the command was refused before it was sent."""
    order: str
    task: Task | None
    """The task as it was last read; None if it could not be read after the command was carried out,
    or its retention is over."""
    plan: PlanMove | None = None
    """The change of the task's plan; None if the command does not ask for one."""
    input: tuple[InputChange, ...] = ()
    """The changes of the task's input; empty if the command does not correct it, or if the
    corrected input is not valid."""
    missing: MissingStatements | None = None
    """What the command must also say, if it was refused before it was sent because it does not."""

    def document(self) -> CommandDocument:
        """Return the result as JSON for scripts."""
        found: CommandDocument = {
            "orderId": self.order,
            "command": self.command,
            "outcome": self.outcome.value,
            "sentence": self.sentence,
            "commandId": self.asked.command_id if self.sent else None,
            "by": self.asked.by,
            "reason": self.asked.reason,
            "state": self.task.state if self.task else None,
            "version": self.task.version if self.task else None,
        }
        if self.plan is not None:
            found["plan"] = plan_document(self.plan)
        if self.input:
            found["input"] = change_documents(self.input)
        return found


def send_command(
    stack: DeployedStack,
    order: str,
    verb: OrderVerb,
    *,
    by: str,
    reason: str,
    wait: float,
    confirm: Callable[[str], None] | None = None,
    show: Callable[[CommandResult], None] | None = None,
    dry_run: bool = False,
) -> CommandResult:
    """Check and send the command for the order, and wait at most `wait` seconds for its outcome.

    With `dry_run`, nothing is sent, and the outcome is DRY_RUN or REFUSED. Before that, `show` is
    called with the result so far, which has the changes of the task's plan and input. Before the
    command is sent, `confirm` is called with the question of `verb`, if it has one; it raises an
    exception to send nothing. If `wait` is 0, the outcome is SENT.

    Raises InvalidArgument, before any call to AWS, if `by` or `reason` is empty or too long, or if
    the command is not one that the scheduler can read. Raises NotFound if there is no such task,
    InspectorError if the workflow has no such step, Unconfirmed if the outcome of a sent command
    cannot be read, and Interrupted on Ctrl-C during the wait: its `result` is a CommandResult with
    the outcome UNCONFIRMED.
    """
    check_sender(by, reason)
    _check_readable(verb, by, reason)
    task, plan = find_task(stack, order)
    _check_names(plan, verb.named)
    source = CommandSource(new_command_id(), by, reason, task.version, signed_in())
    event = verb.event(source)
    move, why = None, None
    content: Json = None
    changes: tuple[InputChange, ...] = ()
    if task.erased_at is not None:
        why = _refusal(plan, task, event, None, None)  # before its input or a plan is looked for
    elif verb.input is not None or corrects(event):
        try:
            fixed = check_correction(stack, task, event, verb.input)
            event, content, changes = fixed.event, fixed.order, fixed.changes
        except Refused as refused:
            why = str(refused)
    if verb.newest_plan and why is None:
        event, move, why = _under_newest_plan(stack, plan, task, event)
    kind = COMMAND_KINDS[type(event)]
    here = CommandResult(
        CommandOutcome.DRY_RUN, "", kind, event.asked, False, task.task_id, task, move, changes
    )
    if show is not None:
        show(here)
    missing = None
    if why is None:
        next_plan = named_plan(stack, event)
        missing = missing_statements(
            task, event, lambda asked: _refusal(plan, task, asked, next_plan, content)
        )
        why = "; ".join(missing.why) if missing is not None else None
    if why is not None:
        sentence = f"{kind} of {task.task_id} refused, nothing was sent: {why}."
        return replace(here, outcome=CommandOutcome.REFUSED, sentence=sentence, missing=missing)
    if dry_run:
        after = decided(plan, task, event, now(), named_plan(stack, event), order=content)
        sentence = (
            f"{kind} of {task.task_id} is possible; nothing was sent.{_lost_signals(task, after)}"
        )
        return replace(here, sentence=sentence)
    question = verb.question(task)
    if question is not None and confirm is not None:
        confirm(question)
    return send_and_wait(stack, here, event, wait)


def _under_newest_plan(
    stack: DeployedStack, plan: Plan | None, task: Task, event: OperatorEvent
) -> tuple[OperatorEvent, PlanMove, str | None]:
    """Return the command under the newest plan, the change, and why the input is not valid."""
    found = newest_plan(stack, task.workflow)
    event = under_newest_plan(event, found.plan or "")
    after = named_plan(stack, event)
    if after is None:
        raise InspectorError(
            f"The newest plan of {task.workflow} was stored, but cannot be read. Check that the "
            "submission function and this command use the same stack."
        )
    asks = found.checks_input
    invalid = dict(invalid_inputs(stack, task.workflow, event, [task])) if asks else {}
    return event, plan_move(plan, task.plan, after), invalid.get(task.task_id)


def check_sender(by: str, reason: str, *, reason_required: bool = True) -> None:
    """Raise InvalidArgument if the name of the sender or the reason is empty or too long.

    If `reason_required` is false, the reason may be empty.
    """
    for what, text, most in (("by", by, LONGEST_NAME), ("reason", reason, LONGEST_REASON)):
        if not text.strip() and (what == "by" or reason_required):
            raise InvalidArgument(f"{what} is empty.")
        if len(text) > most:
            raise InvalidArgument(f"{what} has {len(text)} characters; at most {most} are allowed.")


def _check_readable(verb: OrderVerb, by: str, reason: str) -> None:
    """Raise InvalidArgument if SQS or the scheduler would refuse the message of the command.

    The id of the order is not checked: `find_task` raises NotFound for one that no order can have.
    """
    event = verb.event(CommandSource(new_command_id(), by, reason, 1))
    try:
        body = _body("ord-1", event)
        read_command(body)
    except (InvalidMessage, ValueError) as error:
        raise InvalidArgument(f"The command is invalid: {error}.") from error
    size = len(body.encode())
    if size > MESSAGE_LIMIT:
        raise InvalidArgument(f"The command has {size} bytes; SQS accepts {MESSAGE_LIMIT}.")


def new_command_id() -> str:
    """Return an id that no other command has."""
    return f"c-{secrets.token_hex(8)}"


def _body(order: str, event: OperatorEvent) -> str:
    """Return the body of the message to the scheduler."""
    return wire_text(command_of(order, event).body())


def _check_names(plan: Plan | None, steps: tuple[str, ...]) -> None:
    strange = [name for name in steps if plan is not None and name not in plan.steps]
    if plan is not None and strange:
        raise InspectorError(
            f"The workflow has no step {', '.join(strange)}; it has {span(list(plan.steps))}."
        )


def _refusal(
    plan: Plan | None, task: Task, event: OperatorEvent, next_plan: Plan | None, order: Json
) -> str | None:
    """Return why the task's current record does not allow the command; None if it does."""
    try:
        decided(plan, task, event, now(), next_plan, order=order)
    except Refused as refused:
        return str(refused)
    return None


def lost_signals_words(signals: Sequence[str]) -> str:
    """Return in words that no step can read these signals after a command."""
    which = "signal" if len(signals) == 1 else "signals"
    return f"no step is left then that reads the {which} {', '.join(signals)}: rejected"


def _lost_signals(before: Task, after: Task) -> str:
    """A sentence about the signals that no step can read after a command; empty without any."""
    lost = [f"{one.name} ({one.id})" for one in lost_by(before, after)]
    words = lost_signals_words(lost)
    return f" {words[:1].upper()}{words[1:]}." if lost else ""


def task_after(plan: Plan | None, task: Task, event: OperatorEvent) -> Task | None:
    """Return the task as the engine would leave it after the command; None if it refuses."""
    try:
        return decided(plan, task, event, now())
    except Refused:
        return None


def send_and_wait(
    stack: DeployedStack, here: CommandResult, event: OperatorEvent, wait: float
) -> CommandResult:
    """Send the command, and wait for its outcome; `here` is its result before that.

    Raises Unconfirmed and Interrupted as `send_command` does.
    """
    order, asked = here.order, here.asked

    def answer() -> HistoryRow | None:
        try:
            rows = stack.tasks.history(order)
        except TryAgain:
            return None
        except CallRefused as error:
            raise Unconfirmed(
                f"The command is sent, but its outcome cannot be read: {error}."
            ) from error
        return next((row for row in rows if row.command_id == asked.command_id), None)

    sent, row = send_and_look(
        stack,
        stack.output("SchedulerQueueUrl"),
        _body(order, event),
        replace(here, sent=True),
        answer,
        wait,
        what=f"{here.command} of {order}",
        order=order,
        again="The command takes effect once, when the scheduler reads it.",
    )
    if row is None:
        return sent
    refused = row.kind == REFUSED_ROW
    outcome = CommandOutcome.REFUSED if refused else CommandOutcome.DONE
    after = here.task and _task_now(stack, here.task, refused)
    return replace(sent, outcome=outcome, sentence=f"{row.reason}.", task=after)


def send_and_look(
    stack: DeployedStack,
    queue: str,
    body: str,
    here: R,
    look: Callable[[], T | None],
    wait: float,
    *,
    what: str,
    order: str,
    again: str,
) -> tuple[R, T | None]:
    """Send a message to the queue with this URL, and call `look` until it returns a value.

    `look` is called for at most `wait` seconds; if that is 0, it is not called. Returns the value
    with `here`, and else None with the result: SENT or UNCONFIRMED. The sentences begin with
    `what`; `again` says what becomes of it after the wait. Raises Interrupted on Ctrl-C during the
    wait, with the result.
    """
    see = f"See: {command_line('show', order)}"
    unconfirmed = replace(here, outcome=CommandOutcome.UNCONFIRMED)
    try:
        stack.sqs.send_message(QueueUrl=queue, MessageBody=body)
    except HTTPClientError as error:
        lost = f"{aws_sentence(error)} {what} may have been sent nevertheless. {see}"
        return replace(unconfirmed, sentence=lost), None
    if not wait:
        sentence = f"{what} is sent. {see}"
        return replace(here, outcome=CommandOutcome.SENT, sentence=sentence), None
    try:
        found = wait_for(look, wait)
    except KeyboardInterrupt as error:
        sentence = f"{what} is sent, but the wait for its outcome was interrupted. {again} {see}"
        raise Interrupted(sentence, replace(unconfirmed, sentence=sentence)) from error
    if found is None:
        late = f"the scheduler has not handled it within {wait:g} s"
        unconfirmed = replace(unconfirmed, sentence=f"{what} is sent, but {late}. {again} {see}")
        return unconfirmed, None
    return here, found


def _task_now(stack: DeployedStack, before: Task, refused: bool) -> Task | None:
    """Load the task after the command. A failure to load it is not an error of the command."""
    try:
        return stack.tasks.load(before.task_id, now())
    except RoundsmanError:
        return before if refused else None
