"""Callbacks: a step waits for a result that a person or another system sends later.

    @payment.performs(approve)
    def ask(request: StepRequest) -> Callback:
        ask_for_approval(request.task_id, token=request.callback_token, key=request.idempotency_key)
        return Callback(within=timedelta(days=2))

Days later, the other side sends this text to the agent's reply queue:

    succeeded_reply(token, {"approvedBy": "j.doe"})

With `Callback(within=..., remind_every=...)` the agent's reminder function is called from time to
time while the step waits:

    @payment.reminds(approve)
    def remind(request: StepRequest) -> None:
        send_reminder(request.task_id, token=request.callback_token, number=request.reminder)

A token identifies one attempt at one effect. It is not a secret, can be decoded by anyone, and
authorizes nothing: access is controlled by the permission to send to the reply queue.
"""

import binascii
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from datetime import timedelta

from roundsman.agents.outcomes import (
    LONGEST_WAIT,
    permanent,
    succeeded,
    transient,
    wait_of,
)
from roundsman.definition.plan import Plan
from roundsman.errors import (
    InvalidMessage,
    InvalidToken,
    NotWaiting,
    PermanentError,
    TransientError,
    kind_of,
)
from roundsman.model.checks import SHORTEST_WAIT
from roundsman.model.json import canonical_json, size_in_bytes
from roundsman.model.record_limits import LARGEST_RESULT
from roundsman.model.task import PERFORM, Task, idempotency_key
from roundsman.ports import Clock
from roundsman.wire.fields import Fields
from roundsman.wire.messages import (
    OPERATIONS,
    AgentRequest,
    AttemptResult,
    Reply,
    read_object,
    read_task_id,
)

MOST_REMINDERS = 1_000  # each is a row of the task's history


@dataclass(frozen=True, slots=True, kw_only=True)
class Callback:
    """Returned by a perform function whose result will be sent later.

    Raises TypeError if `within` or `remind_every` is not a timedelta, and ValueError if it is out
    of range.
    """

    within: timedelta
    """The time in which the result must arrive, from 1 s to 365 days; after it, the attempt is
    overdue."""
    remind_every: timedelta | None = None
    """The time between two calls of the function marked `@agent.reminds(step)`: at least 1 s, less
    than `within`, and at most 1,000 times in it. None: no reminders."""

    def __post_init__(self) -> None:
        if not isinstance(self.within, timedelta):
            raise TypeError(f"within must be a timedelta, not {kind_of(self.within)}")
        if not SHORTEST_WAIT <= self.within <= LONGEST_WAIT:
            raise ValueError(f"within must be from 1 s to 365 days, not {self.within}")
        every = self.remind_every
        if every is None:
            return
        if not isinstance(every, timedelta):
            raise TypeError(f"remind_every must be a timedelta, not {kind_of(every)}")
        if not SHORTEST_WAIT <= every < self.within:
            raise ValueError(
                f"remind_every must be from 1 s to less than within ({self.within}), not {every}"
            )
        if self.within > MOST_REMINDERS * every:
            raise ValueError(
                f"remind_every is {every}, which is more than {MOST_REMINDERS:,} reminders within "
                f"{self.within}; make it longer"
            )


def callback_token(asked: AgentRequest, agent: str) -> str:
    """The callback token of an attempt: base64url text (A-Z, a-z, 0-9, `-`, `_`), not a secret."""
    return _token(
        asked.task_id, asked.step, asked.operation, asked.lock, asked.idempotency_key, agent
    )


def token_of_wait(task: Task, plan: Plan | None, step: str) -> str:
    """Return a token that answers the callback for which the step waits, as `task` was read.

    It also answers a wait that was ended with the order. `plan` is the task's, or None if it is not
    stored. Raises NotWaiting if the step does not wait, or if the plan is not stored.
    """
    name = f"{step[:50]} of {task.task_id}"
    if plan is None:
        raise NotWaiting(f"{name} has an agent that is not known: its plan is not stored")
    planned = plan.for_task(task).steps.get(step)
    if planned is None:
        raise NotWaiting(f"{name} does not wait for a callback: there is no such step")
    record = task.step(step)
    if not record.waiting and not record.wait_was_ended:
        raise NotWaiting(f"{name} does not wait for a callback: it is {record.process_state}")
    agent = record.agent or planned.agent
    key = idempotency_key(task.task_id, step, PERFORM, record)
    return _token(task.task_id, step, PERFORM, record.locked_by or "ended", key, agent)


def _token(task_id: str, step: str, operation: str, lock: str, key: str, agent: str) -> str:
    text = canonical_json(
        {
            "taskId": task_id,
            "step": step,
            "operation": operation,
            "lock": lock,
            "key": key,
            "agent": agent,
        }
    )
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _now() -> int:
    return time.time_ns() // 1_000_000


def succeeded_reply(token: str, result: object = None, *, clock: Clock = _now) -> str:
    """The message for the agent's reply queue that completes the step with `result`.

    The result may be Done, which also adds steps. Sending it twice is harmless. Raises
    InvalidToken, and ValueError if the result is not JSON or is larger than 32 KiB.
    """
    ended = succeeded(result)
    if ended.error is not None:
        raise ValueError(ended.error.message)
    if ended.left_out or (size := size_in_bytes(ended.result)) > LARGEST_RESULT:
        raise ValueError(ended.left_out or f"the result has {size} bytes; {LARGEST_RESULT} fit")
    return _reply(token, ended, clock)


def failed_reply(token: str, error: PermanentError | TransientError, *, clock: Clock = _now) -> str:
    """The message for the agent's reply queue that reports a failed attempt.

    A PermanentError fails the step for good; after a TransientError the scheduler retries it.
    Raises InvalidToken, and TypeError for any other error.
    """
    if isinstance(error, PermanentError):
        return _reply(token, permanent(error.error_type, error.message), clock)
    if isinstance(error, TransientError):
        ended = transient(type(error).__name__, error, wait_of(error.retry_after))
        return _reply(token, ended, clock)
    raise TypeError(f"the error must be a PermanentError or a TransientError, not {kind_of(error)}")


def _reply(token: str, ended: AttemptResult, clock: Clock) -> str:
    fields = _read(token)
    reply = Reply.of(
        ended,
        task_id=read_task_id(fields, "taskId"),
        step=fields.text("step"),
        operation=fields.one_of("operation", OPERATIONS),
        lock=fields.text("lock"),
        idempotency_key=fields.text("key"),
        agent=fields.text("agent"),
        finished_at=clock(),
        callback=True,
    )
    try:
        fields.done()
    except InvalidMessage as error:
        raise InvalidToken("this is not a callback token") from error
    return reply.body()


def _read(token: object) -> Fields:
    try:
        if not isinstance(token, str):
            raise TypeError
        padded = token.encode("ascii") + b"=" * (-len(token) % 4)
        text = urlsafe_b64decode(padded).decode()
        return Fields(read_object(text))
    except (TypeError, ValueError, binascii.Error, InvalidMessage) as error:
        raise InvalidToken("this is not a callback token, or a part of it is missing") from error
