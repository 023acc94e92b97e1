"""Describes a message, and predicts the effect of sending it again now.

The message is parsed and checked with the code of the functions, so that the prediction agrees with
what they will do.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from roundsman.aws.sqs.event_sources import SourcesOfQueue
from roundsman.engine.transitions import MayBecome, TaskEvent, task_transition
from roundsman.errors import (
    InvalidMessage,
    Problem,
    RejectedOrder,
    RoundsmanError,
    UnreadableRecord,
    rejected_together,
)
from roundsman.model.events import Outcome
from roundsman.model.json import parse_json
from roundsman.model.states import ProcessState, SituationName
from roundsman.model.task import (
    TASK_ID,
    Effect,
    StepRecord,
    Task,
    idempotency_key,
)
from roundsman.submission.events import Asked
from roundsman.submission.submission import NO_TASK, TAKEN, CancelAsked, EventOfOrder, ValidOrder
from roundsman.wire.commands import INSPECT, START, read_command
from roundsman.wire.messages import (
    AgentRequest,
    Reply,
    read_object,
    read_reply,
    read_request,
)
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.errors import InspectorError
from roundsman_console.facts.set_aside.queues import MessageKind, Source

_OPEN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)


class ResendVerdict(StrEnum):
    """The predicted effect of a message that is sent again. Scripts read the values."""

    ACTS = "acts"
    """The message has an effect."""
    PASSED_OVER = "passed_over"
    """The message is ignored: its task does not need it any more, or does not exist."""
    REJECTED = "rejected"
    """The message is invalid, and is put in the RejectedQueue."""
    FAILS = "fails"
    """The function fails, for example because a record cannot be read."""

    @property
    def words(self) -> str:
        """The verdict as text for people: `it would act`."""
        return _WORDS[self]


_WORDS = {
    ResendVerdict.ACTS: "it would take effect",
    ResendVerdict.PASSED_OVER: "it would be ignored",
    ResendVerdict.REJECTED: "it would be rejected",
    ResendVerdict.FAILS: "it would fail again",
}


@dataclass(frozen=True, slots=True)
class JudgedMessage:
    """A message, and the predicted effect of sending it again."""

    what: str
    """The kind and the subject of the message: `start of ord-1`."""
    verdict: ResendVerdict
    why: str
    """The reason of the verdict, in words."""
    problems: tuple[Problem, ...] = ()
    """Why the message is invalid; empty unless the verdict is REJECTED."""


def order_of(body: str) -> str | None:
    """Return the id of the message's order; None if the body does not contain a valid one."""
    try:
        value = parse_json(body)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    found = value.get("orderId", value.get("taskId"))
    return found if isinstance(found, str) and TASK_ID.fullmatch(found) else None


def first_problem(problems: Sequence[Problem]) -> str:
    """Return the first problem and the number of further ones. `problems` must not be empty."""
    first, *more = problems
    return f"{first} (and {len(more)} more)" if more else str(first)


def judge(stack: DeployedStack, source: Source, body: str, now: int) -> JudgedMessage:
    """Predict what the function that reads `source` would do with the message.

    `now` is epoch ms. If the workflows are not known (`DeployedStack.events`), an event is taken to
    be acceptable if it is a JSON object. A RoundsmanError becomes the verdict FAILS, also one of
    the reads made here.
    """
    try:
        return _judge(stack, source, body, now)
    except InvalidMessage as invalid:
        first = first_problem(invalid.problems)
        return JudgedMessage(f"no {source.kind}", ResendVerdict.REJECTED, first, invalid.problems)
    except UnreadableRecord as error:
        return JudgedMessage(f"{source.kind} of {error.record}", ResendVerdict.FAILS, str(error))
    except InspectorError:  # the stack lacks an output
        raise
    except RoundsmanError as error:
        return JudgedMessage(f"{source.kind}", ResendVerdict.FAILS, str(error))


def _judge(stack: DeployedStack, source: Source, body: str, now: int) -> JudgedMessage:
    match source.kind:
        case MessageKind.ORDER:
            return _judge_message(stack, source, body, now)
        case MessageKind.COMMAND:
            return _judge_command(stack, body, now)
        case MessageKind.REPLY:
            reply = read_reply(body)
            what = f"{reply.outcome} of {reply.step} of {reply.task_id}"
            task = stack.tasks.load(reply.task_id, now)
            return JudgedMessage(what, *reply_matters(task, reply))
        case MessageKind.REQUEST:
            request = read_request(body)
            what = f"{request.operation} {request.step} of {request.task_id}"
            task = stack.tasks.load(request.task_id, now)
            return JudgedMessage(what, *request_matters(task, request, now))


def _judge_message(stack: DeployedStack, source: Source, body: str, now: int) -> JudgedMessage:
    """Predict the effect of an event, or of those in the envelope of a service of AWS.

    Raises InvalidMessage if submission would reject it, or one of them.
    """
    if stack.events is None:
        read_object(body)
        order = order_of(body)
        why = "this command cannot find out whether it would be accepted"
        return JudgedMessage(f"event of {order}" if order else "event", ResendVerdict.ACTS, why)
    found = stack.events.read_message(
        body, now, stack.reply_queue_problem, lambda: SourcesOfQueue(source.sqs, source.url)
    )
    if rejected := [one for one in found if isinstance(one, RejectedOrder)]:
        raise rejected_together(rejected)
    judged = [_judge_asked(stack, one, now) for one in found if not isinstance(one, RejectedOrder)]
    if not judged:
        return JudgedMessage("test event of S3", ResendVerdict.PASSED_OVER, "it has no order")
    first = next((one for one in judged if one.verdict is ResendVerdict.ACTS), judged[0])
    more = len(judged) - 1
    return replace(first, what=f"{first.what} and {more} more") if more else first


def _judge_asked(stack: DeployedStack, event: Asked, now: int) -> JudgedMessage:
    if isinstance(event, ValidOrder):
        return _judge_order(stack, event)
    task = stack.tasks.load(event.order_id, now)
    if task is None and isinstance(event, EventOfOrder):
        if isinstance(event.order, RejectedOrder):
            raise event.order
        return _judge_order(stack, event.order)
    if task is None:
        raise InvalidMessage([NO_TASK])
    cancels = isinstance(event, CancelAsked)
    kind = TaskEvent.CANCEL if cancels else TaskEvent.SIGNALLED
    heard = isinstance(task_transition(task.state, kind), MayBecome)
    verdict = ResendVerdict.ACTS if heard else ResendVerdict.PASSED_OVER
    what = "cancellation of" if cancels else "signal to"
    return JudgedMessage(f"{what} {event.order_id}", verdict, f"the task is {task.state}")


def _judge_order(stack: DeployedStack, event: ValidOrder) -> JudgedMessage:
    stored = stack.tasks.order(event.order_id)
    what = f"order {event.order_id}"
    if stored is None:
        return JudgedMessage(what, ResendVerdict.ACTS, "it would be accepted")
    if stored.content_hash != event.content_hash:
        raise InvalidMessage([TAKEN])
    return JudgedMessage(what, ResendVerdict.PASSED_OVER, "the same order is already stored")


def _judge_command(stack: DeployedStack, body: str, now: int) -> JudgedMessage:
    command = read_command(body)
    task = stack.tasks.load(command.task_id, now)
    what = f"{command.kind} of {command.task_id}"
    if task is None:
        return JudgedMessage(what, ResendVerdict.PASSED_OVER, _GONE)
    over = task.ended and command.kind in (START, INSPECT)
    verdict = ResendVerdict.PASSED_OVER if over else ResendVerdict.ACTS
    return JudgedMessage(what, verdict, f"the task is {task.state}")


_GONE = "its task does not exist, or no longer exists"


def reply_matters(task: Task | None, reply: Reply) -> tuple[ResendVerdict, str]:
    """Return whether a step still waits for this reply (ACTS or PASSED_OVER), and why.

    `task` is None if the task does not exist.
    """
    if task is None:
        return ResendVerdict.PASSED_OVER, _GONE
    record = task.step(reply.step)
    if _is_late_success(task, record, reply):
        return ResendVerdict.ACTS, "the step has failed; it is recorded that its effect stands"
    why = _why_ignored(task, record, reply)
    return (
        (ResendVerdict.PASSED_OVER, why)
        if why
        else (ResendVerdict.ACTS, f"the step is {record.process_state}")
    )


def _is_late_success(task: Task, record: StepRecord, reply: Reply) -> bool:
    """Whether a failed step succeeded after all (`roundsman.engine.steps.late_success`)."""
    failed = record.situation_name is SituationName.FAILED and record.effect is not Effect.STANDS
    return failed and reply.outcome is Outcome.SUCCEEDED and _is_of_the_key(task, record, reply)


def _is_of_the_key(task: Task, record: StepRecord, reply: Reply) -> bool:
    key = idempotency_key(task.task_id, reply.step, record.operation, record)
    return reply.idempotency_key == key


def _why_ignored(task: Task, record: StepRecord, reply: Reply) -> str:
    """Return why the scheduler would ignore the reply; empty if it would not."""
    if reply.step not in task.steps:
        return f"nothing waits for it: the task has not tried {reply.step}"
    if record.process_state not in _OPEN or record.operation != reply.operation:
        return f"nothing waits for it: the step is {record.process_state}"
    if not _is_of_the_key(task, record, reply):
        return "the step has begun again since, under another key"
    ended = record.locked_by != reply.lock and reply.outcome is not Outcome.SUCCEEDED
    return "its attempt has ended" if ended else ""


def request_matters(
    task: Task | None, request: AgentRequest, now: int
) -> tuple[ResendVerdict, str]:
    """Return whether the agent would act on this request and its task accept the reply, and why.

    The verdict is ACTS or PASSED_OVER. `task` is None if it does not exist; `now` is epoch ms.
    """
    if request.complete_by <= now:
        return ResendVerdict.PASSED_OVER, "its complete-by has passed: the agent ignores it"
    if task is None or request.step not in task.steps:
        return ResendVerdict.PASSED_OVER, _GONE
    record = task.step(request.step)
    if record.locked_by != request.lock:
        return (
            ResendVerdict.PASSED_OVER,
            f"its attempt has ended: the step is {record.process_state}",
        )
    return ResendVerdict.ACTS, f"the step is {record.process_state}"
