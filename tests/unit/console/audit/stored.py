"""What is stored of the order of a machine world."""

from collections.abc import Sequence
from dataclasses import replace

from roundsman.definition.plan import Plan
from roundsman.model.events import HistoryRow
from roundsman.model.task import ERASED, Task
from roundsman.ports import OrderRow
from roundsman_console.facts.audit.stored_order import StoredOrder, stored_order
from tests.support.machine_world import World


def stored(task: Task, plan: Plan, history: Sequence[HistoryRow], at: int) -> StoredOrder:
    """What an audit would read at that instant."""
    is_erased = task.erased_at is not None
    content = None if is_erased else {"name": "A. Reader"}
    row = OrderRow(task.task_id, content, "0" * 64, task.created_at, task.expires_at)
    rows = [replace(one, reason=ERASED) if is_erased else one for one in history]
    return stored_order(task, plan, row, rows, at=at)


def stored_of(world: World) -> StoredOrder:
    """What an audit would read of the world now."""
    history = [row for _, _, decision in world.decisions for row in decision.history]
    return stored(world.task, world.plan, history, world.now)
