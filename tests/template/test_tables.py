"""Tables survive mistakes: encrypted, restorable, protected, and forgetful only by TTL."""

import boto3
import pytest
from mypy_boto3_dynamodb import DynamoDBClient

from roundsman.testing.stack.resources import StackOnMoto
from roundsman.testing.stack.template import Document, mapping_of
from tests.template.reading import of_type

TABLES = ("OrdersTable", "TasksTable", "ControlTable", "HistoryTable")
KEYS = {
    "OrdersTable": [("OrderID", "HASH")],
    "TasksTable": [("TaskId", "HASH")],
    "ControlTable": [("ControlId", "HASH")],
    "HistoryTable": [("TaskId", "HASH"), ("Seq", "RANGE")],
}


def test_there_are_these_tables_and_no_others(document: Document) -> None:
    assert set(of_type(document, "AWS::DynamoDB::Table")) == set(TABLES)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_encrypted_restorable_and_protected(document: Document, table: str) -> None:
    properties = of_type(document, "AWS::DynamoDB::Table")[table]
    assert properties["SSESpecification"] == {"SSEEnabled": True}
    recovery = mapping_of(properties["PointInTimeRecoverySpecification"])
    assert recovery == {"PointInTimeRecoveryEnabled": {"Ref": "PointInTimeRecovery"}}
    assert properties["DeletionProtectionEnabled"] == {"Ref": "DeletionProtection"}
    parameters = mapping_of(document["Parameters"])
    for name in ("PointInTimeRecovery", "DeletionProtection"):
        assert mapping_of(parameters[name])["Default"] == "true"


@pytest.mark.parametrize("table", TABLES)
def test_a_table_is_paid_by_request_and_forgets_by_its_expiry(
    document: Document, table: str
) -> None:
    properties = of_type(document, "AWS::DynamoDB::Table")[table]
    assert properties["BillingMode"] == "PAY_PER_REQUEST"
    assert properties["TimeToLiveSpecification"] == {
        "AttributeName": "ExpiresAt",
        "Enabled": True,
    }


@pytest.mark.parametrize("table", TABLES)
def test_a_table_outlives_its_stack_and_bars_no_second_one(document: Document, table: str) -> None:
    resource = mapping_of(mapping_of(document["Resources"])[table])
    assert resource["DeletionPolicy"] == "Retain"
    assert resource["UpdateReplacePolicy"] == "Retain"
    assert "TableName" not in mapping_of(resource["Properties"])


@pytest.mark.parametrize("table", TABLES)
def test_a_deployed_table_has_the_keys_that_the_store_uses(
    deployed_stack: StackOnMoto, table: str
) -> None:
    dynamodb: DynamoDBClient = boto3.client("dynamodb")
    described = dynamodb.describe_table(TableName=deployed_stack.outputs[f"{table}Name"])["Table"]
    keys = [(key["AttributeName"], key["KeyType"]) for key in described["KeySchema"]]
    assert keys == KEYS[table]


def test_the_indexes_hold_their_keys_and_no_more_than_their_readers_need(
    deployed_stack: StackOnMoto,
) -> None:
    dynamodb: DynamoDBClient = boto3.client("dynamodb")
    name = deployed_stack.outputs["TasksTableName"]
    indexes = dynamodb.describe_table(TableName=name)["Table"]["GlobalSecondaryIndexes"]
    keys = {
        index["IndexName"]: [(key["AttributeName"], key["KeyType"]) for key in index["KeySchema"]]
        for index in indexes
    }
    assert keys == {
        "due": [("Lane", "HASH"), ("DueAt", "RANGE")],
        "failures": [("FailureGroup", "HASH"), ("FailedAt", "RANGE")],
    }
    assert {index["IndexName"]: index["Projection"] for index in indexes} == {
        "due": {"ProjectionType": "KEYS_ONLY"},
        "failures": {
            "ProjectionType": "INCLUDE",
            "NonKeyAttributes": ["CompleteBy", "ExpiresAt"],
        },
    }
