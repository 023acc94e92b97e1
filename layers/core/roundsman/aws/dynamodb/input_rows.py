"""Rows of the inputs of steps that were added at run time.

The record of a task says which steps were added, and where they stand. What each was added with is
read only to make its requests, so it is in a row beside the record, with the hash key
`<TaskId>#added#<Number>`. The first INPUTS_IN_A_ROW added steps are in row 0, the next ones in
row 1. Each step is an attribute of the row with the name of its record: a map with its
`Input`. What a step comes after is not there: the names may be longer than the input, and a row
never has more than 400 KB.

- Rows are written, removed and given their expiry in one transaction with the record, on the
  conditions of the record. The record says how many there are (`Inputs`).
- A step never leaves its row while its task has it. A person who begins a task again begins with
  new rows. The rows of an erased task are removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from roundsman.aws.dynamodb.codec import (
    INPUTS_IN_A_ROW,
    Item,
    json_text,
    number,
    rows_of,
)
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.rows_beside import RowWriter, row_key
from roundsman.model.json import Json
from roundsman.model.task import ADDED_SCHEMA, RowsBeside, Task

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

StoredItem: TypeAlias = "Mapping[str, Value]"

MARK: Final = "#added#"


def row_keys(task: Task, names: Iterable[str]) -> list[Item]:
    """The keys of the rows that have the inputs of these added steps."""
    rows = {_row_of(task, name) for name in names if name in task.added}
    return [row_key(task.task_id, MARK, row) for row in sorted(rows)]


def row_writes(
    table: str, task: Task, inputs: Mapping[str, Json], *, removed: bool
) -> "list[TransactWriteItemTypeDef]":
    """The writes of rows that belong to a write of the task.

    `inputs` has the input of each step that this write adds, by record name. `removed`: the write
    removes the record.
    """
    count = 0 if removed else rows_of(task)
    added = _by_row(task, inputs) if count else {}
    begun = {
        row
        for row, steps in added.items()
        if any(task.added[name].place % INPUTS_IN_A_ROW == 0 for name in steps)
    }
    rows = RowWriter(table, MARK, ADDED_SCHEMA)
    return rows.writes(task, task.input_rows, count, added, frozenset(begun))


def as_stored_open(task: Task) -> Task:
    """The task, with the rows that it has once the decision that ended it was stored.

    While it owed something it had no expiry, and neither had they.
    """
    return replace(task, input_rows=RowsBeside(rows_of(task)))


def inputs_in(task: Task, rows: Iterable[StoredItem]) -> dict[str, Json]:
    """The inputs of added steps that are in these rows, by record name.

    A row of a former task with the same id has none. Raises UnreadableRecord.
    """
    found: dict[str, Json] = {}
    for row in rows:
        if row.get("CreatedAt") != number(task.created_at):
            continue
        for name in row.keys() & task.added.keys():
            found[name] = ItemReader(row, task.task_id).map(name).json("Input")
    return found


def _row_of(task: Task, name: str) -> int:
    """The number of the row that has the input of an added step."""
    return task.added[name].place // INPUTS_IN_A_ROW


def _by_row(task: Task, inputs: Mapping[str, Json]) -> dict[int, dict[str, "Value"]]:
    """The attributes of the steps that are added, by the numbers of their rows."""
    found: dict[int, dict[str, Value]] = {}
    for name in inputs:
        step: Item = {"Input": json_text(inputs[name])}
        found.setdefault(_row_of(task, name), {})[name] = {"M": step}
    return found
