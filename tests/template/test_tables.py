"""Tables of our stacks: restorable, protected, retained, and with the keys that the stores use."""

from collections.abc import Mapping

from roundsman_dev.check.reading import (
    at,
    chosen,
    default_of,
    mappings_in,
)
from roundsman_dev.template import Document, Json
from tests.support.template_reading import ENGINE_TABLES, NO_VALUE, tables
from tests.template.faults import drop, fails_with, put

KEYS: Mapping[str, list[tuple[str, str]]] = {
    "OrdersTable": [("OrderID", "HASH")],
    "TasksTable": [("TaskId", "HASH")],
    "ControlTable": [("ControlId", "HASH")],
    "HistoryTable": [("TaskId", "HASH"), ("Seq", "RANGE")],
}
INDEXES: Mapping[str, Mapping[str, tuple[list[tuple[str, str]], Json]]] = {
    "TasksTable": {
        "due": (
            [("Lane", "HASH"), ("DueAt", "RANGE")],
            {
                "ProjectionType": "INCLUDE",
                "NonKeyAttributes": ["Workflow", "Priority", "CreatedAt", "Outcome"],
            },
        ),
        "failures": (
            [("FailureGroup", "HASH"), ("FailedAt", "RANGE")],
            {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["CompleteBy", "ExpiresAt"]},
        ),
        "parked": (
            [("ParkedFor", "HASH"), ("ParkedSince", "RANGE")],
            {"ProjectionType": "KEYS_ONLY"},
        ),
    },
}
"""An index has no more attributes than its readers need, because each write of one is a write of
the index."""
RESTORED = "PointInTimeRecoverySpecification/PointInTimeRecoveryEnabled"


@fails_with(drop("Resources/HistoryTable"))
def test_the_tables_of_the_engine_are_there(template: Document) -> None:
    assert set(tables(template)) == set(ENGINE_TABLES)


@fails_with(
    put("OrdersTable/SSESpecification", {"SSEEnabled": False}),
    put("OrdersTable/SSESpecification/SSEType", "KMS"),
    drop("OrdersTable/PointInTimeRecoverySpecification"),
    put(f"TasksTable/{RESTORED}", "false"),
)
def test_every_table_is_encrypted_and_by_default_can_be_restored_to_any_second(
    template: Document,
) -> None:
    """Without a key of one's own under that of DynamoDB, which is charged for nothing; the KMS key
    that AWS manages for DynamoDB is charged for each use."""
    for name, table in tables(template).items():
        encrypted = at(table, "SSESpecification")
        assert at(encrypted, "SSEEnabled", "Fn::If") == ["OwnKey", True, False], name
        assert at(encrypted, "SSEType", "Fn::If") == ["OwnKey", "KMS", NO_VALUE], name
        assert default_of(template, at(table, *RESTORED.split("/"))) == "true", name


@fails_with(
    put("OrdersTable/DeletionProtectionEnabled", False),
    put("OrdersTable/DeletionProtectionEnabled", True),
    put("OrdersTable/DeletionProtectionEnabled", {"Fn::If": ["HasAlertEmail", True, False]}),
    put("Parameters/DeletionProtection/Default", "false"),
)
def test_a_table_refuses_to_be_deleted_if_the_parameter_is_true(template: Document) -> None:
    """It is `later` for a new stack, because a creation that fails could not remove the table;
    `false` is chosen for a stack and is no default."""
    for name, table in tables(template).items():
        match at(table, "DeletionProtectionEnabled"):
            case {"Fn::If": [str(condition), True, False]}:
                protects = at(template, "Conditions", condition, "Fn::Equals")
            case _:
                protects = None
        assert isinstance(protects, list), name
        value, wanted = protects
        assert wanted == "true", name
        assert default_of(template, value) in ("later", "true"), name


@fails_with(
    put("Resources/OrdersTable/DeletionPolicy", "Delete"),
    put("Resources/OrdersTable/DeletionPolicy", "Retain"),
    drop("Resources/OrdersTable/UpdateReplacePolicy"),
    put("OrdersTable/TableName", "orders"),
)
def test_a_table_outlives_its_stack_and_has_no_name(template: Document) -> None:
    """So that a second stack can be made beside it. It goes only with the creation of a stack that
    fails, when it has no data."""
    for name, table in tables(template).items():
        resource = at(template, "Resources", name)
        assert at(resource, "DeletionPolicy") == "RetainExceptOnCreate", name
        assert at(resource, "UpdateReplacePolicy") == "Retain", name
        assert "TableName" not in table, name


@fails_with(
    put("TasksTable/BillingMode", "PROVISIONED"), drop("TasksTable/TimeToLiveSpecification")
)
def test_a_table_is_billed_by_request_and_removes_items_by_what_the_stores_write(
    template: Document,
) -> None:
    for name, table in tables(template).items():
        assert at(table, "BillingMode") == "PAY_PER_REQUEST", name
        wanted = {"AttributeName": "ExpiresAt", "Enabled": True}
        assert at(table, "TimeToLiveSpecification") == wanted, name


@fails_with(
    put("OrdersTable/KeySchema/0/AttributeName", "OrderId"),
    put("OrdersTable/GlobalSecondaryIndexes", [{"IndexName": "customers"}]),
    put("Conditions/Searches1", {"Fn::Equals": [0, 0]}),
    put("TasksTable/GlobalSecondaryIndexes", []),
    put("TasksTable/GlobalSecondaryIndexes/0/KeySchema/0/AttributeName", "TaskId"),
    put("TasksTable/GlobalSecondaryIndexes/0/Projection", {"ProjectionType": "ALL"}),
)
def test_the_tables_and_their_indexes_have_the_keys_that_the_stores_use(template: Document) -> None:
    """By default the orders have no index; tests/contract/test_tables.py has those of search."""
    for name, table in tables(template).items():
        assert _keys(at(table, "KeySchema")) == KEYS[name]
        indexes = {
            str(at(index, "IndexName")): (_keys(at(index, "KeySchema")), at(index, "Projection"))
            for index in mappings_in(chosen(template, at(table, "GlobalSecondaryIndexes")))
            if index != NO_VALUE
        }
        assert indexes == INDEXES.get(name, {}), name


def _keys(schema: Json) -> list[tuple[str, str]]:
    return [(str(at(key, "AttributeName")), str(at(key, "KeyType"))) for key in mappings_in(schema)]
