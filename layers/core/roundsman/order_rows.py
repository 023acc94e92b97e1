"""The order rows that an instance has read, kept for the next request of the same order.

A row never changes, and each request of an order carries its content. A row may go, though, and
its id be taken by another order: a task is born in one operation with its own row, so a row that
was stored at another instant than the task is not that task's, and is read anew.
"""

from collections import OrderedDict

from roundsman.errors import TryAgain
from roundsman.ports import OrderRow, OrderStore
from roundsman.task import Task
from roundsman.values import Json

MOST_KEPT = 32
"""Orders of 200 KiB, the longest there are, take some 1 MB each once they are read."""


class OrderRows:
    """The orders of tasks, of which the last MOST_KEPT are kept."""

    def __init__(self, orders: OrderStore) -> None:
        self._orders = orders
        self._kept: OrderedDict[str, OrderRow] = OrderedDict()

    def content_of(self, task: Task) -> Json:
        """The task's order. Raises TryAgain where it has no row, which a restored backup mends."""
        row = self._kept.get(task.task_id)
        if row is None or row.created_at != task.created_at:
            row = self._orders.order(task.task_id)
            if row is None:
                raise TryAgain(f"{task.task_id}: its order row is gone")
            self._kept[task.task_id] = row
        self._kept.move_to_end(task.task_id)
        if len(self._kept) > MOST_KEPT:
            self._kept.popitem(last=False)
        return row.content
