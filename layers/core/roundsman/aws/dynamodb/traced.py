"""The store of orders and tasks of a function that traces: it notes each order for the tracer."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.tracing import Tracer
from roundsman.model.events import HistoryRow
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.ports import NO_INPUTS, Created, Exists, OrderRow, Saved, Superseded

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class TracedStore(DynamoStore):
    """A DynamoStore that notes the order of each task that a function reads or stores.

    A task that is read together with others, for several messages, is noted once it is stored.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        orders_table: str,
        tasks_table: str,
        history_table: str | None,
        tracer: Tracer,
        order_retention: int | None = None,
    ) -> None:
        super().__init__(
            client,
            orders_table=orders_table,
            tasks_table=tasks_table,
            history_table=history_table,
            order_retention=order_retention,
        )
        self._tracer = tracer

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        """Store the order and the task."""
        found = super().create(order, task)
        if isinstance(found, Created):
            self._tracer.order(task.task_id, task.created_at, task.workflow, new=True)
        return found

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        """The task; None if there is none."""
        task = super().load(task_id, now, latest=latest)
        if task is not None:
            self._tracer.order(task.task_id, task.created_at, task.workflow)
        return task

    def save(
        self,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        """Store a decision and its history rows together."""
        saved = super().save(task, seen=seen, history=history, inputs=inputs, search=search)
        if isinstance(saved, Saved):
            # The scheduler stores decisions on tasks that it has kept and did not read again.
            self._tracer.order(task.task_id, task.created_at, task.workflow)
            self._tracer.note("state", task.state.value)
            self._tracer.acted()
        return saved
