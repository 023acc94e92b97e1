"""The stores under test, each with a back door to do what only another hand would do."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from roundsman.agents.call_notes import CallNotes
from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.aws.dynamodb.call_notes import DynamoCallNotes
from roundsman.aws.dynamodb.control import (
    DynamoAgentBoard,
    DynamoLeases,
    DynamoPlans,
    DynamoReadNotes,
)
from roundsman.aws.dynamodb.groups import DynamoGroups
from roundsman.aws.dynamodb.holds import DynamoHolds
from roundsman.aws.dynamodb.tasks import DynamoStore
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.events import HistoryRow
from roundsman.model.queue_lag import ReadNotes
from roundsman.model.task import SCHEMA
from roundsman.ports import (
    AgentBoard,
    BulkRunStore,
    GroupStore,
    HoldStore,
    LeaseStore,
    OrderStore,
    PlanStore,
    TaskStore,
)
from roundsman.testing.memory import (
    MemoryAgentBoard,
    MemoryBulkRuns,
    MemoryCallNotes,
    MemoryGroups,
    MemoryHolds,
    MemoryLeases,
    MemoryPlans,
    MemoryStore,
)
from tests.contract.samples import NOW
from tests.contract.tables import Tables

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


class Store(TaskStore, OrderStore, Protocol):
    """What both stores are, and what tests read beside the ports."""

    def history(self, task_id: str) -> list[HistoryRow]: ...


class World(ABC):
    """One kind of store."""

    store: Store

    @abstractmethod
    def plans(self) -> PlanStore: ...

    @abstractmethod
    def board(self, clock: Callable[[], int]) -> tuple[AgentBoard, ReadNotes]: ...

    @abstractmethod
    def holds(self, clock: Callable[[], int]) -> HoldStore:
        """What `board` shows too, given the same clock."""

    @abstractmethod
    def call_notes(self, clock: Callable[[], int]) -> CallNotes:
        """Those of the agent payment; each call gives another instance's."""

    @abstractmethod
    def leases(self) -> LeaseStore: ...

    @abstractmethod
    def groups(self) -> GroupStore: ...

    @abstractmethod
    def bulk_runs(self, clock: Callable[[], int]) -> BulkRunStore: ...

    @abstractmethod
    def make_newer(self, task_id: str) -> None:
        """As if newer code had written the record."""

    @abstractmethod
    def spoil(self, task_id: str) -> None:
        """Take an attribute away that every record has: its CompleteBy."""

    @abstractmethod
    def remove_order(self, order_id: str) -> None: ...

    @abstractmethod
    def keep_orders(self, retention: int | None) -> None:
        """Keep orders for this time in ms after their task has ended; None keeps them for ever."""

    @abstractmethod
    def remove_task(self, task_id: str) -> None: ...


class MemoryWorld(World):
    def __init__(self) -> None:
        self._memory = MemoryStore()
        self.store = self._memory
        self._plans = MemoryPlans()
        self._leases = MemoryLeases()
        self._groups = MemoryGroups()
        self._holds: MemoryHolds | None = None
        self._bulk_runs: MemoryBulkRuns | None = None
        self._call_notes = MemoryCallNotes()

    def plans(self) -> PlanStore:
        return self._plans

    def board(self, clock: Callable[[], int]) -> tuple[AgentBoard, ReadNotes]:
        board = MemoryAgentBoard(clock, self.holds(clock))
        return board, board

    def holds(self, clock: Callable[[], int]) -> HoldStore:
        self._holds = self._holds or MemoryHolds(clock)
        return self._holds

    def call_notes(self, clock: Callable[[], int]) -> CallNotes:
        return self._call_notes

    def leases(self) -> LeaseStore:
        return self._leases

    def groups(self) -> GroupStore:
        return self._groups

    def bulk_runs(self, clock: Callable[[], int]) -> BulkRunStore:
        self._bulk_runs = self._bulk_runs or MemoryBulkRuns(clock)
        return self._bulk_runs

    def make_newer(self, task_id: str) -> None:
        self._memory.make_unreadable(task_id, SchemaTooNew(task_id))

    def spoil(self, task_id: str) -> None:
        self._memory.make_unreadable(task_id, UnreadableRecord(task_id, "CompleteBy", "is missing"))

    def remove_order(self, order_id: str) -> None:
        self._memory.remove_order(order_id)

    def keep_orders(self, retention: int | None) -> None:
        self._memory.order_retention = retention

    def remove_task(self, task_id: str) -> None:
        self._memory.remove_task(task_id)


@dataclass
class DynamoWorld(World):
    client: "DynamoDBClient"
    tables: Tables

    def __post_init__(self) -> None:
        self.store = self.another_store(self.client)

    def keep_orders(self, retention: int | None) -> None:
        self.store = self.another_store(self.client, retention)

    def another_store(self, client: "DynamoDBClient", retention: int | None = None) -> DynamoStore:
        return DynamoStore(
            client,
            orders_table=self.tables.orders,
            tasks_table=self.tables.tasks,
            history_table=self.tables.history,
            page=2,  # so that few entries are already several pages
            order_retention=retention,
        )

    def plans(self) -> PlanStore:
        return DynamoPlans(self.client, control_table=self.tables.control, clock=lambda: NOW)

    def board(self, clock: Callable[[], int]) -> tuple[AgentBoard, ReadNotes]:
        table = self.tables.control
        board = DynamoAgentBoard(self.client, control_table=table, clock=clock, keep_for=0)
        return board, DynamoReadNotes(self.client, control_table=table, clock=clock)

    def holds(self, clock: Callable[[], int]) -> DynamoHolds:
        return DynamoHolds(self.client, control_table=self.tables.control, clock=clock)

    def call_notes(self, clock: Callable[[], int]) -> DynamoCallNotes:
        table = self.tables.control
        return DynamoCallNotes("payment", self.client, control_table=table, clock=clock)

    def leases(self) -> LeaseStore:
        return DynamoLeases(self.client, control_table=self.tables.control)

    def groups(self) -> DynamoGroups:
        return DynamoGroups(self.client, control_table=self.tables.control)

    def bulk_runs(self, clock: Callable[[], int]) -> DynamoBulkRuns:
        return DynamoBulkRuns(self.client, control_table=self.tables.control, clock=clock)

    def item(self, task_id: str) -> "dict[str, AttributeValueTypeDef]":
        key = {"TaskId": {"S": task_id}}
        return self.client.get_item(TableName=self.tables.tasks, Key=key, ConsistentRead=True)[
            "Item"
        ]

    def make_newer(self, task_id: str) -> None:
        self.update(task_id, "SET #n = :v", "Schema", {"N": str(SCHEMA + 1)})

    def spoil(self, task_id: str) -> None:
        self.client.update_item(
            TableName=self.tables.tasks,
            Key={"TaskId": {"S": task_id}},
            UpdateExpression="REMOVE CompleteBy",
        )

    def update(self, task_id: str, update: str, name: str, value: "AttributeValueTypeDef") -> None:
        self.client.update_item(
            TableName=self.tables.tasks,
            Key={"TaskId": {"S": task_id}},
            UpdateExpression=update,
            ExpressionAttributeNames={"#n": name},
            ExpressionAttributeValues={":v": value},
        )

    def remove_order(self, order_id: str) -> None:
        self.client.delete_item(TableName=self.tables.orders, Key={"OrderID": {"S": order_id}})

    def remove_task(self, task_id: str) -> None:
        self.client.delete_item(TableName=self.tables.tasks, Key={"TaskId": {"S": task_id}})
