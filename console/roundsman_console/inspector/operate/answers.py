"""Sending the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history
names the principal that sent it; the command `resolve` also records a name and a reason.
"""

from dataclasses import dataclass, replace

from botocore.exceptions import HTTPClientError

from roundsman.agents.callbacks import failed_reply, succeeded_reply, token_of_wait
from roundsman.aws.clock import now
from roundsman.aws.outputs import reply_queue_of
from roundsman.command_line import command_line
from roundsman.errors import InvalidToken, NotWaiting, PermanentError, RoundsmanError
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord, Task, idempotency_key, operation_of
from roundsman.wire.messages import Reply, read_reply
from roundsman_console.inspector.clock import wait_for
from roundsman_console.inspector.documents.commands import AnswerDocument
from roundsman_console.inspector.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    aws_sentence,
)
from roundsman_console.inspector.operate.commands import CommandOutcome
from roundsman_console.inspector.read.lookup import find_task
from roundsman_console.inspector.read.stack import DeployedStack
from roundsman_console.inspector.sanitize import inert

_OPEN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The outcome of an answer."""

    outcome: CommandOutcome
    sentence: str
    reply: Reply
    task: Task | None
    """The task as last read."""

    def document(self) -> AnswerDocument:
        """Return the JSON object that --json prints."""
        record = self.task.step(self.reply.step) if self.task else None
        return {
            "orderId": self.reply.task_id,
            "command": "answer",
            "step": self.reply.step,
            "outcome": self.outcome.value,
            "sentence": self.sentence,
            "processState": record.process_state if record else None,
            "state": self.task.state if self.task else None,
            "version": self.task.version if self.task else None,
        }


def send_answer(
    stack: DeployedStack,
    token: str,
    *,
    result: Json = None,
    failure: PermanentError | None = None,
    wait: float,
    dry_run: bool = False,
) -> AnswerResult:
    """Answer the callback `token`: with `result`, or with `failure` if the step has failed.

    With `dry_run`, only says what would become of the step. Waits at most `wait` seconds until the
    scheduler has handled the answer. Raises InvalidArgument if the token or the answer is invalid,
    NotFound if its task does not exist, InspectorError if the stack does not have the agent's reply
    queue, and Interrupted on Ctrl-C during the wait: its `result` is an AnswerResult with the
    outcome UNCONFIRMED.
    """
    body = _body(token, result, failure)
    reply = read_reply(body)
    task, _ = find_task(stack, reply.task_id)
    refused = _refused(task, reply)
    if refused is not None or not dry_run:
        return refused or _send(stack, task, reply, body, wait)
    how = "succeed" if result is not None else "succeed without a result"
    if failure is not None:
        how = f"fail for good: {inert(failure.error_type)}"
    sentence = f"{reply.step} of {task.task_id} would {how}. Nothing was sent."
    return AnswerResult(CommandOutcome.DRY_RUN, sentence, reply, task)


def token_of_step(stack: DeployedStack, order_id: str, step: str) -> str:
    """Return a token that answers the callback for which the step of the order waits.

    Raises NotFound if there is no such order, and InvalidArgument if the step does not wait or the
    order's plan is not stored.
    """
    task, plan = find_task(stack, order_id)
    try:
        return token_of_wait(task, plan, step)
    except NotWaiting as error:
        raise InvalidArgument(f"{inert(str(error))}.") from error


def check_answer(token: str, *, result: Json = None, failure: PermanentError | None = None) -> None:
    """Raise InvalidArgument if the token or the answer is invalid. Makes no call to AWS."""
    _body(token, result, failure)


def _body(token: str, result: Json, failure: PermanentError | None) -> str:
    try:
        if failure is not None:
            return failed_reply(token, failure, clock=now)
        return succeeded_reply(token, result, clock=now)
    except (InvalidToken, ValueError) as error:
        problem = str(error)
        raise InvalidArgument(f"{problem[:1].upper()}{problem[1:]}.") from error


def _refused(task: Task, reply: Reply) -> AnswerResult | None:
    """Return a refusal if the scheduler would ignore the answer, otherwise None."""
    record = task.step(reply.step)
    why = _stale(task, record, reply)
    if why is None:
        return None
    sentence = f"The answer to {reply.step} of {task.task_id} is not sent: {why}."
    return AnswerResult(CommandOutcome.REFUSED, sentence, reply, task)


def _stale(task: Task, record: StepRecord, reply: Reply) -> str | None:
    operation = operation_of(record)
    key = idempotency_key(task.task_id, reply.step, operation, record)
    if record.wait_was_ended and key == reply.idempotency_key:
        return None if reply.outcome is Outcome.SUCCEEDED else "its wait was ended, and it failed"
    if record.process_state not in _OPEN or operation != reply.operation:
        return f"no step waits for it; the step is {record.process_state}"
    if key != reply.idempotency_key:
        return "the step has begun again since, under another key"
    if task.ending is not None and record.locked_by != reply.lock and not record.waiting:
        return "its attempt has ended, and so does the task"
    return None


def _send(stack: DeployedStack, task: Task, reply: Reply, body: str, wait: float) -> AnswerResult:
    sent = AnswerResult(CommandOutcome.SENT, "", reply, task)
    name, look = f"{reply.step} of {task.task_id}", command_line("show", task.task_id)
    try:
        stack.sqs.send_message(QueueUrl=_reply_queue(stack, reply.agent), MessageBody=body)
    except HTTPClientError as error:
        lost = f"{aws_sentence(error)} The answer may have been sent. See: {look}"
        return replace(sent, outcome=CommandOutcome.UNCONFIRMED, sentence=lost)
    if not wait:
        return replace(sent, sentence=f"The answer to {name} is sent. See: {look}")
    try:
        after = _wait(stack, task, reply.step, wait)
    except KeyboardInterrupt as error:
        sentence = (
            f"The answer to {name} is sent, but the wait for the scheduler was interrupted. "
            f"Sending it again is harmless. See: {look}"
        )
        partial = replace(sent, outcome=CommandOutcome.UNCONFIRMED, sentence=sentence)
        raise Interrupted(sentence, partial) from error
    if after is None:
        sentence = (
            f"The answer to {name} is sent, but the scheduler has not accepted it within "
            f"{wait:g} s. Sending it again is harmless. See: {look}"
        )
        return replace(sent, outcome=CommandOutcome.UNCONFIRMED, sentence=sentence)
    state = after.step(reply.step).process_state
    sentence = f"The scheduler accepted the answer to {name}; the step is {state}."
    return replace(sent, outcome=CommandOutcome.DONE, sentence=sentence, task=after)


def _wait(stack: DeployedStack, before: Task, step: str, wait: float) -> Task | None:
    """Return the task after the state or the lock of the step changed.

    Returns None if neither changes within `wait` seconds.
    """
    record = before.step(step)

    def look() -> Task | None:
        try:
            task = stack.tasks.load(before.task_id, now())
        except RoundsmanError:
            return None
        if task is None:
            return None
        found = task.step(step)
        moved = (found.process_state, found.locked_by) != (record.process_state, record.locked_by)
        return task if moved else None

    return wait_for(look, wait)


def _reply_queue(stack: DeployedStack, agent: str) -> str:
    """Return the URL of the agent's reply queue. Raises InspectorError if the stack has none."""
    url = reply_queue_of(stack.outputs, agent)
    if url is None:
        raise InspectorError(
            f"The stack {stack.name} has no reply queue for the agent {inert(agent)}."
        )
    return url
