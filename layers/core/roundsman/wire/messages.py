"""The formats of requests, replies, statuses and rejected messages.

Each reader checks the whole message and raises InvalidMessage with all problems. Each reader
accepts every text that its writer returns. Instants are epoch ms and durations are ms, except in
statuses, which leave the system and contain ISO 8601.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from roundsman.errors import InvalidMessage, Problem, RejectedOrder
from roundsman.model.events import Claimant, Outcome, Replied
from roundsman.model.instants import iso
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.task import Effect, Owed, StepError, Task
from roundsman.wire.fields import Fields

VERSION = 1
TASK_ID = re.compile(r"[A-Za-z0-9._~-]{1,128}")
OPERATIONS = ("perform", "undo")
SAYS_WHY = frozenset({Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.HELD})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A request to an agent to make one attempt. Instants are epoch ms."""

    task_id: str
    workflow: str
    step: str
    """The name of the step, or of an item of a fan-out: `name[3]`."""
    operation: str
    """`perform` or `undo`."""
    lock: str
    """The lock token of the claim; the reply repeats it."""
    idempotency_key: str
    attempt: int
    """The number of the attempt, from 1."""
    complete_by: int
    """The agent sends no reply after this instant."""
    input: Json
    """The order."""
    results: Mapping[str, Json]
    """The results of the steps before this one; for an undo, also the known result of the step."""
    sent_at: int
    perform_key: str | None = None
    """The idempotency key of the effect that an undo undoes; None for a perform."""
    outcome_unknown: bool = False
    """An earlier attempt may have had its effect."""
    heartbeat_by: int | None = None
    """When the agent must have shown progress; None if the step has no heartbeats."""
    item: Json = None
    """The item that the request is for; None if the step is not an item of a fan-out."""
    within: int | None = None
    """How long the attempt may take in ms, if a person gave it more time than the step has."""
    tenant: str | None = field(default=None, compare=False)
    """The message group of the SQS message; not part of the body."""
    read_before: bool = field(default=False, compare=False)
    """The message was received before, and that receiver may have died after it called the
    service. Not part of the body."""

    def body(self) -> str:
        """Return the body of the message."""
        found: dict[str, Json] = {
            "version": VERSION,
            "taskId": self.task_id,
            "workflow": self.workflow,
            "step": self.step,
            "operation": self.operation,
            "lock": self.lock,
            "idempotencyKey": self.idempotency_key,
            "attempt": self.attempt,
            "completeBy": self.complete_by,
            "outcomeUnknown": self.outcome_unknown,
            "input": self.input,
            "results": dict(self.results),
            "sentAt": self.sent_at,
        }
        if self.perform_key is not None:
            found["performKey"] = self.perform_key
        if self.heartbeat_by is not None:
            found["heartbeatBy"] = self.heartbeat_by
        if self.item is not None:
            found["item"] = self.item
        if self.within is not None:
            found["within"] = self.within
        return canonical_json(found)


def read_request(body: str) -> AgentRequest:
    """Read a request from the body of a message. Raises InvalidMessage."""
    fields = Fields(read_object(body))
    check_version(fields)
    request = AgentRequest(
        task_id=read_task_id(fields),
        workflow=fields.text("workflow"),
        step=fields.text("step"),
        operation=fields.one_of("operation", OPERATIONS),
        lock=fields.text("lock"),
        idempotency_key=fields.text("idempotencyKey"),
        attempt=fields.number("attempt"),
        complete_by=fields.number("completeBy"),
        input=fields.any("input"),
        results=fields.mapping("results"),
        sent_at=fields.number("sentAt"),
        perform_key=fields.optional_text("performKey"),
        outcome_unknown=fields.flag("outcomeUnknown"),
        heartbeat_by=fields.optional_number("heartbeatBy"),
        item=fields.optional("item"),
        within=fields.optional_number("within"),
    )
    fields.done()
    return request


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of an agent to one request. Instants are epoch ms."""

    task_id: str
    step: str
    operation: str
    """`perform` or `undo`."""
    lock: str
    """The lock token from the request; it identifies the claim."""
    idempotency_key: str
    """The idempotency key from the request; it identifies the effect."""
    outcome: Outcome
    agent: str
    finished_at: int
    result: Json = None
    """The result of a `succeeded` reply."""
    error: StepError | None = None
    """Required in a `transient`, `permanent` or `held` reply."""
    retry_after: int | None = None
    """The wait before the next attempt in ms; None if the agent requests none."""
    until: int | None = None
    """Until when a `waiting` step waits for its callback; required in a `waiting` reply."""
    outcome_unknown: bool = False
    """In a `held` reply: the service was called before the agent gave the step back, so the effect
    may have happened."""
    effect: Effect | None = None
    """What the agent can prove about the effect under this idempotency key. `Effect.NONE`: no copy
    of any request under this key has called the service with effect, and none will.
    `Effect.STANDS`: the effect took place, although the attempt failed. `None`, the default:
    nothing is proven."""
    callback: bool = False
    """The reply is from an outside system or a person that used a callback token."""

    def body(self) -> str:
        """Return the body of the message."""
        found: dict[str, Json] = {
            "version": VERSION,
            "taskId": self.task_id,
            "step": self.step,
            "operation": self.operation,
            "lock": self.lock,
            "idempotencyKey": self.idempotency_key,
            "outcome": self.outcome.value,
            "agent": self.agent,
            "finishedAt": self.finished_at,
        }
        if self.error is not None:
            error: dict[str, Json] = {"type": self.error.type, "message": self.error.message}
            if self.retry_after is not None:
                error["retryAfter"] = self.retry_after
            found["error"] = error
        elif self.outcome is Outcome.SUCCEEDED:
            found["result"] = self.result
        if self.until is not None:
            found["until"] = self.until
        if self.outcome_unknown:
            found["outcomeUnknown"] = True
        if self.effect is not None:
            found["effect"] = self.effect.value
        if self.callback:
            found["callback"] = True
        return canonical_json(found)

    def event(self, claimant: Claimant) -> Replied:
        """Return the reply as an event. `claimant` claims the steps that become ready after it."""
        return Replied(
            claimant=claimant,
            step=self.step,
            operation=self.operation,
            lock=self.lock,
            key=self.idempotency_key,
            outcome=self.outcome,
            result=self.result,
            error=self.error,
            retry_after=self.retry_after,
            until=self.until,
            outcome_unknown=self.outcome_unknown,
            effect=self.effect,
            callback=self.callback,
        )


def read_reply(body: str) -> Reply:
    """Read a reply from the body of a message. Raises InvalidMessage."""
    fields = Fields(read_object(body))
    check_version(fields)
    error = fields.optional_object("error")
    outcome = fields.one_of("outcome", tuple(Outcome))
    reply = Reply(
        task_id=read_task_id(fields),
        step=fields.text("step"),
        operation=fields.one_of("operation", OPERATIONS),
        lock=fields.text("lock"),
        idempotency_key=fields.text("idempotencyKey"),
        outcome=Outcome(outcome or Outcome.SUCCEEDED),
        agent=fields.text("agent"),
        finished_at=fields.number("finishedAt"),
        result=fields.optional("result"),
        error=StepError(error.text("type"), error.text("message", empty=True)) if error else None,
        retry_after=error.optional_number("retryAfter") if error else None,
        until=fields.optional_number("until"),
        outcome_unknown=fields.flag("outcomeUnknown"),
        effect=_read_effect(fields),
        callback=fields.flag("callback"),
    )
    if reply.outcome in SAYS_WHY and reply.error is None:
        fields.problem("error", f"a {reply.outcome} reply says why")
    if reply.outcome is Outcome.WAITING and reply.until is None:
        fields.problem("until", "a waiting reply says how long")
    fields.done()
    return reply


def _read_effect(fields: Fields) -> Effect | None:
    found = fields.optional_text("effect")
    if found is None or found in tuple(Effect):
        return None if found is None else Effect(found)
    fields.problem("effect", f"must be one of {', '.join(Effect)}")
    return None


def status_body(task: Task, owed: Owed) -> str:
    """Return the body of a status to the application that sent the order."""
    return canonical_json(
        {
            "orderId": task.task_id,
            "correlationId": task.correlation_id,
            "status": owed.name,
            "seq": owed.seq,
            "at": iso(owed.at),
            "detail": owed.detail,
        }
    )


def rejected_status_body(rejected: RejectedOrder, now: int) -> str:
    """Return the body of the status to the application whose order event was rejected.

    `now` is epoch ms.
    """
    return canonical_json(
        {
            "orderId": rejected.order_id,
            "correlationId": rejected.correlation_id,
            "status": "rejected",
            "seq": 0,
            "at": iso(now),
            "detail": str(rejected),
        }
    )


def rejection_body(queue: str, body: str, problems: tuple[Problem, ...]) -> str:
    """Return the body of a message to the RejectedQueue: the rejected body and its problems.

    `queue` is the name of the queue that the rejected message came from.
    """
    return canonical_json(
        {
            "queue": queue,
            "reason": "; ".join(map(str, problems)),
            "problems": [{"path": p.path, "message": p.message} for p in problems],
            "body": body,
        }
    )


def read_object(body: str) -> Mapping[str, Json]:
    """Parse the body of a message, which must be a JSON object. Raises InvalidMessage."""
    try:
        value = parse_json(body)
    except ValueError as error:
        raise InvalidMessage([Problem("", f"not JSON: {error}")]) from error
    if not isinstance(value, Mapping):
        raise InvalidMessage([Problem("", "not a JSON object")])
    if "\\u" in body:  # an escape can be a lone surrogate, which cannot be stored or sent
        try:
            canonical_json(value).encode()
        except UnicodeEncodeError as error:
            raise InvalidMessage([Problem("", "a string has half of a surrogate pair")]) from error
    return value


def check_version(fields: Fields) -> None:
    """Note a problem if this code does not read the version of the message."""
    version = fields.optional("version")
    if version is None:
        fields.problem("version", "missing")
    elif isinstance(version, bool) or version != VERSION:
        fields.problem("version", f"{version!r}; this code reads {VERSION}")


def read_task_id(fields: Fields) -> str:
    """Read `taskId`, and note a problem if it is not a valid task id.

    No task has an id of another form, and DynamoDB refuses a key that is too long.
    """
    task_id = fields.text("taskId")
    if task_id and not TASK_ID.fullmatch(task_id):
        fields.problem("taskId", "must be 1 to 128 of A-Z, a-z, 0-9 and . _ ~ -")
    return task_id
