"""Records to store: an order, and its task at several moments of its life."""

from dataclasses import replace

from roundsman.definition.plan import plan_of
from roundsman.engine.due import with_due_entry
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed, Task
from roundsman.ports import OrderRow
from tests.support.steps import step_record
from workflows.order_fulfilment import order_fulfilment

NOW = 1_790_000_000_123
PLAN = plan_of(order_fulfilment)
SHARDS = 16
LOCK = "7f3a-0c1d2e3f4a.1"
REPLY_TO = "https://sqs.eu-west-1.amazonaws.com/123456789012/shop-reply-web"

CONTENT: Json = {
    "orderId": "ord-1001",
    "customerId": "c-42",
    "currency": "EUR",
    "lines": [{"sku": "KB-101", "quantity": 2, "unitPrice": "19.90"}],
    "total": "39.80",
}


def order_row(order_id: str = "ord-1001", content: Json = CONTENT) -> OrderRow:
    return OrderRow(order_id, content, f"hash of {order_id}", NOW)


def born(task_id: str = "ord-1001", options: ProcessingOptions | None = None) -> Task:
    """As submission stores it: version 1, nothing claimed."""
    return new_task(PLAN, task_id, options or ProcessingOptions(), NOW, shards=SHARDS)


def claimed(task: Task, *, lock: str = LOCK, within: int = 30 * SECOND) -> Task:
    """The next version: its first step is under way until `within` ms from NOW."""
    step = step_record(
        process_state=ProcessState.PROCESSING,
        locked_by=lock,
        complete_by=NOW + within,
        started_at=NOW,
    )
    version = task.version + 1
    changed = replace(task, version=version, state=TaskState.ACTIVE, steps={"reserve_stock": step})
    return with_due_entry(changed, NOW)


def owing(task: Task, *names: str) -> Task:
    """The next version, owing these statuses."""
    version = task.version + 1
    owed = tuple(Owed("status", name, version, NOW, "") for name in names)
    return with_due_entry(replace(task, version=version, owed=owed), NOW)


def completed(task: Task, *, owed: tuple[str, ...] = (), retain_for: int = MINUTE) -> Task:
    """The next version: all over."""
    version = task.version + 1
    step = step_record(
        process_state=ProcessState.PROCESSED,
        locked_by=LOCK,
        complete_by=NOW + 30 * SECOND,
        started_at=NOW,
        finished_at=NOW + SECOND,
        result={"reservationId": "res_1"},
    )
    over = replace(
        task,
        version=version,
        state=TaskState.COMPLETED,
        steps={"reserve_stock": step},
        ended_at=NOW + SECOND,
        retain_for=retain_for,
        owed=tuple(Owed("status", name, version, NOW, "") for name in owed),
    )
    return with_due_entry(over, NOW + SECOND)
