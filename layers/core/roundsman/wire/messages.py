"""The messages between the parts, as text: requests, replies and statuses.

Every reader checks the whole message and raises InvalidMessage with all of its problems; every
writer's text is read back by its reader. Instants and durations on these wires are in ms, except
in statuses, which leave the system and say ISO 8601.
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
    """One attempt that an agent is asked to make.

    `lock` comes back in the reply. After `complete_by` (epoch ms) the agent stays silent.
    `perform_key` is the key of the effect that an undo undoes. `results` are those of the steps
    before this one. `outcome_unknown` says that an earlier attempt may have had its effect.
    `heartbeat_by` is when progress must have been shown, for a step that has heartbeats. `item`
    is the one that a step of a fan-out, `name[3]`, is for. `within` is how long in ms the attempt
    may take, where a person has given it more time than its step has.
    `tenant` and `read_before` are said beside the text, and not read back from it: the message's
    group, and whether somebody has read the message before, who may have died after the call.
    """

    task_id: str
    workflow: str
    step: str
    operation: str
    lock: str
    idempotency_key: str
    attempt: int
    complete_by: int
    input: Json
    results: Mapping[str, Json]
    sent_at: int
    perform_key: str | None = None
    outcome_unknown: bool = False
    heartbeat_by: int | None = None
    item: Json = None
    within: int | None = None
    tenant: str | None = field(default=None, compare=False)
    read_before: bool = field(default=False, compare=False)

    def body(self) -> str:
        """The message's text."""
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
    """The request in a message's text. Raises InvalidMessage."""
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
    """An agent's answer to one request; says again which claim and which effect it is about.

    `until` (epoch ms) is how long a `waiting` step waits for its callback. `outcome_unknown`, of
    a `held` reply, says that the service was called before the agent stopped: it may have
    happened. `retry_after` is in ms.
    `effect` is what the agent can prove of the effect under this key: NONE says that no copy of
    any request under it has called the service with effect, and that none will; STANDS that it
    took place, though the attempt failed. None, the default, proves nothing.
    `callback` says that the answer is an outside system's or a person's, by a callback token.
    """

    task_id: str
    step: str
    operation: str
    lock: str
    idempotency_key: str
    outcome: Outcome
    agent: str
    finished_at: int
    result: Json = None
    error: StepError | None = None
    retry_after: int | None = None
    until: int | None = None
    outcome_unknown: bool = False
    effect: Effect | None = None
    callback: bool = False

    def body(self) -> str:
        """The message's text."""
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
        """What it is to the machine; `claimant` would claim what follows from it."""
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
    """The reply in a message's text. Raises InvalidMessage."""
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
    """What the application that sent the order is told."""
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
    """What the application is told of an event that was put aside."""
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
    """What the RejectedQueue keeps of a message: its text as it came, and all that is wrong."""
    return canonical_json(
        {
            "queue": queue,
            "reason": "; ".join(map(str, problems)),
            "problems": [{"path": p.path, "message": p.message} for p in problems],
            "body": body,
        }
    )


def read_object(body: str) -> Mapping[str, Json]:
    """The JSON object in a message's text. Raises InvalidMessage."""
    try:
        value = parse_json(body)
    except ValueError as error:
        raise InvalidMessage([Problem("", f"not JSON: {error}")]) from error
    if not isinstance(value, Mapping):
        raise InvalidMessage([Problem("", "not a JSON object")])
    if "\\u" in body:  # JSON can spell half a pair so, and nothing could store or send it
        try:
            canonical_json(value).encode()
        except UnicodeEncodeError as error:
            raise InvalidMessage([Problem("", "a string has half of a surrogate pair")]) from error
    return value


def check_version(fields: Fields) -> None:
    """Note a version that this code does not read."""
    version = fields.optional("version")
    if version is None:
        fields.problem("version", "missing")
    elif isinstance(version, bool) or version != VERSION:
        fields.problem("version", f"{version!r}; this code reads {VERSION}")


def read_task_id(fields: Fields) -> str:
    """No other id was ever given to a task, and the store refuses a key that is too long."""
    task_id = fields.text("taskId")
    if task_id and not TASK_ID.fullmatch(task_id):
        fields.problem("taskId", "must be 1 to 128 of A-Z, a-z, 0-9 and . _ ~ -")
    return task_id
