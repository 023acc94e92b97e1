"""The order rows that an instance has read, kept for the next request of the same order.

A row never changes, and each request of an order carries its content. A row may go, though, and
its id be taken by another order: a task is born in one operation with its own row, so a row that
was stored at another instant than the task is not that task's, and is read anew.
"""

from collections import OrderedDict

from roundsman.errors import TryAgain
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.task import Task
from roundsman.ports import OrderRow, OrderStore

MOST_KEPT = 32

MOST_TEXT = 1024 * 1024
"""Bytes of their JSON, together. As values they take six times as much memory or so, and
twenty-five times at the worst: an instance has no more to spare for them."""


class OrderRows:
    """The orders of tasks, of which the last MOST_KEPT are kept, and fewer of long ones."""

    def __init__(self, orders: OrderStore) -> None:
        self._orders = orders
        self._kept: OrderedDict[str, OrderRow] = OrderedDict()
        self._lengths: dict[str, int] = {}

    def content_of(self, task: Task) -> Json:
        """The task's order. Raises TryAgain where it has no row, which a restored backup mends."""
        row = self._kept.get(task.task_id)
        if row is None or row.created_at != task.created_at:
            row = self._orders.order(task.task_id)
            if row is None:
                raise TryAgain(f"{task.task_id}: its order row is gone")
            self._keep(task.task_id, row)
        self._kept.move_to_end(task.task_id)
        return row.content

    def _keep(self, task_id: str, row: OrderRow) -> None:
        self._kept[task_id] = row
        self._kept.move_to_end(task_id)
        self._lengths[task_id] = size_in_bytes(row.content)
        while len(self._kept) > 1 and self._is_too_much():
            oldest, _ = self._kept.popitem(last=False)
            del self._lengths[oldest]

    def _is_too_much(self) -> bool:
        return len(self._kept) > MOST_KEPT or sum(self._lengths.values()) > MOST_TEXT
