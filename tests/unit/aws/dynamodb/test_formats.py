"""Every record keeps its attributes, and every fault in one its exact problem.

`recorded_records.json` has what was written and reported when it was recorded; see
`tests.support.formats`. A difference is a change of the contract with what is stored.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest

from roundsman.aws.dynamodb import codec
from roundsman.aws.dynamodb.codec import (
    Item,
    due_attributes,
    failure_attributes,
    history_item,
    order_item,
    owed_list,
    plain_task_item,
    read_history,
    read_member,
    read_order,
    read_task,
    task_item,
)
from roundsman.aws.dynamodb.control import (
    LEASE,
    MARK,
    DynamoAgentBoard,
    DynamoLeases,
    DynamoReadNotes,
)
from roundsman.aws.dynamodb.groups import GROUP as GROUP_FIELDS
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.aws.dynamodb.holds import HOLD, DynamoHolds
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.stored_step import StoredSituation
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.corrections import Change
from roundsman.model.events import HistoryRow
from roundsman.model.failure import Group
from roundsman.model.field_table import FieldTable
from roundsman.model.holds import Hold
from roundsman.model.json import Json
from roundsman.model.leases import Lease, Leases
from roundsman.model.polling import Polling
from roundsman.model.queue_lag import ReadMark
from roundsman.model.retry_window import RetryWindow
from roundsman.model.situations import Asleep, AwaitsSignal, End, Ended
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    SCHEMA,
    AddedStep,
    AfterUndo,
    Closing,
    Effect,
    Owed,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)
from roundsman.ports import OrderRow
from tests.contract.samples import LOCK, NOW, PLAN, born
from tests.support.formats import ABSENT, Document, at, compare, faults
from tests.support.steps import changed_step, step_record

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

RECORDED = Path(__file__).with_name("recorded_records.json")
VALUES: list[Json] = [
    {"S": "x"},
    {"S": ""},
    {"N": "7"},
    {"N": "1.5"},
    {"B": "0a0b"},
    {"BOOL": True},
    {"NULL": True},
    {"L": []},
    {"L": [{"S": "x"}]},
    {"M": {}},
    {"M": {"x": {"N": "1"}}},
]
BAD = [ABSENT, *VALUES]

STEP = step_record(
    process_state=ProcessState.PROCESSING,
    locked_by=LOCK,
    complete_by=NOW,
    failure_count=2,
    started_at=NOW + 2,
    finished_at=NOW + 3,
    result={"b": 1, "a": ["\ud83d", 1.0]},
    error=StepError("Odd", "said \ud83d"),
    agent="backup",
    round=2,
    acts_until=NOW + 4,
    outcome_unknown=True,
    heard_at=NOW + 7,
    waiting=True,
    uncounted_timeouts=3,
    uncounted_calls=4,
    tried=("worker", "other"),
    after_undo=AfterUndo.NEXT_AGENT,
    effect=Effect.STANDS,
    extra=5,
    granted=6,
    corrections=2,
)
TASK = Task(
    task_id="ord-1",
    workflow="story",
    plan=PLAN.hash,
    state=TaskState.ARCHIVED,
    version=9,
    created_at=NOW,
    start_at=NOW + 10,
    complete_by=NOW + 20,
    retain_for=30,
    shard=7,
    lane="archived#7",
    due_at=NOW + 40,
    steps={
        "a": STEP,
        "b": StepRecord(),
        "beats": changed_step(STEP, waiting=False, heartbeat_by=NOW + 6),
        "polled": step_record(
            complete_by=NOW,
            not_before=NOW + 1,
            started_at=NOW,
            polls=7,
            polled_since=NOW - 9,
            poll_until=NOW + 8,
        ),
        "asleep": StepRecord(situation=Asleep(until=NOW + 9, since=NOW - 9)),
        "parked": step_record(complete_by=NOW, not_before=NOW + 1, held_since=NOW + 5),
        "pick[3]": step_record(started_at=NOW),
        "ended": step_record(process_state=ProcessState.ERROR, complete_by=NOW, started_at=NOW),
    },
    owed=(Owed("status", "failed", 9, NOW, ""), Owed("alert", "task_archived", 9, NOW, "why")),
    ending=Termination(TaskState.ARCHIVED, "why", "a", undo=True, error=StepError("Odd", "")),
    ended_at=NOW + 50,
    expires_at=NOW // 1000 * 1000 + 60_001,
    priority="urgent",
    tenant="shop-1",
    reply_to="url",
    correlation_id="web-7",
    command_ids=("c-1", "c-2"),
    fan_outs={"pick": 4, "pack": 0},
    credited_until=NOW + 60,
    corrections=((Change(("lines", 0, "sku"), "x"), Change(("note",), removed=True)),),
    used_rounds={"gone": 2},
    order_expires=True,
    failure="f-1a2b3c4d",
)
ERASED_TASK = replace(
    TASK, owed=(), corrections=(), erased_at=NOW + 70, erased_by="ann: request 17"
)
TASK_WITH_ADDED_STEPS = replace(
    born(),
    steps={"leg[a]": StepRecord()},
    added={
        "leg[a]": AddedStep("find", digest="0123456789abcdef0123"),
        "leg[b]": AddedStep("leg[a]", ("find", "pick[3]"), "3210fedcba9876543210", 1),
        "leg[c]": AddedStep("find", digest="0123456789abcdef3210", place=7),
    },
)
TASK_WITH_SIGNALS = replace(
    born(),
    steps={
        "paid": StepRecord(situation=Ended(how=End.SUCCEEDED), signal="pay-7", result=7),
        "shipped": StepRecord(situation=AwaitsSignal(until=NOW + 9, since=NOW - 9)),
    },
    signals=(
        UnreadSignal("pay-8", "paid", NOW + 1, {"b": 1, "a": "\ud83d"}),
        UnreadSignal("pay-9", "paid", NOW + 2),
    ),
)
TASK_WITH_SIGNALS_LEFT = replace(
    born(),
    signals_left=("pay-8",),
    owed=(Owed("rejection", "paid", 9, NOW, "the task is Cancelled", signal="pay-8"),),
)
TASK_WITH_DEADLINE = replace(born(), deadline=NOW + 80)
PARTLY_UNDONE_TASK = replace(
    born(),
    state=TaskState.COMPLETED,
    ending=Termination(TaskState.COMPLETED, "why", undo=True, part=("a", "pick[3]")),
)
CLOSED_TASK = replace(
    born(),
    state=TaskState.UNDONE,
    ending=Termination(TaskState.UNDONE, "why", undo=True),
    closing=Closing(TaskState.UNDONE, NOW + 90, ("notify", "log")),
    ended_early="ended early by ask: not wanted",
)
GROUP = Group(
    id="f-1a2b3c4d",
    workflow="story",
    step="a",
    how="archived",
    error_type="Odd",
    message="said *",
    opened_by="ord-1",
    opened_at=NOW,
    since=NOW - 1,
    agent="worker",
    version=3,
    alerting_until=NOW + 1,
    alerted_at=NOW + 2,
    alerted_count=4,
    count=5,
    more=True,
    last_at=NOW + 3,
    looked_at=NOW + 4,
    changed_at=NOW + 5,
    look_at=NOW + 6,
    clear_since=NOW + 7,
    closed_at=NOW + 8,
    overflow=True,
)
NEW_GROUP = Group(
    id="f-1a2b3c4d",
    workflow="story",
    step="",
    how="undone",
    error_type="",
    message="",
    opened_by="",
    opened_at=NOW,
    since=0,
    count=0,
)


class Row:
    """Stands for a DynamoDB client: keeps what is written, and returns `stored`."""

    def __init__(self, stored: "Item | None" = None) -> None:
        self.stored = stored or {}
        self.written: Item = {}

    def update_item(self, **call: Item) -> Mapping[str, Item]:
        self.written = call["ExpressionAttributeValues"]
        return {}

    def put_item(self, **call: Item) -> Mapping[str, Item]:
        self.written = call["Item"]
        return {}

    def get_item(self, **_: object) -> Mapping[str, Item]:
        return {"Item": self.stored}

    @property
    def client(self) -> "DynamoDBClient":
        return cast("DynamoDBClient", self)


def clock() -> int:
    return NOW


def raises(problem: UnreadableRecord) -> None:
    raise problem


def stored_hold(hold: Hold) -> Item:
    row = Row()
    DynamoHolds(row.client, control_table="c", clock=clock).hold(hold)
    return {"payment/operator": row.written[":hold"]}


def hold_again(item: Item) -> Item:
    row = Row(item)
    store = DynamoHolds(row.client, control_table="c", clock=clock, on_unreadable=raises)
    return {name: one for hold in store.stored() for name, one in stored_hold(hold).items()}


def stored_group(group: Group) -> Item:
    row = Row()
    DynamoGroups(row.client, control_table="c").open(group)
    return {group.id: row.written[":group"]}


def group_again(item: Item) -> Item:
    row = Row(item)
    groups = DynamoGroups(row.client, control_table="c", on_unreadable=raises).groups()
    return {name: one for group in groups for name, one in stored_group(group).items()}


def stored_mark() -> Item:
    row = Row()
    notes = DynamoReadNotes(row.client, control_table="c", clock=clock)
    notes.note_read("payment", "normal", NOW - 9, LOCK)
    return {"payment/normal": row.written[":mark"]}


def mark_again(item: Item) -> Item:
    """Write the view that follows from the mark, because only an agent writes marks."""

    class Marks(Row):
        def get_item(self, **call: object) -> Mapping[str, Item]:
            return {"Item": item} if call["Key"] == {"ControlId": {"S": "marks"}} else {}

    board = DynamoAgentBoard(Marks().client, control_table="c", clock=clock, on_unreadable=raises)
    return {"ControlId": {"S": str(board.agents())}}


def stored_leases(leases: Leases) -> Item:
    row = Row()
    DynamoLeases(row.client, control_table="c").write(leases, seen=0)
    return row.written


def leases_again(item: Item) -> Item:
    row = Row(item)
    return stored_leases(DynamoLeases(row.client, control_table="c", on_unreadable=raises).read())


@dataclass(frozen=True)
class Format:
    """A record as written, and the function that reads it and writes it again."""

    item: Item
    again: Callable[[Item], Item]


def task_again(item: Item) -> Item:
    return plain_task_item(read_task(item))


def order_again(item: Item) -> Item:
    return order_item(read_order(item))


def history_again(item: Item) -> Item:
    return history_item("ord-1", read_history(item))


def member_again(item: Item) -> Item:
    return {"ControlId": {"S": str(read_member(item))}}


ROW = HistoryRow(2_000, NOW, "cancel", "a", 2, "why", "ann", "c-1", "AROAEXAMPLE:ann")
LEASES = Leases(4, 16, {0: Lease("a", NOW, NOW - 1), 3: Lease(visited_at=NOW), 5: Lease("b", NOW)})
MEMBER: Item = {
    "TaskId": {"S": "ord-1"},
    "FailedAt": {"N": "1"},
    "CompleteBy": {"N": "2"},
    "ExpiresAt": {"N": "3"},
}
RECORDS = {
    "task": Format(plain_task_item(TASK), task_again),
    "new task": Format(task_item(born()), task_again),
    "task with a deadline": Format(task_item(TASK_WITH_DEADLINE), task_again),
    "partly undone task": Format(task_item(PARTLY_UNDONE_TASK), task_again),
    "task with closing steps": Format(task_item(CLOSED_TASK), task_again),
    "task with added steps": Format(plain_task_item(TASK_WITH_ADDED_STEPS), task_again),
    "task with signals": Format(plain_task_item(TASK_WITH_SIGNALS), task_again),
    "task with signals that have left": Format(plain_task_item(TASK_WITH_SIGNALS_LEFT), task_again),
    "erased task": Format(plain_task_item(ERASED_TASK), task_again),
    "order": Format(
        order_item(OrderRow("ord-1", {"b": 1, "a": "\ud83d"}, "hash", NOW)), order_again
    ),
    "erased order": Format(
        order_item(OrderRow("ord-1", None, "hash", NOW, erased_at=NOW + 70)), order_again
    ),
    "history row": Format(history_item("ord-1", ROW), history_again),
    "history row of a signal": Format(
        history_item(
            "ord-1",
            HistoryRow(
                1,
                NOW,
                "signal unread",
                None,
                None,
                "has ended no step",
                signal=UnreadSignal("pay-8", "paid", NOW, {"b": 1}),
            ),
        ),
        history_again,
    ),
    "short history row": Format(
        history_item("ord-1", HistoryRow(1, NOW, "failed", None, None, "late")), history_again
    ),
    "hold": Format(
        stored_hold(Hold("payment", "operator", NOW, NOW + 1, "why", "ann")), hold_again
    ),
    "group": Format(stored_group(GROUP), group_again),
    "new group": Format(stored_group(NEW_GROUP), group_again),
    "leases": Format(stored_leases(LEASES), leases_again),
    "no leases": Format(stored_leases(Leases(1)), leases_again),
}
WITH_FAULTS = [
    "task",
    "task with added steps",
    "partly undone task",
    "task with closing steps",
    "erased task",
    "order",
    "erased order",
    "history row",
    "hold",
    "group",
    "leases",
]
READ_ONLY = {
    "mark": Format(stored_mark(), mark_again),
    "member of a failure group": Format(MEMBER, member_again),
}
"""These are written elsewhere; what is read of them is recorded."""


def json_of(value: object) -> Json:
    """The item as JSON: bytes become hexadecimal digits."""
    text = json.dumps(value, default=bytes.hex)
    found: Json = json.loads(text)
    return found


def item_of(value: Json) -> Item:
    def typed(found: dict[str, str]) -> object:
        text = found.get("B")
        return {"B": bytes.fromhex(text)} if isinstance(text, str) else found

    item: Item = json.loads(json.dumps(value), object_hook=typed)
    return item


def report_of(again: Callable[[Item], Item]) -> Callable[[Document], Json]:
    def report(document: Document) -> Json:
        try:
            return json_of(again(item_of(document)))
        except (UnreadableRecord, SchemaTooNew) as problem:
            return [str(problem)]

    return report


def attributes(item: Mapping[str, Json], path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """The paths of all attributes in an item, also of those in its maps and lists."""
    found: list[tuple[str, ...]] = []
    for name, value in item.items():
        here = (*path, name)
        found.append(here)
        inner = value if isinstance(value, Mapping) else {}
        if isinstance(map_ := inner.get("M"), Mapping):
            found += attributes(map_, (*here, "M"))
        if isinstance(list_ := inner.get("L"), list):
            elements = {str(place): each for place, each in enumerate(list_)}
            found += attributes(elements, (*here, "L"))
    return found


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_keeps_its_attributes_and_is_written_again_as_it_was_read(name: str) -> None:
    record = RECORDS[name]
    item = json_of(record.item)
    assert isinstance(item, dict)
    compare(RECORDED, name, item)
    assert record.again(record.item) == record.item


@pytest.mark.parametrize("name", WITH_FAULTS)
def test_a_fault_in_a_record_keeps_its_problem(name: str) -> None:
    item = json_of(RECORDS[name].item)
    assert isinstance(item, dict)
    found = faults(item, attributes(item), BAD, report_of(RECORDS[name].again))
    compare(RECORDED, f"{name}: faults", found)


@pytest.mark.parametrize("name", READ_ONLY)
def test_a_fault_in_a_record_that_is_only_read_keeps_its_problem(name: str) -> None:
    record = READ_ONLY[name]
    item = json_of(record.item)
    assert isinstance(item, dict)

    def report(document: Document) -> Json:
        problems = report_of(record.again)(document)
        return problems if isinstance(problems, list) else [at(problems, ("ControlId", "S"))]

    found = faults(item, attributes(item), BAD, report)
    compare(RECORDED, f"{name}: faults", {"item": item, **found})


def test_attributes_that_only_the_reader_knows_keep_their_meaning() -> None:
    found: dict[str, Json] = {}
    for name in ("Schema", "Trouble"):
        for value in [*VALUES, *({"N": str(schema)} for schema in range(SCHEMA + 2))]:
            problems = report_of(task_again)({**RECORDS_AS_JSON["task"], name: value})
            found[f"{name} {json.dumps(value)}"] = (
                "unchanged" if problems == RECORDS_AS_JSON["task"] else problems
            )
    compare(RECORDED, "only read", found)


RECORDS_AS_JSON = {"task": cast("dict[str, Json]", json_of(RECORDS["task"].item))}


def test_what_is_written_without_the_record_is_what_the_record_has() -> None:
    whole = plain_task_item(TASK)
    parts = {**due_attributes(TASK), **failure_attributes(TASK), "Owed": owed_list(TASK.owed)}
    assert parts == {name: whole[name] for name in parts}
    assert set(parts) == {"Lane", "DueAt", "ExpiresAt", "FailureGroup", "FailedAt", "Owed"}
    closed = replace(TASK, owed=())
    assert due_attributes(closed)["Outcome"] == plain_task_item(closed)["Outcome"]
    open_task = replace(TASK, expires_at=None, failure=None)
    assert set(due_attributes(open_task)) == {"Lane", "DueAt"}
    assert failure_attributes(open_task) == {}


ELSEWHERE = {
    # Their values are in the map of the step as well, by tables of their own.
    StepRecord: {"operation", "situation", "retry_window", "polling"},
    # In the index `failures`, and in rows beside the record.
    Task: {"failure", "settled", "input_rows", "result_rows"},
    OrderRow: {"search"},  # one attribute for each key, which an index has
    Hold: {"agent", "workflow", "kind", "unreadable"},  # in the attribute's name, and never stored
    Group: {"id"},  # in the attribute's name
}
"""The attributes of a type that are not in its table."""


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        (codec.TASK, Task),
        (codec.SITUATION, StoredSituation),
        (codec.LASTING, StepRecord),
        (codec.RETRY_WINDOW, RetryWindow),
        (codec.POLLING, Polling),
        (codec.ERROR, StepError),
        (codec.ENDING, Termination),
        (codec.OWED, Owed),
        (codec.ORDER, OrderRow),
        (codec.HISTORY, HistoryRow),
        (HOLD, Hold),
        (GROUP_FIELDS, Group),
        (LEASE, Lease),
        (MARK, ReadMark),
    ],
)
def test_every_attribute_of_a_type_is_in_its_table_once(
    table: "FieldTable[ItemReader, Value, object]", kind: type
) -> None:
    found = [one.attribute for one in table.fields]
    assert sorted({*found, *ELSEWHERE.get(kind, ())}) == sorted(kind.__annotations__)
    assert len({one.name for one in table.fields}) == len(found) == len(set(found))
