"""The stores under test, each with a back door to do what only another hand would do."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

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
from roundsman.model.queue_lag import ReadNotes
from roundsman.model.task import SCHEMA
from roundsman.ports import (
    AgentBoard,
    LeaseStore,
    PlanStore,
)
from roundsman_testing.dynamodb.schemas import Tables
from tests.contract.samples import NOW

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef


@dataclass
class World:
    """One kind of tables, with the stores over them."""

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
