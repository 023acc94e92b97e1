"""Reading the rows of settled steps of many tasks (`roundsman.aws.dynamodb.settled`)."""

from collections.abc import Callable, Iterable, Sequence

from roundsman.aws.dynamodb.settled import StoredItem, lacks_rows, row_ids
from roundsman.errors import SchemaTooNew, UnreadableRecord

TRIES = 5
"""How often a task is read whose rows another decision removes in the meantime."""


def with_rows(
    items: Sequence[StoredItem], read: Callable[[list[str]], Iterable[StoredItem]]
) -> tuple[list[StoredItem], dict[str, StoredItem]]:
    """Return the items of tasks, and the rows that they list by hash key.

    `read` returns the items with these hash keys, by consistent reads. A task whose row is missing
    is read again, because another decision may have removed the row since.
    """
    found = {item["TaskId"]["S"]: item for item in items}
    rows: dict[str, StoredItem] = {}
    lacking = list(found)
    for _ in range(TRIES):
        keys = [key for task_id in lacking for key in _row_ids(found[task_id])]
        if keys:
            rows |= {row["TaskId"]["S"]: row for row in read(keys)}
        lacking = [task_id for task_id in lacking if _lacks_rows(found[task_id], rows)]
        if not lacking:
            break
        again = {item["TaskId"]["S"]: item for item in read(lacking)}
        for task_id in lacking:
            found.pop(task_id)
        found |= again
        lacking = list(again)
    return list(found.values()), rows


def _row_ids(item: StoredItem) -> list[str]:
    try:
        return row_ids(item)
    except (SchemaTooNew, UnreadableRecord):  # whoever reads the task says so
        return []


def _lacks_rows(item: StoredItem, rows: dict[str, StoredItem]) -> bool:
    return bool(_row_ids(item)) and lacks_rows(item, rows)
