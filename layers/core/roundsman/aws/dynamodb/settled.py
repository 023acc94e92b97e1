"""Rows of settled steps: what a long task does not write again with each decision.

Every decision writes the record of its task, and DynamoDB bills each started KB. A step that has
ended mostly stays as it is, and its result with it. So once the settled steps of a record take more
than ROW_FROM bytes, they are moved to a row of their own in the same table, with the hash key
`<TaskId>#settled#<Version>`. The record lists its rows in `Settled`. So the writes of a task grow
with its steps and not with their square.

`divide` decides at each write where each step is:

1. A row is never changed. A step *is in a row* if the youngest row that names it has it as it is
   now (`_in_rows`). The record has all other steps: also one that has changed since its row.
2. A row is kept as long as a step is in it, and removed then (`_rows_in_use`). Of an erased task,
   all steps of a row must be in it: another one would still have its contents.
3. The settled steps of the record are moved to a new row if they are large enough
   (`_steps_to_move`): as large as all rows before, from ROW_FROM to ROW_UP_TO bytes. A few rows are
   read quickly, and DynamoDB bills reads by 4 KB.
4. Some rows are written again with the new one, which takes their place (`_rows_to_rewrite`): the
   smallest ones if there are more than MOST_ROWS, because a transaction has at most 100 writes,
   history and the rows of inputs included; and the youngest row of a task to which steps were
   added, until it has ROW_UP_TO. Such a task writes its record at twice the price whenever it adds
   one, so its record is kept small.

A row is written, removed and given its expiry in one transaction with the record, on the conditions
of the record. So a row never exists without a record that lists it. No row is written with a
decision that ends the task and leaves something owed. What is owed is cleared by a task in hand
that does not have this row, and that write must end all rows.

A step that was added at run time takes its name, its digest and what it comes after into the row:
`Added` of the record has only those of the other steps. So a row with the names of added steps
stays until a younger one has them. The number of each (`Place`) keeps the order of adding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, TypeAlias

from roundsman.aws.dynamodb.codec import (
    ADDED,
    STEPS,
    Item,
    added_list,
    expiry,
    left_out_attribute,
    number,
    read_task,
    refuse_newer,
    rows_attributes,
    schema_of,
    steps_map,
    task_item,
    text,
    unpacked_item,
)
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.packed import NotPacked, is_larger, packed, unpacked
from roundsman.errors import UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.states import SETTLED
from roundsman.model.task import (
    ADDED_SCHEMA,
    DIVIDED_SCHEMA,
    AddedStep,
    SettledRow,
    StepRecord,
    Task,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

StoredItem: TypeAlias = "Mapping[str, Value]"

ROW_FROM = 1024
"""The size in bytes from which the packed settled steps get their first row."""
ROW_UP_TO = 3 * 1024
"""The size in bytes from which they get a row however large the earlier rows are, and from which
the row of added steps is not extended any more."""
MOST_ROWS = 40
"""The number of rows of a task from which some of them are written again as one."""
MERGED_UP_TO = 64 * 1024
"""The maximum size in bytes of rows together that are written again as one; two of any size are."""
LARGE_RECORD = 64 * 1024
"""The size in bytes from which the settled steps of an ended task, too, get a row: all steps of an
erased task change at once."""
FEW_STEPS = 8
"""A task with so many records of steps or fewer gets no rows: too few writes would follow, since
one that adds a row costs twice as much."""

_MARK = "#settled#"


@dataclass(frozen=True, slots=True)
class Division:
    """How a task is stored: in its record, and in rows beside it."""

    record: Item
    """The item of the task itself."""
    kept: tuple[SettledRow, ...] = ()
    """The rows that stay as they are."""
    removed: tuple[SettledRow, ...] = ()
    """The rows of which no step counts any more."""
    added: SettledRow | None = None
    """The new row; None if there is none."""


def divide(task: Task) -> Division:
    """Decide which steps of the task its record has, and which are in rows."""
    rows = _rows_in_use(task)
    in_rows = _in_rows(task, rows)
    in_record = {name: one for name, one in task.steps.items() if name not in in_rows}
    record = _record(task, in_record, rows)
    moved = _steps_to_move(task, in_record, rows, record)
    rewritten = _rows_to_rewrite(task, rows, moved)
    if not moved and not rewritten:
        return Division(record, rows, _removed(task, rows))
    added = _row(task, {**_taken_over(rows, rewritten, in_rows), **moved})
    kept = tuple(row for row in rows if row not in rewritten)
    left = {name: one for name, one in in_record.items() if name not in moved}
    return Division(_record(task, left, (*kept, added)), kept, _removed(task, kept), added)


def row_key(task_id: str, row: SettledRow) -> Item:
    """The key of a row in the tasks table. No order has such an id."""
    return {"TaskId": text(_row_id(task_id, row.version))}


def row_item(task: Task, row: SettledRow) -> Item:
    """The item of a new row of the task."""
    item = row_key(task.task_id, row)
    item["Schema"] = number(ADDED_SCHEMA if row.added else DIVIDED_SCHEMA)
    item["CreatedAt"] = number(task.created_at)
    item["Packed"] = {"B": _packed(row.steps, row.added)}
    if task.expires_at is not None:
        item["ExpiresAt"] = expiry(task.expires_at)
    return item


def _row_id(task_id: str, version: int) -> str:
    return f"{task_id}{_MARK}{version}"


# --- 1 and 2: Which rows there are, and what is in them -------------------------------------------


def _rows_in_use(task: Task) -> tuple[SettledRow, ...]:
    """The rows that are kept: a step is in each, and the task has not lost any step of them."""
    rows = tuple(
        row
        for row in task.settled
        if row.steps.keys() <= task.steps.keys() and row.added.items() <= task.added.items()
    )
    in_rows, youngest = _in_rows(task, rows), _youngest(rows)
    if task.erased_at is not None:
        return tuple(row for row in rows if all(in_rows.get(name) is row for name in row.steps))
    return tuple(
        row
        for row in rows
        if any(in_rows.get(name) is row for name in row.steps)
        or any(youngest[name] is row for name in row.added)
    )


def _in_rows(task: Task, rows: Sequence[SettledRow]) -> dict[str, SettledRow]:
    """The steps that the record need not have, each with the row that it is in."""
    youngest = _youngest(rows).items()
    return {name: row for name, row in youngest if row.steps[name] == task.steps[name]}


def _youngest(rows: Sequence[SettledRow]) -> dict[str, SettledRow]:
    """The steps that rows name, each with the youngest row that does, in it or not."""
    return {name: row for row in rows for name in row.steps}


def _removed(task: Task, kept: Sequence[SettledRow]) -> tuple[SettledRow, ...]:
    """The rows that the task had and does not keep."""
    return tuple(row for row in task.settled if row not in kept)


# --- 3: Which steps are moved to a new row --------------------------------------------------------


def _steps_to_move(
    task: Task, in_record: Mapping[str, StepRecord], rows: Sequence[SettledRow], record: Item
) -> dict[str, StepRecord]:
    """The settled steps of the record that this write moves; empty if they are too few for a row.

    `record` is the item of the record with them.
    """
    if len(task.steps) <= FEW_STEPS or not _may_write_row(task):
        return {}
    before = 0 if task.added else sum(row.size for row in rows)
    enough = LARGE_RECORD if task.ended else max(ROW_FROM, min(ROW_UP_TO, before))
    if not is_larger(record, enough):
        return {}
    steps = {name: one for name, one in in_record.items() if one.process_state in SETTLED}
    return steps if steps and _row(task, steps).size > enough else {}


def _may_write_row(task: Task) -> bool:
    return not (task.ended and task.owed)


# --- 4: Which rows are written again --------------------------------------------------------------


def _rows_to_rewrite(
    task: Task, rows: Sequence[SettledRow], moved: Mapping[str, StepRecord]
) -> tuple[SettledRow, ...]:
    """The rows whose place the new row takes; mostly none."""
    if not _may_write_row(task):
        return ()
    if len(rows) > MOST_ROWS:
        smallest = sorted(rows, key=lambda row: row.size)
        fitting = sum(size <= MERGED_UP_TO for size in accumulate(row.size for row in smallest))
        return tuple(smallest[: max(2, fitting)])
    extends = moved and task.added and rows and rows[-1].size <= ROW_UP_TO
    return (rows[-1],) if extends else ()


def _taken_over(
    rows: Sequence[SettledRow], rewritten: Sequence[SettledRow], in_rows: Mapping[str, SettledRow]
) -> dict[str, StepRecord]:
    """The steps of rows that are written again: those that are in them, and the added ones.

    The added ones that no younger row names: otherwise the record would have their names again.
    """
    return {
        name: row.steps[name]
        for name, row in _youngest(rows).items()
        if row in rewritten and (name in in_rows or name in row.added)
    }


# --- The record and a row as they are stored ------------------------------------------------------


def _record(task: Task, steps: Mapping[str, StepRecord], rows: Sequence[SettledRow]) -> Item:
    if not rows:
        return task_item(task)
    elsewhere = {name for row in rows for name in row.added}
    added = {name: one for name, one in task.added.items() if name not in elsewhere}
    item = task_item(replace(task, steps=steps, added=added))
    item["Settled"] = {"L": [text(str(row.version)) for row in rows]}
    item["Schema"] = number(schema_of(task, DIVIDED_SCHEMA))
    return item | left_out_attribute(task) | rows_attributes(task)


def _row(task: Task, steps: Mapping[str, StepRecord]) -> SettledRow:
    """A new row of these steps of the task."""
    added = {name: one for name, one in task.added.items() if name in steps}
    return SettledRow(task.version, len(_packed(steps, added)), steps, task.expires_at, added)


def _packed(steps: Mapping[str, StepRecord], added: Mapping[str, AddedStep]) -> bytes:
    found = {"Steps": steps_map(steps)}
    if added:
        found["Added"] = added_list(added)
    return packed(found)


# --- Reading -------------------------------------------------------------------------------------


def row_ids(item: "StoredItem") -> list[str]:
    """The hash keys of the rows that an item of a task lists; empty for most tasks.

    Raises SchemaTooNew and UnreadableRecord.
    """
    if "Settled" not in item:
        return []
    refuse_newer(item)
    task_id = _task_id(item)
    return [_row_id(task_id, version) for version in _versions(item, task_id)]


def is_row(item: "StoredItem") -> bool:
    """Whether an item of the tasks table is a row of a task, and not a task.

    Rows of other kinds, which newer code may write, are rows too: no order id has a `#`.
    """
    return "#" in _task_id(item)


def lacks_rows(item: "StoredItem", rows: "Mapping[str, StoredItem]") -> bool:
    """Whether a row that the item lists is not among `rows`, by hash key, or is of another task.

    Another decision may have removed it since the item was read, or DynamoDB after its expiry.
    """
    return any(_row_of(item, one, rows) is None for one in row_ids(item))


def read_divided(item: "StoredItem", rows: "Mapping[str, StoredItem]") -> Task:
    """The task stored in an item and in its rows, which are by hash key.

    Raises SchemaTooNew, and UnreadableRecord, also if a row is missing. DynamoDB removes what has
    an expiry in any order, so of a task with an expiry a row may be missing.
    """
    if "Settled" not in item:
        return read_task(item)
    task_id, found, steps = _task_id(item), list[SettledRow](), dict[str, StepRecord]()
    refuse_newer(item)
    for version in _versions(item, task_id):
        row = _row_of(item, _row_id(task_id, version), rows)
        if row is not None:
            found.append(_read_row(row, version, task_id))
            steps |= found[-1].steps
        elif "ExpiresAt" not in item:
            raise UnreadableRecord(task_id, "Settled", f"lists the row {version}, which is missing")
    task = read_task(item, steps)
    in_rows = {name: one for row in found for name, one in row.added.items()}
    added = {**in_rows, **task.added}
    in_order = dict(sorted(added.items(), key=lambda one: one[1].place))
    return replace(task, settled=tuple(found), added=in_order)


def whole_item(item: "StoredItem", rows: "Mapping[str, StoredItem]") -> Item:
    """The item of a task with each attribute on its own, and all steps. Raises UnreadableRecord."""
    found = unpacked_item(item)
    if "Settled" not in item:
        return found
    task = read_divided(item, rows)
    del found["Settled"]
    if task.added:
        found["Added"] = added_list(task.added)
    return {**found, "Steps": steps_map(task.steps)}


def _task_id(item: "StoredItem") -> str:
    return item.get("TaskId", {}).get("S", "?")


def _versions(item: "StoredItem", task_id: str) -> list[int]:
    found = ItemReader(item, task_id).texts("Settled")
    if not all(one.isdecimal() for one in found):
        raise UnreadableRecord(task_id, "Settled", "is not a list of versions")
    return sorted(map(int, found))


def _row_of(item: "StoredItem", key: str, rows: "Mapping[str, StoredItem]") -> "StoredItem | None":
    """The row with this key; None if it is missing, or of a former task with the same id."""
    row = rows.get(key)
    return row if row is not None and row.get("CreatedAt") == item.get("CreatedAt") else None


def _read_row(row: "StoredItem", version: int, task_id: str) -> SettledRow:
    data = row.get("Packed", {}).get("B")
    if not isinstance(data, bytes):
        raise UnreadableRecord(task_id, "Settled", f"has a row {version} without Packed")
    try:
        inner = unpacked(data)
    except NotPacked as problem:
        raise UnreadableRecord(
            task_id, "Settled", f"has a row {version} that {problem}"
        ) from problem
    reader = ItemReader(row, task_id)
    seconds = reader.optional_number("ExpiresAt")
    steps = STEPS.read(ItemReader(inner, task_id), "Steps")
    added = ADDED.read(ItemReader(inner, task_id), "Added")
    expires_at = None if seconds is None else seconds * SECOND
    return SettledRow(version, len(data), steps, expires_at, added)
