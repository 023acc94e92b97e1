"""Cases: what the engine was asked and what it decided, as JSON that outlives the engine's types.

A task is written as its stored item, attribute by attribute, so that a case can be read as long as
the store reads old records. A plan is written as its text, and a case names it by its hash. All
else has the names of its type and of its fields.

The stored form loses the milliseconds of an expiry, which are kept beside it, and the rows of
settled steps, which only the store reads. It replaces lone surrogates in texts; and a test may make
a plan that differs from its text, or a task of a type of its own. A question that does not read
back equal is not kept.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import TypeAlias, cast

from roundsman.aws.dynamodb.codec import Item, plain_task_item, read_task
from roundsman.definition.plan import Plan, read_plan
from roundsman.engine import machine
from roundsman.engine.requests import request_for
from roundsman.model import corrections, events, queue_lag, scheduler_queues, task
from roundsman.model.events import Agents, Decision, Event, SendRequest
from roundsman.model.json import Json
from roundsman.model.scheduler_queues import NOTHING_KNOWN, SchedulerQueues
from roundsman.model.task import Task

Document: TypeAlias = dict[str, Json]
Plans: TypeAlias = dict[str, Plan]
"""Plans by their hash."""

TYPE = "$type"
TUPLE = "$tuple"
EXPIRES = "ExpiresAtMs"
TYPES: Mapping[str, type] = {
    name: kind
    for module in (corrections, events, queue_lag, scheduler_queues, task)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and (is_dataclass(kind) or issubclass(kind, StrEnum))
}
"""The types that a question or an answer may contain, by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The arguments of one call of `machine.decide`."""

    plan: Plan | None
    task: Task
    event: Event
    now: int
    order: Json = None
    agents: Agents = field(default_factory=dict)
    jitter: float = 0
    next_plan: Plan | None = None
    queues: SchedulerQueues = NOTHING_KNOWN

    def decide(self) -> Decision:
        """Ask the engine. Raises what it raises."""
        return machine.decide(**{one.name: getattr(self, one.name) for one in fields(self)})


def question_json(question: Question, plans: Plans) -> Document:
    """Return the question as JSON, and add its plans to `plans`."""
    found: Document = {}
    for name in (one.name for one in fields(question)):
        value = getattr(question, name)
        if value is None or value == NOTHING_KNOWN or (name == "agents" and not value):
            continue
        if isinstance(value, Plan):
            found[name] = _hash(value, plans)
        elif isinstance(value, Task):
            found[name] = task_json(value)
        else:
            found[name] = value if name == "order" else _plain(value)
    return found


def read_question(document: Document, plans: Plans) -> Question:
    """Return the question with this JSON."""
    found: dict[str, object] = {"plan": None}
    for name, value in document.items():
        if name in ("plan", "next_plan"):
            found[name] = plans[cast("str", value)]
        elif name == "task":
            found[name] = _read_task(cast("Document", value))
        else:
            found[name] = value if name == "order" else _read(value)
    return Question(**found)  # type: ignore[arg-type]  # as it was written


def records_of(task: Document) -> dict[str, Document]:
    """Return the records of the steps of a stored task, by name."""
    steps = cast("dict[str, dict[str, dict[str, Document]]]", task.get("Steps", {"M": {}}))["M"]
    return {name: step["M"] for name, step in steps.items()}


def with_records(task: Document, records: Mapping[str, Document]) -> Document:
    """Return the stored task with these records of its steps."""
    rest = {name: value for name, value in task.items() if name != "Steps"}
    steps: Json = {name: {"M": record} for name, record in records.items()}
    return {**rest, "Steps": {"M": steps}} if steps else rest


def event_name(asked: Document) -> str:
    """Return the kind of event of a question: `Start`, or `Replied: succeeded`."""
    event = cast("dict[str, dict[str, Json]]", asked["event"])
    name = str(event[TYPE])
    return f"{name}: {event['outcome']['value']}" if "outcome" in event else name


def answer_json(asked: Document, plans: Plans) -> Document:
    """Ask the engine, and return its decision as JSON, or the error that was raised."""
    try:
        question = read_question(asked, plans)
        return decision_json(question, question.decide())
    except Exception as error:  # noqa: BLE001 - whatever is raised may be a difference
        return _error_json(error)


def _error_json(error: Exception) -> Document:
    return {"raises": f"{type(error).__name__}: {error}"}


def decision_json(question: Question, decision: Decision) -> Document:
    """Return the decision as JSON: its task is null if nothing changed.

    `requests` are what the agents are sent, which follows from the record and not from the action.
    """
    sent = [one.step for one in decision.actions if isinstance(one, SendRequest)]
    return {
        "reason": decision.reason,
        "actions": [_plain(one) for one in decision.actions],
        "requests": [_request_json(question, decision.task, step) for step in sent],
        "history": [_plain(one) for one in decision.history],
        "task": None if decision.task is question.task else task_json(decision.task),
    }


def _request_json(question: Question, after: Task, step: str) -> Json:
    known = [plan for plan in (question.plan, question.next_plan) if plan is not None]
    plan = next((plan for plan in known if plan.hash == after.plan), known[0])
    try:
        return _plain(request_for(plan, after, step, question.order, question.now))
    except ValueError as error:  # the order is not known where no condition needs it
        return _error_json(error)


def task_json(task: Task) -> Document:
    """Return the stored item of the task, without its format, which follows from the rest."""
    item = cast("Document", plain_task_item(task))
    item.pop("Schema", None)
    item["Plan"] = {"S": task.plan}  # else it is bytes
    return item if task.expires_at is None else item | {EXPIRES: task.expires_at}


def _read_task(document: Document) -> Task:
    found = read_task(cast("Item", document))
    expires_at = cast("int | None", document.get(EXPIRES))
    return found if expires_at is None else replace(found, expires_at=expires_at)


def _hash(plan: Plan, plans: Plans) -> str:
    if plan.hash not in plans:
        plans[plan.hash] = read_plan(plan.text)
    return plan.hash


def _plain(value: object) -> Json:
    """Return the value as JSON: defaults are left out, and a tuple is told from a list."""
    match value:
        case StrEnum():
            return {TYPE: type(value).__name__, "value": value.value}
        case None | bool() | int() | float() | str():
            return value
        case tuple():
            return {TUPLE: [_plain(one) for one in value]}
        case Mapping():
            return {name: _plain(one) for name, one in value.items()}
        case list():
            return [_plain(one) for one in value]
        case _ if is_dataclass(value):
            found: Document = {TYPE: type(value).__name__}
            for one in fields(value):
                inner = getattr(value, one.name)
                if inner != one.default:
                    found[one.name] = _plain(inner)
            return found
        case _:
            raise TypeError(f"{value!r} cannot be written")


def _read(value: Json) -> object:
    if isinstance(value, list):
        return [_read(one) for one in value]
    if not isinstance(value, dict):
        return value
    if TUPLE in value:
        return tuple(_read(one) for one in value[TUPLE])
    found = {name: _read(one) for name, one in value.items() if name != TYPE}
    if TYPE not in value:
        return found
    return TYPES[value[TYPE]](**found)


def situation(record: Document) -> str:
    """Return the situation of a step: `Pending: parked`, or the state alone if it has ended."""
    state = cast("dict[str, str]", record["ProcessState"])["S"]
    if state == "Processing":
        return f"{state}: {'awaits callback' if 'Waiting' in record else 'at agent'}"
    if state not in ("Pending", "Undoing"):
        return state
    if state == "Undoing" and "LockedBy" in record:
        return f"{state}: at agent"
    if "NotBefore" in record:
        return f"{state}: {'parked' if 'HeldSince' in record else 'waits until'}"
    return f"{state}: {'ready' if 'CompleteBy' in record else 'not begun'}"
