"""`roundsman answer`: sends the reply that a step waits for from an external system.

The reply goes to the agent's reply queue, like a reply from the external system. The history does
not record who sent it; `roundsman resolve` records the operator.
"""

import json
from dataclasses import dataclass, replace
from typing import Annotated

import typer
from botocore.exceptions import HTTPClientError
from rich.console import Console

from roundsman.agents.callbacks import failed_reply, succeeded_reply
from roundsman.aws.clock import now
from roundsman.errors import InvalidToken, PermanentError, RoundsmanError
from roundsman.model.events import Outcome
from roundsman.model.json import Json
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord, Task, idempotency_key, operation_of
from roundsman.wire.messages import Reply, read_reply
from roundsman_console.arguments import read_result
from roundsman_console.cli.operate import DEFAULT_WAIT, AsJson, NoWait, Wait
from roundsman_console.cli_errors import USAGE, ConsoleError, aws_sentence, complain, sentences
from roundsman_console.operate.commands import CODES, CommandOutcome
from roundsman_console.polling import wait_for
from roundsman_console.read.lookup import find_task
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack
from roundsman_console.sanitize import inert

_OPEN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)


@dataclass(frozen=True, slots=True)
class AnswerResult:
    """The outcome of an answer."""

    outcome: CommandOutcome
    sentence: str
    reply: Reply
    task: Task | None
    """The task as last read."""

    def document(self) -> dict[str, Json]:
        """Return the JSON object that --json prints."""
        record = self.task.step(self.reply.step) if self.task else None
        return {
            "orderId": self.reply.task_id,
            "command": "answer",
            "step": self.reply.step,
            "outcome": self.outcome.value,
            "sentence": self.sentence,
            "processState": record.process_state.value if record else None,
            "state": self.task.state.value if self.task else None,
            "version": self.task.version if self.task else None,
        }


def answer_command(
    token: Annotated[str, typer.Argument(help="The callback token that the agent gave away.")],
    result: Annotated[
        str | None, typer.Option(help="It was done; what it answers, as JSON or @file.")
    ] = None,
    failed: Annotated[
        str | None, typer.Option(help="It failed for good; the kind of failure, in a word.")
    ] = None,
    message: Annotated[str, typer.Option(help="With --failed: why, for people.")] = "",
    stack: StackOption = None,
    as_json: AsJson = False,
    wait: Wait = DEFAULT_WAIT,
    no_wait: NoWait = False,
) -> None:
    """Give the answer that a step waits for from outside, by the token of its callback.

    Example: roundsman answer eyJhZ2Vu... --result '{"approvedBy": "j.doe"}'
    """
    with sentences():
        body = _body(token, result, failed, message)
        reply = read_reply(body)
        found = find_stack(stack)
        task, _ = find_task(found, reply.task_id)
        told = _refused(task, reply) or _send(found, task, reply, body, 0 if no_wait else wait)
        if as_json:
            print(json.dumps(told.document()))
        code = CODES.get(told.outcome, 0)
        if code:
            complain(told.sentence)
            raise typer.Exit(code)
        if as_json:
            return
        console = Console(highlight=False, soft_wrap=True)
        console.print(inert(told.sentence), markup=False)
        if told.outcome is CommandOutcome.DONE and told.task is not None:
            console.print(f"{told.task.task_id} is {told.task.state}.")


def _body(token: str, result: str | None, failed: str | None, message: str) -> str:
    if (result is None) == (failed is None):
        raise ConsoleError("Say either --result or --failed; --result null is no result.", USAGE)
    if failed is None and message:
        raise ConsoleError("--message goes with --failed.", USAGE)
    if failed is not None and not failed.strip():
        raise ConsoleError("--failed is empty.", USAGE)
    try:
        if failed is not None:
            return failed_reply(token, PermanentError(failed.strip(), message), clock=now)
        return succeeded_reply(token, read_result(result), clock=now)
    except (InvalidToken, ValueError) as error:
        said = str(error)
        raise ConsoleError(f"{said[:1].upper()}{said[1:]}.", USAGE) from error


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
    if record.process_state not in _OPEN or operation != reply.operation:
        return f"nothing waits for it, the step is {record.process_state}"
    if key != reply.idempotency_key:
        return "the step has begun anew since, under another key"
    if record.locked_by != reply.lock and reply.outcome is not Outcome.SUCCEEDED:
        return "the attempt that it is about is over"
    return None


def _send(stack: DeployedStack, task: Task, reply: Reply, body: str, wait: float) -> AnswerResult:
    told = AnswerResult(CommandOutcome.SENT, "", reply, task)
    name, look = f"{reply.step} of {task.task_id}", f"roundsman show {task.task_id}"
    try:
        stack.sqs.send_message(QueueUrl=_reply_queue(stack, reply.agent), MessageBody=body)
    except HTTPClientError as error:
        lost = f"{aws_sentence(error)} The answer may have been sent. Look with: {look}"
        return replace(told, outcome=CommandOutcome.UNCONFIRMED, sentence=lost)
    if not wait:
        return replace(told, sentence=f"The answer to {name} is sent. Look with: {look}")
    after = _wait(stack, task, reply.step, wait)
    if after is None:
        sentence = (
            f"The answer to {name} is sent, but the scheduler has not taken it in {wait:g} s. "
            f"Giving it again is harmless. Look with: {look}"
        )
        return replace(told, outcome=CommandOutcome.UNCONFIRMED, sentence=sentence)
    state = after.step(reply.step).process_state
    sentence = f"Done: {name} is answered; the step is {state}."
    return replace(told, outcome=CommandOutcome.DONE, sentence=sentence, task=after)


def _wait(stack: DeployedStack, before: Task, step: str, wait: float) -> Task | None:
    """Return the task after the state or the lock of the step changed.

    Returns None on timeout (`wait` seconds) or Ctrl-C.
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

    try:
        return wait_for(look, wait)
    except KeyboardInterrupt:
        return None


def _reply_queue(stack: DeployedStack, agent: str) -> str:
    """Return the URL of the agent's reply queue. Raises ConsoleError if the stack has none."""
    wanted = f"{agent.replace('_', '')}replyqueueurl"
    for output, url in stack.outputs.items():
        if output.lower() == wanted:
            return url
    raise ConsoleError(f"The stack {stack.name} has no reply queue of the agent {inert(agent)}.")
