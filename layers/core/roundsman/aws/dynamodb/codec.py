"""Converts records to DynamoDB items and back.

An absent attribute means its default, and defaults are not written: an item under 1 KB costs one
write unit. Instants are in epoch ms, except `ExpiresAt`: it is in epoch seconds, rounded up,
because DynamoDB's TTL requires seconds. Results are stored as JSON text, so that every number
stays exact. Attributes that this code does not know are ignored, and the next decision removes
them.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.events import HistoryRow
from roundsman.model.failure import failure_of
from roundsman.model.instants import SECOND
from roundsman.model.json import Json, canonical_json
from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import (
    SCHEMA,
    AfterUndo,
    Effect,
    Owed,
    StepError,
    StepRecord,
    Task,
    Termination,
)
from roundsman.ports import Member, OrderRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

Item: TypeAlias = "dict[str, Value]"

SHA256_HEX = re.compile("[0-9a-f]{64}")
NORMAL = "normal"

# JSON can contain these; UTF-8 cannot, and so neither can DynamoDB.
LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def text(value: str) -> "Value":
    """A string attribute; lone surrogates become the replacement character U+FFFD."""
    return {"S": LONE_SURROGATE.sub("\ufffd", value)}


def number(value: int) -> "Value":
    """A number attribute."""
    return {"N": str(value)}


def json_text(value: Json) -> "Value":
    """JSON as a string attribute that reads back equal; lone surrogates are escaped."""
    escaped = LONE_SURROGATE.sub(lambda m: f"\\u{ord(m[0]):04x}", canonical_json(value))
    return {"S": escaped}


def epoch_seconds(instant: int) -> int:
    """Epoch ms as whole epoch seconds, rounded up so that no item expires too early."""
    return -(-instant // SECOND)


def task_item(task: Task) -> Item:
    """The item of a task."""
    item: Item = {
        "TaskId": text(task.task_id),
        "State": text(task.state.value),
        "Version": number(task.version),
        "Workflow": text(task.workflow),
        "Plan": _plan(task.plan),
        "CreatedAt": number(task.created_at),
        "CompleteBy": number(task.complete_by),
        "Shard": number(task.shard),
        **due_attributes(task),
    }
    if task.steps:
        item["Steps"] = {"M": {name: {"M": _step(step)} for name, step in task.steps.items()}}
    if task.owed:
        item["Owed"] = owed_list(task.owed)
    if task.ending is not None:
        item["Ending"] = {"M": _ending(task.ending)}
    if task.start_at != task.created_at:
        item["StartAt"] = number(task.start_at)
    if task.retain_for:
        item["RetainFor"] = number(task.retain_for)
    if task.priority != NORMAL:
        item["Priority"] = text(task.priority)
    _put(item, "EndedAt", task.ended_at)
    _put(item, "Tenant", task.tenant)
    _put(item, "ReplyTo", task.reply_to)
    _put(item, "CorrelationId", task.correlation_id)
    if task.command_ids:
        item["CommandIds"] = {"L": [text(one) for one in task.command_ids]}
    if task.fan_outs:
        item["FanOuts"] = {"M": {name: number(count) for name, count in task.fan_outs.items()}}
    _put(item, "HeldUntil", task.held_until)
    item |= failure_attributes(task)
    return item


def failure_attributes(task: Task) -> Item:
    """The attributes of a failed task in the `failures` index; empty for any other task."""
    if task.failure is None:
        return {}
    return {
        "FailureGroup": text(failure_key(task.failure, task.shard)),
        "FailedAt": number(task.ended_at or 0),
    }


def failure_key(group: str, shard: int) -> str:
    """The hash key of one shard of a failure group in the `failures` index: `f-1a2b3c4d#7`."""
    return f"{group}#{shard}"


def due_attributes(task: Task) -> Item:
    """The attributes of a task in the `due` index, and `ExpiresAt` if the task expires."""
    item: Item = {"Lane": text(task.lane), "DueAt": number(task.due_at)}
    if task.expires_at is not None:
        item["ExpiresAt"] = number(epoch_seconds(task.expires_at))
    return item


def owed_list(owed: tuple[Owed, ...]) -> "Value":
    """The `Owed` attribute: the statuses and alerts that a task still owes."""
    return {"L": [{"M": _owed(one)} for one in owed]}


def _plan(plan: str) -> "Value":
    """The `Plan` attribute; a hash takes half the space as bytes."""
    return {"B": bytes.fromhex(plan)} if SHA256_HEX.fullmatch(plan) else text(plan)


def _put(item: Item, name: str, value: str | int | None) -> None:
    if isinstance(value, int):
        item[name] = number(value)
    elif value is not None:
        item[name] = text(value)


def _step(step: StepRecord) -> Item:
    """The map of a step.

    `FailureCount`, a field of the pattern, is written from the first claim on, even if it is 0.
    """
    item: Item = {"ProcessState": text(step.process_state.value)}
    _put(item, "LockedBy", step.locked_by)
    _put(item, "CompleteBy", step.complete_by)
    if step.failure_count or step.started_at is not None:
        item["FailureCount"] = number(step.failure_count)
    _put(item, "NotBefore", step.not_before)
    _put(item, "StartedAt", step.started_at)
    _put(item, "FinishedAt", step.finished_at)
    if step.result is not None:
        item["Result"] = json_text(step.result)
    if step.error is not None:
        item["Error"] = {"M": _error(step.error)}
    _put(item, "Agent", step.agent)
    if step.round != 1:
        item["Round"] = number(step.round)
    _put(item, "ActsUntil", step.acts_until)
    if step.outcome_unknown:
        item["OutcomeUnknown"] = {"BOOL": True}
    _put(item, "HeldSince", step.held_since)
    _put(item, "HeartbeatBy", step.heartbeat_by)
    _put(item, "HeardAt", step.heard_at)
    if step.waiting:
        item["Waiting"] = {"BOOL": True}
    if step.uncounted_timeouts:
        item["Spared"] = number(step.uncounted_timeouts)
    if step.breaker_rejections:
        item["InVain"] = number(step.breaker_rejections)
    if step.tried:
        item["Tried"] = {"L": [text(agent) for agent in step.tried]}
    _put(item, "AfterUndo", step.after_undo)
    _put(item, "Effect", step.effect)
    if step.extra:
        item["Extra"] = number(step.extra)
    if step.granted:
        item["Granted"] = number(step.granted)
    return item


def _owed(owed: Owed) -> Item:
    return {
        "Kind": text(owed.kind),
        "Name": text(owed.name),
        "Seq": number(owed.seq),
        "At": number(owed.at),
        "Detail": text(owed.detail),
    }


def _ending(ending: Termination) -> Item:
    item: Item = {"How": text(ending.how.value), "Why": text(ending.why)}
    _put(item, "Step", ending.step)
    if ending.undo:
        item["Undo"] = {"BOOL": True}
    if ending.error is not None:
        item["Error"] = {"M": _error(ending.error)}
    return item


def _error(error: StepError) -> Item:
    return {"Type": text(error.type), "Message": text(error.message)}


def read_task(item: "Mapping[str, Value]") -> Task:
    """The task stored in an item.

    Raises SchemaTooNew if newer code wrote the record, and UnreadableRecord, which names the field.
    """
    task_id = item.get("TaskId", {}).get("S", "?")
    reader = ItemReader(item, task_id)
    schema = reader.optional_number("Schema")
    if schema is not None and schema > SCHEMA:
        raise SchemaTooNew(f"{task_id} has the record format {schema}; this code reads {SCHEMA}")
    created_at = reader.number("CreatedAt")
    expires_at = reader.optional_number("ExpiresAt")
    ending = reader.optional_map("Ending")
    task = Task(
        task_id=reader.text("TaskId"),
        state=reader.one_of(TaskState, "State"),
        version=reader.number("Version"),
        workflow=reader.text("Workflow"),
        plan=reader.hash("Plan"),
        created_at=created_at,
        start_at=reader.number("StartAt", created_at),
        complete_by=reader.number("CompleteBy"),
        retain_for=reader.number("RetainFor", 0),
        shard=reader.number("Shard"),
        lane=reader.text("Lane"),
        due_at=reader.number("DueAt"),
        steps={name: _read_step(step) for name, step in reader.maps("Steps").items()},
        owed=tuple(_read_owed(owed) for owed in reader.list_of_maps("Owed")),
        ending=_read_ending(ending) if ending else None,
        ended_at=reader.optional_number("EndedAt"),
        expires_at=None if expires_at is None else expires_at * SECOND,
        priority=reader.text("Priority", NORMAL),
        tenant=reader.optional_text("Tenant"),
        reply_to=reader.optional_text("ReplyTo"),
        correlation_id=reader.optional_text("CorrelationId"),
        command_ids=reader.texts("CommandIds"),
        fan_outs=reader.numbers("FanOuts"),
        held_until=reader.optional_number("HeldUntil"),
    )
    return replace(task, failure=_read_failure(task, reader))


def _read_failure(task: Task, reader: ItemReader) -> str | None:
    """The failure group of an ended task; None for an open one.

    A record that could not be handled (`Trouble`) is stored in a group of such records, so the
    task's own group is derived from the task.
    """
    key = reader.optional_text("FailureGroup")
    if key is None or task.state not in END_STATES:
        return None
    if reader.number("Trouble", 0):
        own = failure_of(task)
        return own.group if own else None
    return key.partition("#")[0]


def _read_step(reader: ItemReader) -> StepRecord:
    return StepRecord(
        process_state=reader.one_of(ProcessState, "ProcessState"),
        locked_by=reader.optional_text("LockedBy"),
        complete_by=reader.optional_number("CompleteBy"),
        failure_count=reader.number("FailureCount", 0),
        not_before=reader.optional_number("NotBefore"),
        started_at=reader.optional_number("StartedAt"),
        finished_at=reader.optional_number("FinishedAt"),
        result=reader.json("Result", None),
        error=_read_error(reader),
        agent=reader.optional_text("Agent"),
        round=reader.number("Round", 1),
        acts_until=reader.optional_number("ActsUntil"),
        outcome_unknown=reader.flag("OutcomeUnknown"),
        held_since=reader.optional_number("HeldSince"),
        heartbeat_by=reader.optional_number("HeartbeatBy"),
        heard_at=reader.optional_number("HeardAt"),
        waiting=reader.flag("Waiting"),
        uncounted_timeouts=reader.number("Spared", 0),
        breaker_rejections=reader.number("InVain", 0),
        tried=reader.texts("Tried"),
        after_undo=_read_after_undo(reader),
        effect=_read_effect(reader),
        extra=reader.number("Extra", 0),
        granted=reader.number("Granted", 0),
    )


def _read_error(reader: ItemReader) -> StepError | None:
    error = reader.optional_map("Error")
    return StepError(error.text("Type"), error.text("Message")) if error else None


def _read_effect(reader: ItemReader) -> Effect | None:
    found = reader.optional_text("Effect")
    return None if found is None else reader.one_of(Effect, "Effect")


def _read_after_undo(reader: ItemReader) -> AfterUndo | None:
    found = reader.optional_text("AfterUndo")
    return None if found is None else reader.one_of(AfterUndo, "AfterUndo")


def _read_owed(reader: ItemReader) -> Owed:
    return Owed(
        kind=reader.text("Kind"),
        name=reader.text("Name"),
        seq=reader.number("Seq"),
        at=reader.number("At"),
        detail=reader.text("Detail"),
    )


def _read_ending(reader: ItemReader) -> Termination:
    how = reader.one_of(TaskState, "How")
    return Termination(
        how=how,
        why=reader.text("Why"),
        step=reader.optional_text("Step"),
        undo=reader.flag("Undo"),
        error=_read_error(reader),
    )


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
    return {
        "OrderID": text(order.order_id),
        "Content": json_text(order.content),
        "ContentHash": text(order.content_hash),
        "CreatedAt": number(order.created_at),
    }


def read_order(item: "Mapping[str, Value]") -> OrderRow:
    """The order stored in an item. Raises UnreadableRecord: it names the field, not its value."""
    reader = ItemReader(item, item.get("OrderID", {}).get("S", "?"))
    return OrderRow(
        order_id=reader.text("OrderID"),
        content=reader.json("Content"),
        content_hash=reader.text("ContentHash"),
        created_at=reader.number("CreatedAt"),
    )


def history_item(task_id: str, row: HistoryRow) -> Item:
    """The item of a row of a task's history."""
    item: Item = {
        "TaskId": text(task_id),
        "Seq": number(row.seq),
        "At": number(row.at),
        "Kind": text(row.kind),
        "Reason": text(row.reason),
    }
    _put(item, "Step", row.step)
    _put(item, "Attempt", row.attempt)
    _put(item, "By", row.by)
    _put(item, "CommandId", row.command_id)
    return item


def read_history(item: "Mapping[str, Value]") -> HistoryRow:
    """The history row stored in an item. Raises UnreadableRecord."""
    reader = ItemReader(item, item.get("TaskId", {}).get("S", "?"))
    return HistoryRow(
        seq=reader.number("Seq"),
        at=reader.number("At"),
        kind=reader.text("Kind"),
        step=reader.optional_text("Step"),
        attempt=reader.optional_number("Attempt"),
        reason=reader.text("Reason"),
        by=reader.optional_text("By"),
        command_id=reader.optional_text("CommandId"),
    )
