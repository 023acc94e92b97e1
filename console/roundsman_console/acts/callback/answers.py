"""Sending the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history
names the principal that sent it; the command `resolve` also records a name and a reason.
"""

from dataclasses import dataclass, replace

from roundsman.agents.callbacks import failed_reply, succeeded_reply, token_of_wait
from roundsman.aws.clock import now
from roundsman.aws.outputs import reply_queue_of
from roundsman.errors import InvalidToken, NotWaiting, RoundsmanError
from roundsman.model.events import Outcome
from roundsman.model.states import ProcessState
from roundsman.model.task import Task, idempotency_key
from roundsman.wire.messages import Reply, read_reply
from roundsman_console.acts.callback.verbs import AnswerVerb
from roundsman_console.acts.documents.order import AnswerDocument
from roundsman_console.acts.order.commands import CommandOutcome, SentResult, send_and_look
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError, InvalidArgument
from roundsman_console.base.sanitize import inert
from roundsman_console.facts.order.lookup import find_task

_OPEN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)


@dataclass(frozen=True, slots=True)
class AnswerResult(SentResult):
    """The outcome of an answer."""

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
    task, plan = find_task(stack, reply.task_id)
    here = AnswerResult(CommandOutcome.DRY_RUN, "", reply, task)
    step = plan.steps.get(reply.step) if plan is not None else None
    stale = _stale(task, reply) or (step and step.too_long(reply.result))
    if stale is not None:
        sentence = f"The answer to {reply.step} of {task.task_id} is not sent: {stale}."
        return replace(here, outcome=CommandOutcome.REFUSED, sentence=sentence)
    if not dry_run:
        return _send(stack, task, here, body, wait)
    has_result = verb.result is not None and verb.result.value is not None
    how = "succeed" if has_result else "succeed without a result"
    if verb.failure is not None:
        how = f"fail for good: {inert(verb.failure.error_type)}"
    sentence = f"{reply.step} of {task.task_id} would {how}. Nothing was sent."
    return replace(here, sentence=sentence)


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


def _stale(task: Task, reply: Reply) -> str | None:
    """Return why the scheduler would ignore the answer; None if it would not."""
    record = task.step(reply.step)
    operation = record.operation
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


def _send(
    stack: DeployedStack, before: Task, here: AnswerResult, body: str, wait: float
) -> AnswerResult:
    step, record = here.reply.step, before.step(here.reply.step)

    def moved() -> Task | None:
        try:
            task = stack.tasks.load(before.task_id, now())
        except RoundsmanError:
            return None
        found = task.step(step) if task else record
        same = (found.process_state, found.locked_by) == (record.process_state, record.locked_by)
        return None if same else task

    queue = reply_queue_of(stack.outputs, here.reply.agent)
    if queue is None:
        raise InspectorError(
            f"The stack {stack.name} has no reply queue for the agent {inert(here.reply.agent)}."
        )
    name = f"{step} of {before.task_id}"
    sent, after = send_and_look(
        stack,
        queue,
        body,
        here,
        moved,
        wait,
        what=f"The answer to {name}",
        order=before.task_id,
        again="Sending it again is harmless.",
    )
    if after is None:
        return sent
    state = after.step(step).process_state
    sentence = f"The scheduler accepted the answer to {name}; the step is {state}."
    return replace(sent, outcome=CommandOutcome.DONE, sentence=sentence, task=after)
