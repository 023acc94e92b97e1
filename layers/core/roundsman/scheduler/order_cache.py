"""A cache of the order rows that an instance has read.

Each request of an order carries the order's content, and a row never changes. But a row may be
removed, and another order may reuse its id. A task and its row are stored in one operation, so a
cached row whose `created_at` differs from the task's is another order's, and is read again.
"""

from collections import OrderedDict

from roundsman.errors import TryAgain
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.task import Task
from roundsman.ports import OrderRow, OrderStore

MAX_ORDERS = 32
"""The largest number of orders in the cache."""

MAX_BYTES = 1024 * 1024
"""The largest total size of the cached orders, in bytes of JSON.

The parsed values take about 6 times as much memory, and 25 times in the worst case; an instance
has no more memory to spare."""


class OrderCache:
    """Reads orders, and caches the most recently used: at most MAX_ORDERS and MAX_BYTES bytes.

    The last order is cached even if it is larger.
    """

    def __init__(self, orders: OrderStore) -> None:
        self._orders = orders
        self._kept: OrderedDict[str, OrderRow] = OrderedDict()
        self._lengths: dict[str, int] = {}

    def content_of(self, task: Task) -> Json:
        """The content of the task's order.

        Raises TryAgain if the order row is missing: a restored backup can bring it back.
        """
        return self.stored_row(task).content

    def stored_row(self, task: Task) -> OrderRow:
        """The row of the task's order. Raises TryAgain if it is missing."""
        row = self.row_of(task)
        if row is None:
            raise TryAgain(f"{task.task_id}: its order row is missing")
        return row

    def row_of(self, task: Task) -> OrderRow | None:
        """The row of the task's order; None if it is missing."""
        row = self._kept.get(task.task_id)
        if row is None or row.created_at != task.created_at:
            row = self._orders.order(task.task_id)
            if row is None:
                return None
            self.keep(row)
        self._kept.move_to_end(task.task_id)
        return row

    def keep(self, row: OrderRow) -> None:
        """Keep a row that was read."""
        self._kept[row.order_id] = row
        self._kept.move_to_end(row.order_id)
        self._lengths[row.order_id] = size_in_bytes(row.content)
        while len(self._kept) > 1 and self._is_too_much():
            oldest, _ = self._kept.popitem(last=False)
            del self._lengths[oldest]

    def _is_too_much(self) -> bool:
        return len(self._kept) > MAX_ORDERS or sum(self._lengths.values()) > MAX_BYTES
