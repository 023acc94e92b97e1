"""The stores over tables in memory, for tests and experiments.

Each is the adapter that runs on AWS, over `MemoryDynamoDB`. Stores that shall see each other's
writes are given the same tables; a store that is given none has tables of its own.
`roundsman_testing.faults` wraps them to inject faults.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from typing import BinaryIO, Generic, TypeVar

from roundsman.aws.dynamodb.bulk_list import INDEX as BULK_RUNS
from roundsman.aws.dynamodb.bulk_list import listed_work
from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.aws.dynamodb.call_notes import DynamoCallNotes
from roundsman.aws.dynamodb.control import DynamoAgentBoard, DynamoLeases, DynamoPlans
from roundsman.aws.dynamodb.groups import GROUPS, DynamoGroups
from roundsman.aws.dynamodb.holds import HOLDS, DynamoHolds
from roundsman.aws.dynamodb.order_limits import DynamoOrderLimits
from roundsman.aws.dynamodb.schedules import DynamoSchedules
from roundsman.aws.dynamodb.search import DynamoSearchSecret
from roundsman.aws.dynamodb.settled import divide, is_row, read_divided
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.aws.dynamodb.wakes import WAKES, DynamoWakes
from roundsman.errors import CallRefused, RoundsmanError, SchemaTooNew, UnreadableRecord
from roundsman.model.events import HistoryRow
from roundsman.model.json import Json
from roundsman.model.payloads import order_of
from roundsman.model.scheduler_queues import QueueDepth
from roundsman.model.task import Task
from roundsman.model.wakes import Wake
from roundsman.ports import NO_INPUTS, Clock, Saved, Superseded
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.dynamodb.schemas import Tables, create_tables
from roundsman_testing.dynamodb.tables import MemoryDynamoDB

T = TypeVar("T")
SEARCH_SECRET = b"the secret of search in tests"
TABLES = Tables("TasksTable", "OrdersTable", "ControlTable", "HistoryTable")


def tables_in_memory(clock: Clock = lambda: 0) -> MemoryDynamoDB:
    """Make the four tables of a stack, empty. `clock` is the present in epoch ms."""
    tables = MemoryDynamoDB(clock)
    create_tables(tables.client)
    return tables


class MemoryStore(DynamoStore):
    """TaskStore and OrderStore over tables in memory.

    `removed` holds the last record of each task that was removed at its end, for tests that check
    it. `on_write` is called with each record that is stored, or removed instead of being stored,
    and `on_read_back` with what was decided and what is read back, if the task has rows of settled
    steps.
    """

    def __init__(
        self,
        on_write: Callable[[Task], None] | None = None,
        *,
        tables: MemoryDynamoDB | None = None,
        order_retention: int | None = None,
    ) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(
            self.tables.client,
            orders_table=TABLES.orders,
            tasks_table=TABLES.tasks,
            history_table=TABLES.history,
            order_retention=order_retention,
        )
        self.on_write = on_write
        self.on_read_back: Callable[[Task, Task], None] = lambda *_: None
        self.removed: dict[str, Task] = {}
        self._decided: Task | None = None
        self._unreadable: dict[str, RoundsmanError] = {}
        self.tables.on_write.append(self._note_write)

    def save(
        self,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        """Store a decision and its history rows, if the stored version is still `seen`."""
        with self._deciding(task):
            return super().save(task, seen=seen, history=history, inputs=inputs, search=search)

    def clear_owed(self, task: Task) -> Saved | Superseded:
        """Store that owed statuses and alerts were sent, without a new version."""
        with self._deciding(task):
            return super().clear_owed(task)

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        """The task; None if there is none or its retention is over.

        Raises the error that `make_unreadable` set for it.
        """
        if task_id in self._unreadable:
            raise self._unreadable[task_id]
        return super().load(task_id, now, latest=latest)

    def tasks(self) -> list[Task]:
        """Every stored record, including those whose retention is over, ordered by id."""
        items = {item["TaskId"]["S"]: item for item in self.tables.items(TABLES.tasks)}
        return [read_divided(item, items) for item in items.values() if not is_row(item)]

    def stored(self, task_id: str) -> Task | None:
        """The stored record, also if its retention is over; None if there is none."""
        item = self.tables.row(TABLES.tasks, task_id)
        return None if item is None else self._stored(item)

    def put(self, task: Task) -> None:
        """Store a record without a decision."""
        self._client.put_item(TableName=TABLES.tasks, Item=divide(task).record)

    def make_unreadable(self, task_id: str, error: RoundsmanError) -> None:
        """Make each `load` of the task raise this error, as for a record that was corrupted."""
        self._unreadable[task_id] = error

    def remove_order(self, order_id: str) -> None:
        """Remove the order row, as happens at the end of the order's retention."""
        self._client.delete_item(TableName=TABLES.orders, Key={"OrderID": {"S": order_id}})

    def remove_task(self, task_id: str) -> None:
        """Remove the task record, as DynamoDB's TTL does."""
        self._client.delete_item(TableName=TABLES.tasks, Key={"TaskId": {"S": task_id}})

    @contextmanager
    def _deciding(self, task: Task) -> Iterator[None]:
        """Keep the decided record while it is stored."""
        self._decided = task
        try:
            yield
        finally:
            self._decided = None

    def _note_write(self, table: str, old: Item | None, new: Item | None) -> None:
        item = new or old or {}
        if table != TABLES.tasks or is_row(item):
            return
        task = self._decided
        if new is None:
            if task is not None and task.task_id == item["TaskId"]["S"]:
                self.removed[task.task_id] = task
            else:
                task = None
        elif self.on_write is not None:
            try:
                task = self._stored(new)
            except (SchemaTooNew, UnreadableRecord):
                return
            if "Settled" in new and self._decided is not None:
                self.on_read_back(self._decided, task)
        if task is not None and self.on_write is not None:
            self.on_write(task)

    def _stored(self, item: Item) -> Task:
        return read_divided(item, self._rows(item, latest=True) if "Settled" in item else {})


class _UntilWritten(Generic[T]):
    """What a row of the control table says, read only after a write, for callers that ask often."""

    def __init__(self, tables: MemoryDynamoDB, row: str, read: Callable[[], Sequence[T]]) -> None:
        self._tables = tables
        self._name = row
        self._read = read
        self._row: Item | None = None
        self._found: Sequence[T] = ()

    def __call__(self) -> Sequence[T]:
        """Return what the row says now; nothing if there is no such row."""
        row = self._tables.row(TABLES.control, self._name)
        if row is not self._row:
            self._row, self._found = row, self._read()
        return self._found


class MemoryPlans(DynamoPlans):
    """PlanStore over tables in memory."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None, clock: Clock = lambda: 0) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control, clock=clock)

    def forget(self) -> None:
        """Forget which plans this instance has stored or read, as a new instance."""
        self._known.clear()
        self._stored_at.clear()


class MemoryHolds(DynamoHolds):
    """HoldStore over tables in memory."""

    def __init__(self, clock: Clock, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control, clock=clock)
        self.stored_now = _UntilWritten(self.tables, HOLDS, self.stored)
        """All stored holds, read only after a write."""


class MemoryWakes(DynamoWakes):
    """WakeStore over tables in memory."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control)
        self._now = _UntilWritten(self.tables, WAKES, lambda: [*self.read().items()])

    def now(self) -> dict[str, Wake]:
        """The wakes, read only after a write."""
        return dict(self._now())


class MemoryOrderLimits(DynamoOrderLimits):
    """LimitStore over tables in memory."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control)


class MemoryPayloads:
    """PayloadStore in memory. `is_gone` is true while the bucket is gone, as if it was deleted."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.is_gone = False

    def put(self, key: str, body: BinaryIO, size: int) -> None:
        """Store a file whose hash the key ends with."""
        self._check()
        data = body.read(size)
        if hashlib.sha256(data).hexdigest() != key[-64:]:
            raise CallRefused(f"storing the payload {key}: BadDigest", "BadDigest")
        self.objects[key] = data

    def open(self, key: str) -> BinaryIO:
        """Begin to read the object under the key."""
        self._check()
        if key not in self.objects:
            raise CallRefused(f"reading the payload {key}: NoSuchKey", "NoSuchKey")
        return BytesIO(self.objects[key])

    def erase(self, order_id: str) -> None:
        """Remove all objects of an order."""
        self._check()
        for key in [key for key in self.objects if order_of(key) == order_id]:
            del self.objects[key]

    def _check(self) -> None:
        if self.is_gone:
            raise CallRefused("the bucket payloads is gone", "NoSuchBucket")


class MemoryAgentBoard(DynamoAgentBoard):
    """AgentBoard and ReadNotes over tables in memory.

    It shows `holds`. What it shows is at most `keep_for` ms old.
    """

    def __init__(
        self,
        clock: Clock,
        holds: MemoryHolds | None = None,
        depth_of: Callable[[str], QueueDepth] | None = None,
        *,
        keep_for: int = 0,
    ) -> None:
        """`depth_of` reads the depth of a queue that the scheduler reads."""
        self.tables = tables_in_memory() if holds is None else holds.tables
        super().__init__(
            self.tables.client,
            control_table=TABLES.control,
            clock=clock,
            keep_for=keep_for,
            depth_of=depth_of,
        )


class MemorySearchSecret(DynamoSearchSecret):
    """The secret of search keys over tables in memory: the same in each run of a test."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None, clock: Clock = lambda: 0) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(
            self.tables.client,
            control_table=TABLES.control,
            clock=clock,
            made=lambda: SEARCH_SECRET,
        )


class MemoryLeases(DynamoLeases):
    """LeaseStore over tables in memory."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control)


class MemoryBulkRuns(DynamoBulkRuns):
    """BulkRunStore over tables in memory."""

    def __init__(self, clock: Clock, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control, clock=clock)
        self.open_now = _UntilWritten(self.tables, BULK_RUNS, self.open_runs)


class MemorySchedules(DynamoSchedules):
    """ScheduleStore over tables in memory."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control)
        self._marked = _UntilWritten(
            self.tables,
            BULK_RUNS,
            lambda: [*listed_work(self.tables.client, TABLES.control).queues.items()],
        )

    def marks(self) -> dict[str, int]:
        """The marks of the schedules whose orders wait, read only after a write."""
        return dict(self._marked())


class MemoryCallNotes(DynamoCallNotes):
    """CallNotes of one agent over tables in memory."""

    def __init__(
        self,
        agent: str = "payment",
        clock: Clock = lambda: 0,
        *,
        tables: MemoryDynamoDB | None = None,
    ) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(agent, self.tables.client, control_table=TABLES.control, clock=clock)


class MemoryGroups(DynamoGroups):
    """GroupStore over tables in memory."""

    def __init__(self, *, tables: MemoryDynamoDB | None = None) -> None:
        self.tables = tables or tables_in_memory()
        super().__init__(self.tables.client, control_table=TABLES.control)
        self.now = _UntilWritten(self.tables, GROUPS, self.groups)
