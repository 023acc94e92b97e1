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
from roundsman.errors import InvalidToken, NotWaiting, RoundsmanError
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord, Task, idempotency_key, operation_of
from roundsman.wire.messages import Reply, read_reply
from roundsman_console.callback.verbs import AnswerVerb
from roundsman_console.clock import wait_for
from roundsman_console.errors import (
    InspectorError,
    Interrupted,
    InvalidArgument,
    aws_sentence,
)
from roundsman_console.order.command_documents import AnswerDocument
from roundsman_console.order.commands import CommandOutcome
from roundsman_console.order.lookup import find_task
from roundsman_console.sanitize import inert
from roundsman_console.stack.stack import DeployedStack

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
    stack: DeployedStack, verb: AnswerVerb, *, wait: float, dry_run: bool = False
) -> AnswerResult:
    """Answer a callback with the result of its step, or with the failure.

    With `dry_run`, only says what would become of the step. Waits at most `wait` seconds until the
    scheduler has handled the answer. Raises InvalidArgument if the token or the answer is invalid,
    if the step does not wait, or if the order's plan is not stored; NotFound if there is no such
    order; InspectorError if the stack does not have the agent's reply queue; and Interrupted on
    Ctrl-C during the wait: its `result` is an AnswerResult with the outcome UNCONFIRMED.
    """
    body = _body(_token(stack, verb), verb)
    reply = read_reply(body)
    task, _ = find_task(stack, reply.task_id)
    refused = _refused(task, reply)
    if refused is not None or not dry_run:
        return refused or _send(stack, task, reply, body, wait)
    has_result = verb.result is not None and verb.result.value is not None
    how = "succeed" if has_result else "succeed without a result"
    if verb.failure is not None:
        how = f"fail for good: {inert(verb.failure.error_type)}"
    sentence = f"{reply.step} of {task.task_id} would {how}. Nothing was sent."
    return AnswerResult(CommandOutcome.DRY_RUN, sentence, reply, task)


def check_answer(verb: AnswerVerb) -> None:
    """Raise InvalidArgument if the token or the answer is invalid. Makes no call to AWS.

    An answer by the order is not checked, because it has no token yet.
    """
    if verb.step is None:
        _body(verb.callback, verb)


def _token(stack: DeployedStack, verb: AnswerVerb) -> str:
    """Return the token of the callback; of an order, that for which its step waits."""
    if verb.step is None:
        return verb.callback
    task, plan = find_task(stack, verb.callback)
    try:
        return token_of_wait(task, plan, verb.step)
    except NotWaiting as error:
        raise InvalidArgument(f"{inert(str(error))}.") from error


def _body(token: str, verb: AnswerVerb) -> str:
    try:
        if verb.failure is not None:
            return failed_reply(token, verb.failure, clock=now)
        return succeeded_reply(token, verb.result.value if verb.result else None, clock=now)
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
