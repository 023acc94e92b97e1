"""Tables: encrypted, restorable, protected, and with the keys that the stores use."""

from collections.abc import Mapping

from roundsman.testing.rules.application import Application, Rule, compare
from roundsman.testing.rules.reading import ENGINE_TABLES, at, default_of, mappings_in, tables
from roundsman.testing.stack.template import Document, Json

KEYS: Mapping[str, list[tuple[str, str]]] = {
    "OrdersTable": [("OrderID", "HASH")],
    "TasksTable": [("TaskId", "HASH")],
    "ControlTable": [("ControlId", "HASH")],
    "HistoryTable": [("TaskId", "HASH"), ("Seq", "RANGE")],
}
INDEXES: Mapping[str, Mapping[str, tuple[list[tuple[str, str]], Json]]] = {
    "TasksTable": {
        "due": ([("Lane", "HASH"), ("DueAt", "RANGE")], {"ProjectionType": "KEYS_ONLY"}),
        "failures": (
            [("FailureGroup", "HASH"), ("FailedAt", "RANGE")],
            {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["CompleteBy", "ExpiresAt"]},
        ),
    },
}
RETAINED: Mapping[str, str] = {
    "DeletionPolicy": "RetainExceptOnCreate",
    "UpdateReplacePolicy": "Retain",
}
PROTECTIONS = ("later", "true")
"""The defaults that DeletionProtection may have."""
EXPIRY: Json = {"AttributeName": "ExpiresAt", "Enabled": True}


def engine_tables(application: Application) -> list[str]:
    """The tables of the engine are there: orders, tasks, control and history."""
    found = [name for name in tables(application.template) if name in ENGINE_TABLES]
    return compare("the tables of the engine", found, ENGINE_TABLES)


def table_protection(application: Application) -> list[str]:
    """Every table is encrypted; by default it can be restored to any second.

    A table refuses to be deleted if the parameter DeletionProtection is true. It is `later`
    for a new stack, because a creation that fails could not remove the table; `false`, of which the
    doctor says nothing, is chosen for a stack and is no default.
    """
    template, problems = application.template, list[str]()
    for name, table in tables(template).items():
        if at(table, "SSESpecification", "SSEEnabled") is not True:
            problems.append(f"{name}: SSESpecification must be SSEEnabled: true")
        recovery = at(table, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled")
        if default_of(template, recovery) != "true":
            problems.append(f"{name}: PointInTimeRecovery must be true by default")
        match at(table, "DeletionProtectionEnabled"):
            case {"Fn::If": [str(condition), True, False]} if _is_protection(template, condition):
                pass
            case _:
                problems.append(f"{name}: DeletionProtectionEnabled must follow DeletionProtection")
    return problems


def _is_protection(template: Document, condition: str) -> bool:
    """Whether a condition is that a value is `true` which by default is that, or `later`."""
    match at(template, "Conditions", condition):
        case {"Fn::Equals": [value, "true"]}:
            return default_of(template, value) in PROTECTIONS
        case _:
            return False


def table_retention(application: Application) -> list[str]:
    """A table outlives its stack, and has no name, so that a second stack can be made beside it.

    It goes only with the creation of a stack that fails, when it has no data.
    """
    problems = []
    for name, table in tables(application.template).items():
        resource = at(application.template, "Resources", name)
        for policy, wanted in RETAINED.items():
            if at(resource, policy) != wanted:
                problems.append(f"{name}: {policy} must be {wanted}")
        if "TableName" in table:
            problems.append(f"{name}: TableName must be left out")
    return problems


def expiry(application: Application) -> list[str]:
    """A table of the engine is billed by request, and removes items by ExpiresAt.

    ExpiresAt is the attribute that the stores write the end of an item's retention to.
    """
    problems = []
    for name in ENGINE_TABLES:
        table = tables(application.template).get(name)
        if at(table, "BillingMode") != "PAY_PER_REQUEST":
            problems.append(f"{name}: BillingMode must be PAY_PER_REQUEST")
        if at(table, "TimeToLiveSpecification") != EXPIRY:
            problems.append(f"{name}: TimeToLiveSpecification must be ExpiresAt, enabled")
    return problems


def keys(application: Application) -> list[str]:
    """The tables of the engine and their indexes have the keys that the stores use; an index has no
    more attributes than its readers need, because each write of one is a write of the index.
    """
    problems = []
    for name in ENGINE_TABLES:
        table = tables(application.template).get(name)
        if _keys(at(table, "KeySchema")) != KEYS[name]:
            problems.append(f"{name}: its keys must be {_shown(KEYS[name])}")
        indexes = mappings_in(at(table, "GlobalSecondaryIndexes"))
        wanted = INDEXES.get(name, {})
        names = [str(at(index, "IndexName")) for index in indexes]
        problems += compare(f"{name}: its indexes", names, wanted)
        for index in indexes:
            label = str(at(index, "IndexName"))
            if label not in wanted:
                continue
            index_keys, projection = wanted[label]
            if _keys(at(index, "KeySchema")) != index_keys:
                problems.append(f"{name}: {label}: its keys must be {_shown(index_keys)}")
            if at(index, "Projection") != projection:
                problems.append(f"{name}: {label}: its Projection must be {projection}")
    return problems


def _keys(schema: Json) -> list[tuple[str, str]]:
    return [(str(at(key, "AttributeName")), str(at(key, "KeyType"))) for key in mappings_in(schema)]


def _shown(wanted: list[tuple[str, str]]) -> str:
    return ", ".join(f"{name} ({kind})" for name, kind in wanted)


RULES: tuple[Rule, ...] = (engine_tables, table_protection, table_retention, expiry, keys)
