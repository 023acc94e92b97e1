"""Erases what is stored of an order beside its task's record: the order row, the history, payloads.

The decision is stored first, with the task's record (`roundsman.engine.erasure`). These writes
follow it, and follow it again each time the command is delivered: a crash after any of them leaves
nothing that the redelivery does not erase.
"""

from dataclasses import replace
from zlib import crc32

from roundsman.engine.history import ERASE, ROWS_A_VERSION, seq
from roundsman.model.events import Erase, HistoryRow
from roundsman.model.instants import iso
from roundsman.model.task import Task
from roundsman.ports import OrderRow, OrderStore, PayloadStore, TaskStore


def erase_beside(task: Task, tasks: TaskStore, payloads: PayloadStore | None) -> None:
    """Erase the order row, history and payloads of an erased task; nothing of any other task.

    Idempotent. Raises TryAgain and CallRefused.
    """
    if task.erased_at is not None:
        tasks.erase_order(task.task_id, created_at=task.created_at, erased_at=task.erased_at)
        tasks.erase_history(task.task_id)
        if payloads is not None:
            payloads.erase(task.task_id)


def erase_without_task(
    order_id: str,
    event: Erase,
    now: int,
    *,
    tasks: TaskStore,
    orders: OrderStore,
    payloads: PayloadStore | None,
) -> str | None:
    """Erase what is left of an order whose task's record is removed, after its retention.

    A row of the history, which names who asked, is stored first. Idempotent. Returns the reason of
    that row; None if nothing is left of the order. Raises TryAgain and CallRefused.
    """
    row, rows = orders.order(order_id), tasks.history(order_id)
    if row is None and not rows:
        return None
    # An earlier delivery may have been refused, while the task was open: that is another row.
    asked = (ERASE, event.asked.command_id)
    known = [one for one in rows if (one.kind, one.command_id) == asked]
    own = known[0] if known else _confirmation(row, rows, event, now)
    tasks.add_history(order_id, own)
    if row is not None:
        tasks.erase_order(order_id, created_at=row.created_at, erased_at=own.at)
    tasks.erase_history(order_id)
    if payloads is not None:
        payloads.erase(order_id)
    return own.reason


def _confirmation(
    row: OrderRow | None, rows: list[HistoryRow], event: Erase, now: int
) -> HistoryRow:
    """The history row of the command. Its key comes after those of all rows that there are.

    Without a task nobody knows its plan, and so which fields are masked: no value of the order is
    in the reason, and where the values are gone, the reason is left out.
    """
    from roundsman.model.masked_values import EVERYTHING, MaskedTexts, leaves  # late: needed rarely

    if row is None or row.erased_at is not None:
        texts = EVERYTHING
    else:
        texts = MaskedTexts.of(value for _, value in leaves(row.content))
    asked = replace(event.asked, reason=texts.text(event.asked.reason))
    version = max((one.seq for one in rows), default=0) // ROWS_A_VERSION + 1
    erased_at = row.erased_at if row is not None else None
    more = "its task's retention is over"
    if erased_at is not None:
        more += f"; it was already erased on {iso(erased_at)}"
    return HistoryRow(
        seq(version, crc32(asked.command_id.encode()) % ROWS_A_VERSION),
        now,
        ERASE,
        None,
        None,
        f"{ERASE} by {asked.words}; {more}",
        asked.by,
        asked.command_id,
        asked.sender,
    )
