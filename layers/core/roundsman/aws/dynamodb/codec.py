"""Converts records to DynamoDB items and back.

An absent attribute means its default, and defaults are not written: an item under 1 KB costs one
write unit. Instants are in epoch ms, except `ExpiresAt`: it is in epoch seconds, rounded up,
because DynamoDB's TTL requires seconds. Results are stored as JSON text, so that every number
stays exact. Attributes that this code does not know are ignored, and the next decision removes
them.

So a field that an older version would remove has a record format (`since`), and a record with such
a field has that format at least: code that does not know it leaves the record alone. A new field of
a task gets the format SCHEMA, which is raised with the first new field after a release. All code
that reads the format must know the field.

A task above 1 KB has most of its attributes in a packed form (`roundsman.aws.dynamodb.packed`).

Each type of record has one table of its fields, by which it is read and written. The tables of the
rows of ControlTable are in the modules of their stores.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar, cast

from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.packed import NotPacked, is_larger, item_bytes, packed, unpacked
from roundsman.aws.dynamodb.stored_step import StoredSituation, step_record, stored_situation
from roundsman.engine.due import parked_for
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.corrections import Correction, changes_json
from roundsman.model.events import HistoryRow
from roundsman.model.failure import failure_of
from roundsman.model.field_table import Declared, Field, FieldTable, Kind, Stored, any_of, declared
from roundsman.model.instants import SECOND
from roundsman.model.json import Json, canonical_json
from roundsman.model.polling import Polling
from roundsman.model.retry_window import RetryWindow
from roundsman.model.situations import TURN
from roundsman.model.states import TaskState
from roundsman.model.task import (
    ADDED_SCHEMA,
    CLOSING_SCHEMA,
    LIMIT_SCHEMA,
    PACKED_SCHEMA,
    REJECTIONS_SCHEMA,
    SCHEMA,
    SIGNALS_SCHEMA,
    AddedStep,
    Closing,
    LeftOut,
    Owed,
    RowsBeside,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.ports import Member, OrderRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

Item: TypeAlias = "dict[str, Value]"
E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

SHA256_HEX = re.compile("[0-9a-f]{64}")
NORMAL = "normal"
WRITE_UNIT = 1024
"""DynamoDB bills each started KB of a write; in bytes."""
PACKED = (
    "Steps",
    "Ending",
    "CommandIds",
    "FanOuts",
    "Corrections",
    "UsedRounds",
    "Added",
    "Signals",
    "SignalsLeft",
)
"""The attributes of a task that are packed: they grow, and no condition or index needs them."""
INPUTS_IN_A_ROW = 20
"""How many inputs of added steps are in one row (`roundsman.aws.dynamodb.input_rows`): 1,000 of
them are in 50 rows, which one transaction can write beside the rows of settled steps and the
history; and one row never has more than 400 KB, because an input has at most 16 KB."""
WORTH_COMPARING = 64 * 1024
"""Up to this size in bytes, a packed task is stored without a look at its size if it were not."""

# JSON can contain these; UTF-8 cannot, and so neither can DynamoDB.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def text(value: str) -> "Value":
    """A string attribute; lone surrogates become the replacement character U+FFFD."""
    return {"S": value if value.isascii() else LONE_SURROGATE.sub("\ufffd", value)}


def number(value: int) -> "Value":
    """A number attribute."""
    return {"N": str(value)}


def json_text(value: Json) -> "Value":
    """JSON as a string attribute that reads back equal; lone surrogates are escaped."""
    found = canonical_json(value)
    if not found.isascii():
        found = LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", found)
    return {"S": found}


def epoch_seconds(instant: int) -> int:
    """Epoch ms as whole epoch seconds, rounded up so that no item expires too early."""
    return -(-instant // SECOND)


def expiry(instant: int) -> "Value":
    """The attribute `ExpiresAt`, by which DynamoDB removes an item; `instant` is epoch ms."""
    return number(epoch_seconds(instant))


TEXT: "Kind[ItemReader, Value, str]" = Kind("text", ItemReader.text, text)
NUMBER: "Kind[ItemReader, Value, int]" = Kind("whole number", ItemReader.number, number)
FLAG: "Kind[ItemReader, Value, bool]" = Kind(
    "true or false", ItemReader.flag, lambda value: {"BOOL": value}
)
JSON_TEXT: "Kind[ItemReader, Value, Json]" = Kind("JSON as text", ItemReader.json, json_text)
TEXTS: "Kind[ItemReader, Value, tuple[str, ...]]" = Kind(
    "list of texts", ItemReader.texts, lambda values: {"L": [text(one) for one in values]}
)
NUMBERS: "Kind[ItemReader, Value, Mapping[str, int]]" = Kind(
    "map of whole numbers",
    ItemReader.numbers,
    lambda values: {"M": {name: number(one) for name, one in values.items()}},
)
HASH: "Kind[ItemReader, Value, str]" = Kind(
    "SHA-256 as bytes",
    ItemReader.hash,
    lambda value: {"B": bytes.fromhex(value)} if SHA256_HEX.fullmatch(value) else text(value),
)
"""A hash takes half the space as bytes; any other text is stored as text."""
EXPIRY: "Kind[ItemReader, Value, int]" = Kind(
    "epoch seconds", lambda reader, name: reader.number(name) * SECOND, expiry
)


def enumeration(kind: type[E]) -> "Kind[ItemReader, Value, E]":
    """The kind of a text that is a value of this enumeration."""
    return Kind(
        any_of(kind),
        lambda reader, name: reader.one_of(kind, name),
        lambda value: text(str(value)),
    )


def map_of(table: "RecordTable[T]") -> "Kind[ItemReader, Value, T]":
    """The kind of a map with the fields of this table."""
    return Kind(
        "map",
        lambda reader, name: table.read(reader.map(name)),
        lambda value: {"M": table.written(value)},
    )


RecordTable: TypeAlias = "FieldTable[ItemReader, Value, T]"

_KINDS: dict[object, "Kind[ItemReader, Value, Any]"] = {
    int: NUMBER,
    str: TEXT,
    bool: FLAG,
    Json: JSON_TEXT,
    tuple[str, ...]: TEXTS,
}
"""How a declared field is stored, by its type. A StrEnum is stored as its value."""


def table_of(
    of: type, make: Callable[..., T], *, without: Collection[str] = ()
) -> "RecordTable[T]":
    """The table of the fields that a class declares (`roundsman.model.field_table.declared`)."""
    return FieldTable(make, *map(_field, declared(of, without=without)))


def _field(one: Declared) -> "Field[ItemReader, Value]":
    stored, default = one.stored, cast("Any", one.default)
    kind = _KINDS.get(one.type)
    if kind is None and isinstance(one.type, type) and issubclass(one.type, StrEnum):
        kind = enumeration(one.type)
    if kind is None:
        raise TypeError(f"{one.attribute}: no kind of attribute stores {one.type}")
    return Field(stored.name, one.attribute, kind, default, since=stored.since)


ERROR = table_of(StepError, StepError)
_KINDS[StepError] = map_of(ERROR)
ENDING = table_of(Termination, Termination)


def _ending(reader: ItemReader, name: str) -> Termination:
    found = ENDING.values(reader.map(name))
    try:
        return ENDING.make(**found)
    except ValueError as problem:
        reader.wrong(name, f"contradicts itself: {problem}")


ENDING_MAP: "Kind[ItemReader, Value, Termination]" = Kind(
    "map", _ending, lambda value: {"M": ENDING.written(value)}
)
CLOSING = table_of(Closing, Closing)
CLOSING_MAP: "Kind[ItemReader, Value, Closing]" = map_of(CLOSING)
OWED = table_of(Owed, Owed)
LEFT_OUT = table_of(LeftOut, LeftOut, without=("whole",))
_KINDS[LeftOut] = map_of(LEFT_OUT)
SITUATION = table_of(StoredSituation, StoredSituation)
RETRY_WINDOW = table_of(RetryWindow, RetryWindow)
POLLING = table_of(Polling, Polling)
LASTING = table_of(
    StepRecord, StepRecord, without=("operation", "situation", "retry_window", "polling")
)
STEP = (SITUATION, LASTING, RETRY_WINDOW, POLLING)
"""The tables of a step. All their fields are in one map."""
_POLLED = frozenset(field.name for field in POLLING.fields)


def _step_item(step: StepRecord) -> Item:
    """The map of a step.

    `FailureCount`, a field of the pattern, is written from the first claim on, even if it is 0.
    """
    item = {
        **SITUATION.written(stored_situation(step)),
        **LASTING.written(step),
        **RETRY_WINDOW.written(step.retry_window),
    }
    if step.polling is not None:
        item |= POLLING.written(step.polling)
    if step.started_at is not None and not step.failure_count:
        item["FailureCount"] = number(0)
    return item


def _read_step(reader: ItemReader) -> StepRecord:
    lasting: dict[str, Any] = {**LASTING.values(reader), "retry_window": RETRY_WINDOW.read(reader)}
    if all(name in reader.names for name in _POLLED):
        lasting["polling"] = POLLING.read(reader)
    return step_record(SITUATION.read(reader), lasting)


def _format_of_step(step: StepRecord) -> int:
    """The lowest record format that has everything of the step."""
    return max(
        SITUATION.since(stored_situation(step)),
        LASTING.since(step),
        RETRY_WINDOW.since(step.retry_window),
        1 if step.polling is None else POLLING.since(step.polling),
    )


def _steps(reader: ItemReader, name: str) -> Mapping[str, StepRecord]:
    return {step: _read_step(inner) for step, inner in reader.maps(name).items()}


def steps_map(steps: Mapping[str, StepRecord]) -> "Value":
    """The `Steps` attribute: the records of steps by name."""
    return {"M": {name: {"M": _step_item(step)} for name, step in steps.items()}}


STEPS: "Kind[ItemReader, Value, Mapping[str, StepRecord]]" = Kind("map of steps", _steps, steps_map)


def owed_list(owed: tuple[Owed, ...]) -> "Value":
    """The `Owed` attribute: the statuses, alerts and rejected messages that a task still owes."""
    return {"L": [{"M": OWED.written(one)} for one in owed]}


OWED_LIST: "Kind[ItemReader, Value, tuple[Owed, ...]]" = Kind(
    "list",
    lambda reader, name: tuple(OWED.read(each) for each in reader.list_of_maps(name)),
    owed_list,
)


@dataclass(frozen=True, slots=True)
class NamedAddedStep:
    """An added step as it is stored: in a list, which keeps the order, with its name."""

    name: str
    """The name of its record: its kind, and its own name in brackets."""
    adder: Annotated[str, Stored("By")]
    """The name of the step whose reply added it."""
    after: tuple[str, ...] = ()
    """The names of the further steps that it comes after."""
    digest: str = ""
    """Identifies the input that it was added with: 20 hexadecimal digits; empty once the task is
    erased."""
    place: int | None = None
    """Its number among all steps that were added to the task; None if that is its index here."""


ADDED_STEP = table_of(NamedAddedStep, NamedAddedStep)


def _added(reader: ItemReader, name: str) -> Mapping[str, AddedStep]:
    found = (ADDED_STEP.read(each) for each in reader.list_of_maps(name))
    return {
        one.name: AddedStep(
            one.adder, one.after, one.digest, index if one.place is None else one.place
        )
        for index, one in enumerate(found)
    }


def added_list(added: Mapping[str, AddedStep]) -> "Value":
    """The `Added` attribute: the steps that were added, in the order of adding."""
    steps = (
        NamedAddedStep(
            name, one.adder, one.after, one.digest, None if one.place == index else one.place
        )
        for index, (name, one) in enumerate(added.items())
    )
    return {"L": [{"M": ADDED_STEP.written(one)} for one in steps]}


ADDED: "Kind[ItemReader, Value, Mapping[str, AddedStep]]" = Kind("list", _added, added_list)
SIGNAL = table_of(UnreadSignal, UnreadSignal)
SIGNAL_MAP: "Kind[ItemReader, Value, UnreadSignal | None]" = Kind(
    "map",
    lambda reader, name: SIGNAL.read(reader.map(name)),
    lambda signal: {"M": {} if signal is None else SIGNAL.written(signal)},
)
SIGNALS: "Kind[ItemReader, Value, tuple[UnreadSignal, ...]]" = Kind(
    "list",
    lambda reader, name: tuple(SIGNAL.read(each) for each in reader.list_of_maps(name)),
    lambda found: {"L": [{"M": SIGNAL.written(one)} for one in found]},
)
CORRECTIONS: "Kind[ItemReader, Value, tuple[Correction, ...]]" = Kind(
    "JSON as text",
    ItemReader.corrections,
    lambda found: json_text([changes_json(one) for one in found]),
)
DUE: "RecordTable[Task]" = FieldTable(
    Task,
    Field("Lane", "lane", TEXT),
    Field("DueAt", "due_at", NUMBER),
    Field("ExpiresAt", "expires_at", EXPIRY, None),
)
"""The fields of a task that change when its due entry does."""
TASK: "RecordTable[Task]" = FieldTable(
    Task,
    Field("TaskId", "task_id", TEXT),
    Field("State", "state", enumeration(TaskState)),
    Field("Version", "version", NUMBER),
    Field("Workflow", "workflow", TEXT),
    Field("Plan", "plan", HASH),
    Field("CreatedAt", "created_at", NUMBER),
    Field("StartAt", "start_at", NUMBER, None),  # absent if it equals CreatedAt
    Field("CompleteBy", "complete_by", NUMBER),
    Field("RetainFor", "retain_for", NUMBER, 0),
    Field("Shard", "shard", NUMBER),
    *DUE.fields,
    Field("Steps", "steps", STEPS, {}),
    Field("Owed", "owed", OWED_LIST, ()),
    Field("Ending", "ending", ENDING_MAP, None),
    Field("EndedAt", "ended_at", NUMBER, None),
    Field("Priority", "priority", TEXT, NORMAL),
    Field("Tenant", "tenant", TEXT, None),
    Field("ReplyTo", "reply_to", TEXT, None),
    Field("CorrelationId", "correlation_id", TEXT, None),
    Field("CommandIds", "command_ids", TEXTS, ()),
    Field("FanOuts", "fan_outs", NUMBERS, {}),
    Field("Added", "added", ADDED, {}, since=ADDED_SCHEMA),
    Field("Signals", "signals", SIGNALS, (), since=SIGNALS_SCHEMA),
    Field("SignalsLeft", "signals_left", TEXTS, (), since=REJECTIONS_SCHEMA),
    Field("HeldUntil", "credited_until", NUMBER, None),
    Field("Corrections", "corrections", CORRECTIONS, (), since=2),
    Field("UsedRounds", "used_rounds", NUMBERS, {}, since=3),
    Field("OrderExpires", "order_expires", FLAG, default=False, since=5),
    Field("ErasedAt", "erased_at", NUMBER, None, since=3),
    Field("ErasedBy", "erased_by", TEXT, None, since=3),
    Field("Deadline", "deadline", NUMBER, None, since=6),
    Field("Limit", "limit", TEXT, None, since=LIMIT_SCHEMA),
    Field("HasTurn", "has_turn", FLAG, default=False, since=LIMIT_SCHEMA),
    Field("Turns", "turns", NUMBER, 0, since=LIMIT_SCHEMA),
    Field("Closing", "closing", CLOSING_MAP, None, since=CLOSING_SCHEMA),
    Field("EndedEarly", "ended_early", TEXT, None, since=CLOSING_SCHEMA),
)
"""All fields of a task except `failure`, which the `failures` index holds."""
ORDER: "RecordTable[OrderRow]" = FieldTable(
    OrderRow,
    Field("OrderID", "order_id", TEXT),
    Field("Content", "content", JSON_TEXT),
    Field("ContentHash", "content_hash", TEXT),
    Field("CreatedAt", "created_at", NUMBER),
    Field("ExpiresAt", "expires_at", EXPIRY, None),
    Field("ErasedAt", "erased_at", NUMBER, None),
)
SEARCH_ATTRIBUTES = ("Search1", "Search2", "Search3")
"""The attributes of an order's search keys. Which key is in which of them has no meaning."""
HISTORY: "RecordTable[HistoryRow]" = FieldTable(
    HistoryRow,
    Field("Seq", "seq", NUMBER),
    Field("At", "at", NUMBER),
    Field("Kind", "kind", TEXT),
    Field("Reason", "reason", TEXT),
    Field("Step", "step", TEXT, None),
    Field("Attempt", "attempt", NUMBER, None),
    Field("By", "by", TEXT, None),
    Field("CommandId", "command_id", TEXT, None),
    Field("Sender", "sender", TEXT, None),
    Field("Signal", "signal", SIGNAL_MAP, None),
)


def task_item(task: Task) -> Item:
    """The item of a task: packed if it would have more than 1 KB, and smaller then."""
    item = plain_task_item(task)
    if not is_larger(item, WRITE_UNIT):
        return item
    found = {name: item[name] for name in item if name not in PACKED}
    found["Schema"] = number(schema_of(task, PACKED_SCHEMA))
    found["Packed"] = {"B": packed({name: item[name] for name in PACKED if name in item})}
    # Text that cannot be compressed may be larger as JSON: the limits are those of plain items.
    if is_larger(found, WORTH_COMPARING) and is_larger(found, item_bytes(item)):
        return item
    return found


def plain_task_item(task: Task) -> Item:
    """The item of a task with each attribute of its own."""
    item = TASK.written(task)
    if task.start_at == task.created_at:
        del item["StartAt"]
    schema = schema_of(task)
    if schema > 1:
        item["Schema"] = number(schema)
    item |= failure_attributes(task)
    item |= parked_attributes(task)
    item |= outcome_attribute(task)
    item |= rows_attributes(task)
    return item | left_out_attribute(task)


def schema_of(task: Task, form: int = 1) -> int:
    """The lowest record format that has everything of the task; `form` is that of its item."""
    steps = task.steps.values()
    endings = [] if task.ending is None else [task.ending]
    errors = [*(one.error for one in endings), *(one.error for one in steps)]
    return max(
        form,
        TASK.since(task),
        *map(OWED.since, task.owed),
        *map(ENDING.since, endings),
        *map(_format_of_step, steps),
        *(ERROR.since(error) for error in errors if error is not None),
    )


def failure_attributes(task: Task) -> Item:
    """The attributes of a task in the `failures` index; empty if it is in no failure group."""
    if task.failure is None:
        return {}
    return {
        "FailureGroup": text(failure_key(task.failure, task.shard)),
        "FailedAt": number(task.failed_at or 0),
    }


def parked_attributes(task: Task) -> Item:
    """The attributes of a task in the `parked` index; empty if none of its steps is parked.

    They follow from the steps, so code that does not know them may remove them.
    """
    found = parked_for(task)
    if found is None:
        return {}
    key = parked_key(found.target, task.priority, task.shard)
    if task.limit is not None and found.target == TURN:
        key = turn_lane(task.limit)
    return {
        "ParkedFor": text(key),
        "ParkedSince": number(found.since),
    }


def left_out_attribute(task: Task) -> Item:
    """The number of items that the task has left out, for counts of tasks; empty if none.

    It follows from the steps, so code that does not know it may remove it.
    """
    count = len(task.left_out())
    return {"LeftOut": number(count)} if count else {}


def rows_attributes(task: Task) -> Item:
    """The number of rows with inputs of added steps, and with results; empty if there are none.

    They follow from the steps, so code that does not know them may remove them.
    """
    counts = {"Inputs": rows_of(task), "Results": result_rows_of(task)}
    return {name: number(count) for name, count in counts.items() if count}


def rows_of(task: Task) -> int:
    """How many rows the inputs of the task's added steps take; 0 if they were erased."""
    return 0 if task.erased_at is not None else -(-len(task.added) // INPUTS_IN_A_ROW)


def result_rows_of(task: Task) -> int:
    """How many rows have results of the task that were left out of its record."""
    kept = [one.left_out for one in task.steps.values() if one.left_out is not None]
    return 1 + max((one.row for one in kept if one.row is not None), default=-1)


def outcome_attribute(task: Task) -> Item:
    """The attribute of a task in the `due` index that states how it ended.

    Empty until the task leaves its open lane, so that the attribute costs no write of the index. It
    follows from the state, so code that does not know it may remove it.
    """
    return {"Outcome": text(task.state.value)} if task.ended and not task.owed else {}


def failure_key(group: str, shard: int) -> str:
    """The hash key of one shard of a failure group in the `failures` index: `f-1a2b3c4d#7`."""
    return f"{group}#{shard}"


def parked_key(target: str, priority: str, shard: int) -> str:
    """The hash key of one shard of what is parked for a target: `payment#urgent#7`."""
    return f"{target}#{priority}#{shard}"


def turn_lane(limit: str) -> str:
    """The hash key of all that waits for a turn under one key of a limit: first come, first served,
    whatever the priority."""
    return f"{TURN}{limit}"


def due_attributes(task: Task) -> Item:
    """The attributes of a task that change with its entry in the `due` index.

    With `ExpiresAt` if the task expires.
    """
    return DUE.written(task) | outcome_attribute(task)


def read_task(item: "Mapping[str, Value]", beside: Mapping[str, StepRecord] | None = None) -> Task:
    """The task stored in an item. `beside` has the steps that are in rows of their own.

    Raises SchemaTooNew if newer code wrote the record, and UnreadableRecord, which names the field;
    also if the item lists rows and `beside` is None (`settled.read_divided` reads rows).
    """
    refuse_newer(item)
    task_id = item.get("TaskId", {}).get("S", "?")
    reader = ItemReader(item, task_id)
    if "Packed" in item:
        reader = ItemReader(unpacked_item(item), task_id)
    elif reader.optional_number("Schema") == PACKED_SCHEMA:
        raise UnreadableRecord(task_id, "Packed", "is missing")  # else its steps would begin again
    if "Settled" in item and beside is None:
        raise UnreadableRecord(task_id, "Settled", "lists rows that were not read")
    values = TASK.values(reader)
    if beside:
        values["steps"] = {**beside, **cast("Mapping[str, StepRecord]", values["steps"])}
    if values["start_at"] is None:
        values["start_at"] = values["created_at"]
    task = TASK.make(**values)
    if "Inputs" in item:
        rows = RowsBeside(reader.number("Inputs"), task.expires_at)
        task = replace(task, input_rows=rows)
    if count := result_rows_of(task):
        task = replace(task, result_rows=RowsBeside(count, task.expires_at))
    failure = _read_failure(task, reader)
    return task if failure is None else replace(task, failure=failure)


def refuse_newer(item: "Mapping[str, Value]") -> None:
    """Raise SchemaTooNew if newer code wrote the record of a task."""
    task_id = item.get("TaskId", {}).get("S", "?")
    schema = ItemReader(item, task_id).optional_number("Schema")
    if schema is not None and schema > SCHEMA:
        raise SchemaTooNew(f"{task_id} has the record format {schema}; this code reads {SCHEMA}")


def unpacked_item(item: "Mapping[str, Value]") -> Item:
    """The item of a task with each packed attribute on its own. Raises UnreadableRecord."""
    if "Packed" not in item:
        return dict(item)
    task_id = item.get("TaskId", {}).get("S", "?")
    found = item["Packed"].get("B")
    if not isinstance(found, bytes):
        raise UnreadableRecord(task_id, "Packed", "is not bytes")
    try:
        inner = unpacked(found)
    except NotPacked as problem:
        raise UnreadableRecord(task_id, "Packed", str(problem)) from problem
    outer = {name: value for name, value in item.items() if name != "Packed"}
    return {**outer, **{name: inner[name] for name in PACKED if name in inner}}


def _read_failure(task: Task, reader: ItemReader) -> str | None:
    """The failure group of the task; None if it is in none.

    A record that could not be handled (`Trouble`) is stored in a group of such records, so the
    task's own group is derived from the task.
    """
    key = reader.optional_text("FailureGroup")
    if key is None:
        return None
    if reader.number("Trouble", 0):
        own = failure_of(task)
        return own.group if own else None
    return key.partition("#")[0]


def read_member(item: "Mapping[str, Value]") -> Member:
    """A task in a failure group, from its entry in the `failures` index.

    A record that cannot be handled may contain anything: a `CompleteBy` or `ExpiresAt` that is not
    a whole number counts as absent.
    """
    reader = ItemReader(item, item.get("TaskId", {}).get("S", "?"))
    expires_at = _instant_or_none(reader, "ExpiresAt")
    return Member(
        task_id=reader.text("TaskId"),
        failed_at=reader.number("FailedAt"),
        complete_by=_instant_or_none(reader, "CompleteBy") or 0,
        expires_at=None if expires_at is None else expires_at * SECOND,
    )


def _instant_or_none(reader: ItemReader, name: str) -> int | None:
    try:
        return reader.optional_number(name)
    except UnreadableRecord:
        return None


def order_item(order: OrderRow) -> Item:
    """The item of an order."""
    return {**ORDER.written(order), **search_attributes(order.search)}


def search_attributes(keys: Iterable[str]) -> Item:
    """The attributes of an order's search keys; each is the key of an index."""
    return {name: text(key) for name, key in zip(SEARCH_ATTRIBUTES, keys, strict=False)}


def read_order(item: "Mapping[str, Value]") -> OrderRow:
    """The order stored in an item. Raises UnreadableRecord: it names the field, not its value."""
    reader = ItemReader(item, item.get("OrderID", {}).get("S", "?"))
    order = ORDER.read(reader)
    search = tuple(reader.text(name) for name in SEARCH_ATTRIBUTES if name in item)
    return replace(order, search=search) if search else order


def history_item(task_id: str, row: HistoryRow) -> Item:
    """The item of a row of a task's history."""
    return {"TaskId": text(task_id), **HISTORY.written(row)}


def read_history(item: "Mapping[str, Value]") -> HistoryRow:
    """The history row stored in an item. Raises UnreadableRecord."""
    return HISTORY.read(ItemReader(item, item.get("TaskId", {}).get("S", "?")))
