"""The formats of requests, replies, statuses and rejected messages.

Requests and replies each have one table of their fields, by which they are read and written. A
reader checks the whole message and raises InvalidMessage with all problems. Instants are epoch ms
and durations are ms, except in statuses, which leave the system and contain ISO 8601.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from dataclasses import fields as fields_of
from typing import NamedTuple, Self

from roundsman.errors import InvalidMessage, Problem, RejectedOrder
from roundsman.model.events import Claimant, Outcome, Replied
from roundsman.model.field_table import Field, FieldTable, Kind, any_of
from roundsman.model.instants import iso
from roundsman.model.json import Json, canonical_json, parse_json
from roundsman.model.states import TaskState
from roundsman.model.task import (
    ADDED_NAME,
    TASK_ID,
    EarlyEnd,
    Effect,
    EndOfTask,
    Owed,
    StepError,
    StepToAdd,
    Task,
)
from roundsman.wire.fields import (
    ANY,
    ANY_TEXT,
    FLAG,
    NUMBER,
    OBJECT,
    OPTIONAL_NUMBER,
    OPTIONAL_TEXT,
    TEXT,
    TEXTS,
    Fields,
    MessageTable,
    enumeration,
    one_of,
    optional,
)

VERSION = 1
OPERATIONS = ("perform", "undo")
ENDS = (TaskState.UNDONE, TaskState.ARCHIVED, TaskState.CANCELLED)
"""The ends that may have closing steps."""
NEEDS_ERROR = frozenset({Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.HELD})


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRequest:
    """A request to an agent to make one attempt. Instants are epoch ms."""

    task_id: str
    """The id of the order, which is the id of its task."""
    workflow: str
    """The name of the workflow."""
    step: str
    """The name of the step, or of an item of a fan-out: `name[3]`."""
    operation: str
    """`perform` or `undo`."""
    lock: str
    """The lock token of the claim; the reply repeats it."""
    idempotency_key: str
    """The key of the effect, the same in every attempt."""
    attempt: int
    """The number of the attempt, from 1."""
    complete_by: int
    """The agent sends no reply after this instant."""
    input: Json
    """The order."""
    results: Mapping[str, Json]
    """The results of the steps before this one; for an undo, also the known result of the step."""
    sent_at: int
    """When the request was sent."""
    perform_key: str | None = None
    """The idempotency key of the effect that an undo undoes; None for a perform."""
    outcome_unknown: bool = False
    """An earlier attempt may have had its effect."""
    heartbeat_by: int | None = None
    """When the agent must have shown progress; None if the step has no heartbeats."""
    item: Json = None
    """The item that the request is for; None if the step is not an item of a fan-out."""
    step_input: Json = None
    """What the step was added with; None if it was not added at run time."""
    within: int | None = None
    """How long the attempt may take in ms, if a person gave it more time than the step has."""
    probe_only: bool = False
    """The service may have forgotten the key, so only the probe is asked, which finds the effect
    without the key. If it says that nothing happened, the step begins under another key."""
    reminder: int | None = None
    """The number of this reminder, from 1, if the request asks the agent to remind of the callback
    that the attempt waits for; the agent sends no reply then. None if it asks for the attempt."""
    masked: tuple[str, ...] = ()
    """The paths of the values in this request that must be in no text of a reply, such as
    `input.card.number` and `results.quote`."""
    tenant: str | None = None
    """On whose behalf the order was sent; also the message group of the SQS message."""
    left_out: tuple[str, ...] = ()
    """The steps whose results are not in `results`, because the record does not have them."""
    unanswered: tuple[str, ...] = ()
    """The steps that nobody has answered in time: the result of each is its `otherwise`."""
    ending: EndOfTask | None = None
    """Of a request to a closing step: the end that the task has come to; else None."""
    read_before: bool = field(default=False, compare=False)
    """The message was received before, and that receiver may have died after it called the
    service. Not part of the body."""

    def body(self) -> str:
        """Return the body of the message."""
        return message_body(REQUEST.written(self))


def read_request(body: str) -> AgentRequest:
    """Read a request from the body of a message. Raises InvalidMessage."""
    fields = message_fields(body)
    request = REQUEST.read(fields)
    fields.done()
    return request


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """How an attempt ended, or that it continues, as its reply says it."""

    outcome: Outcome
    """How the attempt ended, or that it continues."""
    result: Json = None
    """The result of a `succeeded` reply."""
    error: StepError | None = None
    """Required in a `transient`, `permanent` or `held` reply."""
    retry_after: int | None = None
    """The wait before the next attempt in ms; None if the agent requests none."""
    until: int | None = None
    """Until when a `waiting` step waits for its callback; required in a `waiting` reply."""
    remind_every: int | None = None
    """The time in ms between two reminders of a `waiting` step; None for no reminders."""
    again_in: int | None = None
    """In a `polling` reply, where it is required: the time in ms until the step is polled again."""
    within: int | None = None
    """In a `polling` reply, where it is required: the time in ms for which the step is polled. The
    first such reply under the idempotency key decides."""
    outcome_unknown: bool = False
    """In a `held` reply: the service was called before the agent gave the step back, so the effect
    may have happened. In a `permanent` reply: the call that was refused was one of several side by
    side, and the others may have had their effect."""
    effect: Effect | None = None
    """What the agent can prove about the effect under this idempotency key; None if nothing is
    proven. `none`: no copy of any request under this key has called the service with effect, and
    none will. `stands`: the effect took place, although the attempt failed."""
    then: tuple[StepToAdd, ...] = ()
    """The steps that a `succeeded` reply to a perform adds to the task."""
    left_out: str | None = None
    """In a `succeeded` reply without the result: why the result could not be sent."""
    end: EarlyEnd | None = None
    """In a `succeeded` reply to a perform: its task ends early, as Completed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply(AttemptResult):
    """The reply of an agent to one request. Instants are epoch ms."""

    task_id: str
    """The task id from the request."""
    step: str
    """The step from the request."""
    operation: str
    """`perform` or `undo`."""
    lock: str
    """The lock token from the request; it identifies the claim."""
    idempotency_key: str
    """The idempotency key from the request; it identifies the effect."""
    agent: str
    """The agent that replies."""
    finished_at: int
    """When the attempt ended."""
    callback: bool = False
    """The reply is from an outside system or a person that used a callback token."""

    @classmethod
    def of(cls, ended: AttemptResult, **envelope: object) -> Self:
        """Return the reply that says how an attempt ended; `envelope` are its own fields."""
        make: Callable[..., Self] = cls
        return make(**envelope, **_values(ended))

    def body(self) -> str:
        """Return the body of the message."""
        found = REPLY.written(self)
        if self.error is not None or self.outcome is not Outcome.SUCCEEDED:
            del found["result"]
        if self.error is not None:
            error = ReplyError(
                self.error.type, self.error.message, self.retry_after, self.error.unexpected
            )
            found["error"] = REPLY_ERROR.written(error)
        return message_body(found)

    def event(self, claimant: Claimant, sender: str | None = None) -> Replied:
        """Return the reply as an event. `claimant` claims the steps that become ready after it.

        `sender` is the principal that sent the message; the message itself does not contain it.
        """
        make: Callable[..., Replied] = Replied
        return make(
            claimant=claimant,
            step=self.step,
            operation=self.operation,
            lock=self.lock,
            key=self.idempotency_key,
            callback=self.callback,
            sender=sender,
            **_values(self),
        )


_OF_ATTEMPT = tuple(one.name for one in fields_of(AttemptResult))


def _values(ended: AttemptResult) -> dict[str, object]:
    return {name: getattr(ended, name) for name in _OF_ATTEMPT}


class ReplyError(NamedTuple):
    """The error of a reply as it is in the message: with the wait before the next attempt."""

    type: str
    """A short name for programs, for example `CardDeclined`."""
    message: str
    """A sentence for people."""
    retry_after: int | None
    """The wait before the next attempt in ms; None if the agent requests none."""
    unexpected: bool = False
    """In a `transient` reply: the agent's code or its deployment has a defect, so the step is
    retried for longer, and an alert is sent meanwhile."""


def read_reply(body: str) -> Reply:
    """Read a reply from the body of a message. Raises InvalidMessage."""
    fields = message_fields(body)
    values = REPLY.values(fields)
    nested = fields.optional_object("error")
    if nested is not None:
        error = REPLY_ERROR.read(nested)
        values |= {
            "error": StepError(error.type, error.message, error.unexpected),
            "retry_after": error.retry_after,
        }
    reply = REPLY.make(**values)
    if reply.outcome in NEEDS_ERROR and reply.error is None:
        fields.problem("error", f"missing in a {reply.outcome} reply")
    if reply.outcome is Outcome.WAITING and reply.until is None:
        fields.problem("until", "missing in a waiting reply")
    if reply.outcome is Outcome.POLLING:
        for name, value in (("againIn", reply.again_in), ("within", reply.within)):
            if value is None:
                fields.problem(name, "missing in a polling reply")
    fields.done()
    return reply


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


ORDER_EVENT = "it is an order event, which belongs in the SubmissionQueue; send it there"
"""The problem of an event that was sent to a queue of the scheduler or of an agent."""


def message_fields(body: str) -> Fields:
    """Parse the body of a message, and check its version. Raises InvalidMessage."""
    found = read_object(body)
    if "orderId" in found and "taskId" not in found:
        raise InvalidMessage([Problem("", ORDER_EVENT)])
    fields = Fields(found)
    check_version(fields)
    return fields


def message_body(found: dict[str, Json]) -> str:
    """Add the version to the fields of a message, and return its body."""
    found["version"] = VERSION
    return canonical_json(found)


def check_version(fields: Fields) -> None:
    """Note a problem if this code does not read the version of the message."""
    version = fields.optional("version")
    if version is None:
        fields.problem("version", "missing")
    elif isinstance(version, bool) or version != VERSION:
        fields.problem("version", f"{version!r}; this code reads {VERSION}")


def read_task_id(fields: Fields, name: str) -> str:
    """Read a task id, and note a problem if it is not a valid one.

    No task has an id of another form, and DynamoDB refuses a key that is too long.
    """
    task_id = fields.text(name)
    if task_id and not TASK_ID.fullmatch(task_id):
        fields.problem(name, "must be 1 to 128 characters of A-Z, a-z, 0-9 and . _ ~ -")
    return task_id


def _read_effect(fields: Fields, name: str) -> Effect | None:
    found = fields.optional_text(name)
    if found is None or found in tuple(Effect):
        return None if found is None else Effect(found)
    fields.problem(name, f"must be one of {', '.join(Effect)}")
    return None


def _read_added_name(fields: Fields, name: str) -> str:
    found = fields.text(name)
    if found and not ADDED_NAME.fullmatch(found):
        fields.problem(name, "must be the name of an added step, such as book_leg[leg-3]")
    return found


TASK_ID_TEXT: "Kind[Fields, Json, str]" = Kind("task id", read_task_id)
OPERATION = one_of(*OPERATIONS)

END: "MessageTable[EarlyEnd]" = FieldTable(
    EarlyEnd, Field("why", "why", TEXT), Field("undo", "undo", FLAG, default=False)
)
OPTIONAL_END: "Kind[Fields, Json, EarlyEnd | None]" = optional(END)
ENDING: "MessageTable[EndOfTask]" = FieldTable(
    EndOfTask,
    Field("end", "end", one_of(*ENDS)),
    Field("step", "step", OPTIONAL_TEXT, None),
    Field("errorType", "error_type", OPTIONAL_TEXT, None),
    Field("undone", "undone", TEXTS, ()),
)
OPTIONAL_ENDING: "Kind[Fields, Json, EndOfTask | None]" = optional(ENDING)
REQUEST: "MessageTable[AgentRequest]" = FieldTable(
    AgentRequest,
    Field("taskId", "task_id", TASK_ID_TEXT),
    Field("workflow", "workflow", TEXT),
    Field("step", "step", TEXT),
    Field("operation", "operation", OPERATION),
    Field("lock", "lock", TEXT),
    Field("idempotencyKey", "idempotency_key", TEXT),
    Field("attempt", "attempt", NUMBER),
    Field("completeBy", "complete_by", NUMBER),
    Field("input", "input", ANY),
    Field("results", "results", OBJECT),
    Field("sentAt", "sent_at", NUMBER),
    Field("performKey", "perform_key", OPTIONAL_TEXT, None),
    Field("outcomeUnknown", "outcome_unknown", FLAG, default=False, always=True),
    Field("heartbeatBy", "heartbeat_by", OPTIONAL_NUMBER, None),
    Field("item", "item", ANY, None),
    Field("stepInput", "step_input", ANY, None),
    Field("within", "within", OPTIONAL_NUMBER, None),
    Field("reminder", "reminder", OPTIONAL_NUMBER, None),
    Field("probeOnly", "probe_only", FLAG, default=False),
    Field("masked", "masked", TEXTS, ()),
    Field("leftOut", "left_out", TEXTS, ()),
    Field("unanswered", "unanswered", TEXTS, ()),
    Field("tenant", "tenant", OPTIONAL_TEXT, None),
    Field("ending", "ending", OPTIONAL_ENDING, None),
)
STEP_TO_ADD: "MessageTable[StepToAdd]" = FieldTable(
    StepToAdd,
    Field("name", "name", Kind("`kind[name]`", _read_added_name)),
    Field("after", "after", TEXTS, ()),
    Field("input", "input", ANY, None),
)
STEPS_TO_ADD: "Kind[Fields, Json, tuple[StepToAdd, ...]]" = Kind(
    "list of objects",
    lambda fields, name: tuple(STEP_TO_ADD.read(one) for one in fields.objects(name)),
    lambda steps: [STEP_TO_ADD.written(one) for one in steps],
)
REPLY_ERROR: "MessageTable[ReplyError]" = FieldTable(
    ReplyError,
    Field("type", "type", TEXT),
    Field("message", "message", ANY_TEXT),
    Field("retryAfter", "retry_after", OPTIONAL_NUMBER, None),
    Field("unexpected", "unexpected", FLAG, default=False),
)
REPLY: "MessageTable[Reply]" = FieldTable(
    Reply,
    Field("taskId", "task_id", TASK_ID_TEXT),
    Field("step", "step", TEXT),
    Field("operation", "operation", OPERATION),
    Field("lock", "lock", TEXT),
    Field("idempotencyKey", "idempotency_key", TEXT),
    Field("outcome", "outcome", enumeration(Outcome)),
    Field("agent", "agent", TEXT),
    Field("finishedAt", "finished_at", NUMBER),
    Field("result", "result", ANY, None, always=True),  # only in a `succeeded` reply
    Field("until", "until", OPTIONAL_NUMBER, None),
    Field("remindEvery", "remind_every", OPTIONAL_NUMBER, None),
    Field("againIn", "again_in", OPTIONAL_NUMBER, None),
    Field("within", "within", OPTIONAL_NUMBER, None),
    Field("outcomeUnknown", "outcome_unknown", FLAG, default=False),
    Field("effect", "effect", Kind(any_of(Effect), _read_effect), None),
    Field("callback", "callback", FLAG, default=False),
    Field("then", "then", STEPS_TO_ADD, ()),
    Field("leftOut", "left_out", OPTIONAL_TEXT, None),
    Field("end", "end", OPTIONAL_END, None),
)
"""All fields of a reply except `error`, which REPLY_ERROR describes."""
