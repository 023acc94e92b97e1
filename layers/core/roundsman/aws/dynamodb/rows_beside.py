"""Rows of one kind beside the record of a task: each has attributes of several steps.

They are in the tasks table, with the hash key `<TaskId>#<kind>#<Number>`. Rows are written, removed
and given their expiry in one transaction with the record, on the conditions of the record. Each
step is an attribute of its row, with the name of its record.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

from roundsman.aws.dynamodb.codec import Item, expiry, number, text
from roundsman.model.task import RowsBeside, Task

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef

Steps: TypeAlias = "Mapping[str, Value]"


def row_key(task_id: str, mark: str, row: int) -> Item:
    """The key of a row in the tasks table; `mark` is `#<kind>#`. No order has such an id."""
    return {"TaskId": text(f"{task_id}{mark}{row}")}


class RowWriter:
    """Writes the rows of one kind of a task. `table` is the name of the tasks table."""

    def __init__(self, table: str, mark: str, schema: int) -> None:
        self._table = table
        self._mark = mark
        self._schema = schema

    def writes(
        self,
        task: Task,
        before: RowsBeside,
        count: int,
        added: Mapping[int, Steps],
        begun: frozenset[int],
    ) -> "list[TransactWriteItemTypeDef]":
        """The writes of rows that belong to a write of the task, which has `count` rows after it.

        `before` are the rows that it had. `added` has the attributes of steps that this write adds,
        by the number of their row. The rows `begun` are begun anew.
        """
        writes: list[TransactWriteItemTypeDef] = [
            {"Delete": {"TableName": self._table, "Key": self._key(task, row)}}
            for row in range(count, before.count)
        ]
        for row in range(count):
            if row in added:
                writes.append(self._with_steps(task, row, added[row], anew=row in begun))
            elif before.expires_at != task.expires_at:
                writes.append(self._with_expiry(task, row))
        return writes

    def _key(self, task: Task, row: int) -> Item:
        return row_key(task.task_id, self._mark, row)

    def _with_steps(
        self, task: Task, row: int, steps: Steps, *, anew: bool
    ) -> "TransactWriteItemTypeDef":
        """The write that adds steps to a row, or begins it anew with them."""
        key = self._key(task, row)
        of_row: Item = {"CreatedAt": number(task.created_at), "Schema": number(self._schema)}
        if task.expires_at is not None:
            of_row["ExpiresAt"] = expiry(task.expires_at)
        if anew:
            return {"Put": {"TableName": self._table, "Item": {**key, **of_row, **steps}}}
        changes = {**of_row, **steps}
        sets = ", ".join(f"#n{n} = :v{n}" for n in range(len(changes)))
        gone = "" if task.expires_at is not None else " REMOVE ExpiresAt"
        return {
            "Update": {
                "TableName": self._table,
                "Key": key,
                "UpdateExpression": f"SET {sets}{gone}",
                "ExpressionAttributeNames": {f"#n{n}": name for n, name in enumerate(changes)},
                "ExpressionAttributeValues": {
                    f":v{n}": one for n, one in enumerate(changes.values())
                },
            }
        }

    def _with_expiry(self, task: Task, row: int) -> "TransactWriteItemTypeDef":
        """The write that gives a row the expiry of its task, or takes it back."""
        update: TransactWriteItemTypeDef = {
            "Update": {
                "TableName": self._table,
                "Key": self._key(task, row),
                "UpdateExpression": "REMOVE ExpiresAt",
            }
        }
        if task.expires_at is not None:
            update["Update"]["UpdateExpression"] = "SET ExpiresAt = :at"
            update["Update"]["ExpressionAttributeValues"] = {":at": expiry(task.expires_at)}
        return update
