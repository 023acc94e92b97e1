"""The tables of a stack: their keys, attributes and indexes, as the engine's template has them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import CreateTableInputTypeDef

TASKS: "CreateTableInputTypeDef" = {
    "TableName": "TasksTable",
    "AttributeDefinitions": [
        {"AttributeName": "TaskId", "AttributeType": "S"},
        {"AttributeName": "Lane", "AttributeType": "S"},
        {"AttributeName": "DueAt", "AttributeType": "N"},
        {"AttributeName": "FailureGroup", "AttributeType": "S"},
        {"AttributeName": "FailedAt", "AttributeType": "N"},
        {"AttributeName": "ParkedFor", "AttributeType": "S"},
        {"AttributeName": "ParkedSince", "AttributeType": "N"},
    ],
    "KeySchema": [{"AttributeName": "TaskId", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "due",
            "KeySchema": [
                {"AttributeName": "Lane", "KeyType": "HASH"},
                {"AttributeName": "DueAt", "KeyType": "RANGE"},
            ],
            "Projection": {
                "ProjectionType": "INCLUDE",
                "NonKeyAttributes": ["Workflow", "Priority", "CreatedAt", "Outcome"],
            },
        },
        {
            "IndexName": "failures",
            "KeySchema": [
                {"AttributeName": "FailureGroup", "KeyType": "HASH"},
                {"AttributeName": "FailedAt", "KeyType": "RANGE"},
            ],
            "Projection": {
                "ProjectionType": "INCLUDE",
                "NonKeyAttributes": ["CompleteBy", "ExpiresAt"],
            },
        },
        {
            "IndexName": "parked",
            "KeySchema": [
                {"AttributeName": "ParkedFor", "KeyType": "HASH"},
                {"AttributeName": "ParkedSince", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        },
    ],
}

ORDERS: "CreateTableInputTypeDef" = {
    "TableName": "OrdersTable",
    "AttributeDefinitions": [
        {"AttributeName": "OrderID", "AttributeType": "S"},
        {"AttributeName": "CreatedAt", "AttributeType": "N"},
        {"AttributeName": "Search1", "AttributeType": "S"},
        {"AttributeName": "Search2", "AttributeType": "S"},
        {"AttributeName": "Search3", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "OrderID", "KeyType": "HASH"}],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": f"search{number}",
            "KeySchema": [
                {"AttributeName": f"Search{number}", "KeyType": "HASH"},
                {"AttributeName": "CreatedAt", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
        for number in (1, 2, 3)
    ],
}

CONTROL: "CreateTableInputTypeDef" = {
    "TableName": "ControlTable",
    "AttributeDefinitions": [{"AttributeName": "ControlId", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "ControlId", "KeyType": "HASH"}],
}

HISTORY: "CreateTableInputTypeDef" = {
    "TableName": "HistoryTable",
    "AttributeDefinitions": [
        {"AttributeName": "TaskId", "AttributeType": "S"},
        {"AttributeName": "Seq", "AttributeType": "N"},
    ],
    "KeySchema": [
        {"AttributeName": "TaskId", "KeyType": "HASH"},
        {"AttributeName": "Seq", "KeyType": "RANGE"},
    ],
}

TTL_ATTRIBUTE = "ExpiresAt"

TABLES = (TASKS, ORDERS, CONTROL, HISTORY)


@dataclass(frozen=True, slots=True)
class Tables:
    """The names of one set of tables."""

    tasks: str
    orders: str
    control: str
    history: str


def create_tables(client: "DynamoDBClient", prefix: str = "") -> Tables:
    """Make the four tables. `prefix` begins the name of each."""
    for table in TABLES:
        made = table.copy()
        made["TableName"] = f"{prefix}{table['TableName']}"
        made["BillingMode"] = "PAY_PER_REQUEST"
        client.create_table(**made)
    return Tables(
        tasks=f"{prefix}TasksTable",
        orders=f"{prefix}OrdersTable",
        control=f"{prefix}ControlTable",
        history=f"{prefix}HistoryTable",
    )
