"""What was sent for one task, and what came of it: a command of an operator, or an answer."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast

from botocore.exceptions import HTTPClientError

from roundsman.aws.clock import now
from roundsman.command_line import command_line
from roundsman.engine.eligibility import REFUSED_ROW
from roundsman.errors import CallRefused, RoundsmanError, TryAgain
from roundsman.model.events import CommandKind, CommandSource, HistoryRow, OperatorEvent
from roundsman.model.task import Task
from roundsman.wire.commands import command_of
from roundsman.wire.limits import wire_text
from roundsman_console.acts.changes import InputChange, PlanMove
from roundsman_console.acts.documents.order import CommandDocument
from roundsman_console.acts.order.missing_statements import MissingStatements
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import wait_for
from roundsman_console.base.errors import Interrupted, InvalidArgument, Unconfirmed, aws_sentence
from roundsman_console.base.limits import LONGEST_NAME, LONGEST_REASON
from roundsman_console.base.result import CommandOutcome, Result, json_of


@dataclass(frozen=True, slots=True)
class SentResult(Result):
    """The result of what is sent for one task."""

    outcome: CommandOutcome
    sentence: str
    """The result in words, for people."""

    def words(self) -> Sequence[str]:
        """Return the sentence."""
        return [self.sentence]

    def ended(self) -> CommandOutcome:
        """Return the outcome."""
        return self.outcome


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
            found["plan"] = self.plan
        if self.input:
            found["input"] = self.input
        return cast("CommandDocument", json_of(found))


def check_sender(by: str, reason: str, *, reason_required: bool = True) -> None:
    """Raise InvalidArgument if the name of the sender or the reason is empty or too long.

    If `reason_required` is false, the reason may be empty.
    """
    for what, text, most in (("by", by, LONGEST_NAME), ("reason", reason, LONGEST_REASON)):
        if not text.strip() and (what == "by" or reason_required):
            raise InvalidArgument(f"{what} is empty.")
        if len(text) > most:
            raise InvalidArgument(f"{what} has {len(text)} characters; at most {most} are allowed.")


def new_command_id() -> str:
    """Return an id that no other command has."""
    return f"c-{secrets.token_hex(8)}"


def body_of(order: str, event: OperatorEvent) -> str:
    """Return the body of the message to the scheduler."""
    return wire_text(command_of(order, event).body())


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
        body_of(order, event),
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
