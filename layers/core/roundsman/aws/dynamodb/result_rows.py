"""Rows of results that were left out of the record of a task, because they are too large for it.

The record says of each such step why, and which row has the whole result. The hash key of a row is
`<TaskId>#result#<Number>`. What writes of rows promise is in `roundsman.aws.dynamodb.rows_beside`.
A row with a result that a person has replaced stays until no step has a result in it; the rows of
an erased task are removed.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, TypeAlias

from roundsman.aws.dynamodb.codec import Item, json_text, number, result_rows_of
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.rows_beside import RowWriter, row_key
from roundsman.model.task import LEFT_OUT_SCHEMA, RowsBeside, Task

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

StoredItem: TypeAlias = "Mapping[str, Value]"

MARK: Final = "#result#"


def result_row_keys(task: Task) -> list[Item]:
    """The keys of the rows that the task has."""
    return [row_key(task.task_id, MARK, row) for row in range(result_rows_of(task))]


def result_writes(table: str, task: Task, *, removed: bool) -> "list[TransactWriteItemTypeDef]":
    """The writes of rows that belong to a write of the task. `removed`: it removes the record."""
    count = 0 if removed else result_rows_of(task)
    if not count and not task.result_rows.count:
        return []
    kept = {name: one.left_out for name, one in task.steps.items() if one.left_out is not None}
    stored = {one.row for one in kept.values() if one.row is not None and one.whole is None}
    added: dict[int, dict[str, Value]] = {}
    for name, one in kept.items() if count else ():
        if one.row is not None and one.whole is not None:
            added.setdefault(one.row, {})[name] = json_text(one.whole)
    rows = RowWriter(table, MARK, LEFT_OUT_SCHEMA)
    return rows.writes(task, task.result_rows, count, added, frozenset(added.keys() - stored))


def results_as_stored_open(task: Task) -> Task:
    """The task, with the rows that it has once the decision that ended it was stored."""
    steps = {
        name: replace(one, left_out=replace(one.left_out, whole=None))
        for name, one in task.steps.items()
        if one.left_out is not None
    }
    rows = RowsBeside(result_rows_of(task))
    return replace(task, steps={**task.steps, **steps}, result_rows=rows)


def with_results(task: Task, rows: Iterable[StoredItem]) -> Task:
    """The task, with the whole results that are in these rows. Raises UnreadableRecord.

    A row of a former task with the same id has none.
    """
    steps = {**task.steps}
    for row in rows:
        if row.get("CreatedAt") != number(task.created_at):
            continue
        for name in row.keys() & steps.keys():
            if (left_out := steps[name].left_out) is not None:
                whole = ItemReader(row, task.task_id).json(name)
                steps[name] = replace(steps[name], left_out=replace(left_out, whole=whole))
    return replace(task, steps=steps)
