"""Sending the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history
names the principal that sent it; the command `resolve` also records a name and a reason.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

from roundsman.agents.callbacks import failed_reply, succeeded_reply, token_of_wait
from roundsman.aws.clock import now
from roundsman.aws.outputs import reply_queue_of
from roundsman.errors import InvalidToken, NotWaiting, PermanentError, RoundsmanError
from roundsman.model.events import Outcome
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task, idempotency_key
from roundsman.wire.messages import Reply, read_reply
from roundsman_console.acts.order.sent import SentResult, send_and_look
from roundsman_console.acts.verb import Argument, Asked, Preview, StackVerb
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.constraints import Count
from roundsman_console.base.errors import InspectorError, InvalidArgument, WrongFields
from roundsman_console.base.result import CommandOutcome, Noun
from roundsman_console.base.sanitize import inert
from roundsman_console.base.typed_inputs import read_failure, read_json, read_result
from roundsman_console.facts.order.lookup import find_task

_OPEN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)


@dataclass(frozen=True, slots=True)
class AnswerResult(SentResult):
    """The result of an answer to a callback."""

    order_id: str
    command: Literal["answer"]
    step: str
    outcome: CommandOutcome
    sentence: str
    """The result in words, for people."""
    process_state: ProcessState | None
    state: TaskState | None
    version: Count | None

    def words(self) -> Sequence[str]:
        if self.outcome is CommandOutcome.DONE:
            return [self.sentence, f"{self.order_id} is {self.state}."]
        return [self.sentence]

    def leads_to(self) -> str:
        return self.order_id


@dataclass(frozen=True, slots=True)
class GivenResult:
    """The result that an answer gives."""

    value: Json
    """None for a step without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerVerb(StackVerb):
    """Answer a step that waits for a callback, by the token of the callback or by its order.

    The history names the principal that sent the answer; resolve also records a name and a reason.

    Example: roundsman answer eyJhZ2Vu... --result '{"approvedBy": "j.doe"}'
    """

    name = "answer"
    title = "Answer a callback"
    reason = ""
    reason_options = ()
    needs_reason = "none"
    document = AnswerResult
    noun = Noun.ORDERS
    waits = True

    callback: Annotated[
        str,
        Argument(
            metavar="TOKEN|ORDER",
            help="The callback token that the agent handed out, or the id of the order.",
            missing="Give the callback token, or the id of the order and its step.",
        ),
    ]
    step: Annotated[str | None, Argument(help="With an order: the step that waits.")] = None
    result: Annotated[
        GivenResult | None,
        Argument(
            "--result",
            "The step succeeded; its result, as JSON or @file.",
            label="The step succeeded; its result, as JSON",
            hint="null if it has none",
            read=lambda text: GivenResult(read_result(text)),
            read_field=lambda text: GivenResult(read_json(text)),
        ),
    ] = None
    failed: Annotated[
        str | None, Argument("--failed", "The step failed for good; the error type, one word.")
    ] = None
    message: Annotated[
        str,
        Argument(
            "--message",
            "With --failed: the error message.",
            label="The error message, if it failed",
        ),
    ] = ""

    @property
    def failure(self) -> PermanentError | None:
        """The failure to report; None if the step succeeded."""
        return read_failure(self.failed, self.message)

    def check(self) -> None:
        if (self.result is None) == (self.failure is None):
            why = "Give either --result or --failed. For no result, give --result null."
            raise WrongFields({"result": why})
        if self.step is None:  # with a step, the order's record has the token
            _body(self.callback, self)

    def preview(self, stack: DeployedStack) -> Preview | AnswerResult:
        """Return what would become of the step; the result if the answer is refused.

        Raises InvalidArgument if the token or the answer is invalid, if the step does not wait, or
        if the order's plan is not stored; NotFound if there is no such order. What is returned
        raises InspectorError if the stack does not have the agent's reply queue, and Interrupted on
        Ctrl-C during the wait: its `result` is an AnswerResult with the outcome UNCONFIRMED.
        """
        body = _body(_token(stack, self), self)
        reply = read_reply(body)
        task, plan = find_task(stack, reply.task_id)
        step = plan.steps.get(reply.step) if plan is not None else None
        stale = _stale(task, reply) or (step and step.too_long(size_in_bytes(reply.result)))
        if stale is not None:
            sentence = f"The answer to {reply.step} of {task.task_id} is not sent: {stale}."
            return _result(reply, task, CommandOutcome.REFUSED, sentence)
        has_result = self.result is not None and self.result.value is not None
        how = "succeed" if has_result else "succeed without a result"
        if self.failure is not None:
            how = f"fail for good: {inert(self.failure.error_type)}"
        would = f"{reply.step} of {task.task_id} would {how}. Nothing was sent."
        return Preview(would, partial(_send, stack, task, reply, body), str(task.version))


def _result(reply: Reply, task: Task, outcome: CommandOutcome, sentence: str) -> AnswerResult:
    state = task.step(reply.step).process_state
    return AnswerResult(
        order_id=task.task_id,
        command="answer",
        step=reply.step,
        outcome=outcome,
        sentence=sentence,
        process_state=state,
        state=task.state,
        version=task.version,
    )


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
    stack: DeployedStack, before: Task, reply: Reply, body: str, asked: Asked
) -> AnswerResult:
    step, record = reply.step, before.step(reply.step)

    def moved() -> Task | None:
        try:
            task = stack.tasks.load(before.task_id, now())
        except RoundsmanError:
            return None
        found = task.step(step) if task else record
        same = (found.process_state, found.locked_by) == (record.process_state, record.locked_by)
        return None if same else task

    queue = reply_queue_of(stack.outputs, reply.agent)
    if queue is None:
        raise InspectorError(
            f"The stack {stack.name} has no reply queue for the agent {inert(reply.agent)}."
        )
    name = f"{step} of {before.task_id}"
    sent, after = send_and_look(
        stack,
        queue,
        body,
        _result(reply, before, CommandOutcome.SENT, ""),
        moved,
        asked.wait,
        what=f"The answer to {name}",
        order=before.task_id,
        again="Sending it again is harmless.",
    )
    if after is None:
        return sent
    state = after.step(step).process_state
    sentence = f"The scheduler accepted the answer to {name}; the step is {state}."
    return _result(reply, after, CommandOutcome.DONE, sentence)
