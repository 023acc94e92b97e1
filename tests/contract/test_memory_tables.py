"""The tables in memory answer each call as DynamoDB Local does, which is AWS's own engine."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman_testing.dynamodb.expressions import condition_of, update_of
from roundsman_testing.dynamodb.schemas import create_tables
from roundsman_testing.dynamodb.tables import LARGEST_ITEM, MemoryDynamoDB
from tests.contract.conftest import PATIENT, dynamodb_client

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Call = tuple[str, dict[str, object]]
PREFIX = "both"
TABLES = {name: f"{PREFIX}-{name}" for name in ("TasksTable", "HistoryTable", "ControlTable")}
LANES = ("open#0", "done#0")

# --- the calls -----------------------------------------------------------------------------------

keys = st.sampled_from(["a", "b", "c"])
numbers = st.integers(-2, 12).map(lambda number: {"N": str(number)})
lanes = st.sampled_from(LANES).map(lambda lane: {"S": lane})
values = st.one_of(
    numbers,
    st.sampled_from([{"S": "x"}, {"S": "xy"}, {"BOOL": True}, {"NULL": True}, {"N": "1.0"}]),
    st.builds(lambda value: {"M": {"Since": value}}, numbers),
    st.builds(lambda value: {"L": [value]}, numbers),
)
CONDITIONS = (
    "attribute_exists(TaskId) AND Version = :v",
    "attribute_not_exists(TaskId) OR Version <= :v",
    "NOT attribute_type(Thing, :t) OR Thing.Since < :v",
    "attribute_type(#t, :t) AND #t.Since >= :v",
    "NOT (attribute_exists(Thing.Since) AND Version > :v)",
    "begins_with(Lane, :s) AND (Version < :v OR Thing = :v)",
    "Thing <> :v",
    "attribute_not_exists(Thing[0])",
)
UPDATES = (
    "SET Version = :v",
    "SET Thing = if_not_exists(Thing, :v) REMOVE Lane",
    "SET #t = :v, Lane = :s",
    "ADD Version :v SET Thing = :s",
    "REMOVE Thing",
)
# What these do in a transaction is no promise: the stores make only updates that are possible.
MAY_BE_INVALID = (
    "SET Version = Version + :v",
    "SET Thing.Since = :v",
    "ADD Version :v",
    "SET Thing[0] = :v",
    "REMOVE Thing.Since",
    "REMOVE Thing, Thing.Since",
    "SET TaskId = :s",
    "SET DueAt = :s",
)
PLACEHOLDERS: Mapping[str, object] = {
    ":v": numbers,
    ":t": st.sampled_from([{"S": "N"}, {"S": "M"}, {"S": "S"}]),
    ":s": lanes,
}


def placeholders(draw: st.DrawFn, *expressions: str) -> dict[str, object]:
    """Names and values for what these expressions name; sometimes one is missing."""
    parsed = [update_of(e) if e.startswith(("SET", "ADD", "REM")) else condition_of(e)
              for e in expressions]  # fmt: skip
    wanted = sorted(frozenset[str]().union(*(one.values for one in parsed)))
    if wanted and draw(st.integers(0, 30)) == 0:
        wanted = wanted[1:]
    found: dict[str, object] = {}
    if wanted:
        found["ExpressionAttributeValues"] = {
            name: draw(PLACEHOLDERS[name])  # type: ignore[arg-type]
            for name in wanted
        }
    if any(one.names for one in parsed):
        found["ExpressionAttributeNames"] = {"#t": "Thing"}
    return found


def task(name: str, item: Mapping[str, object]) -> dict[str, object]:
    return {"TaskId": {"S": name}, **item}


items = st.fixed_dictionaries(
    {"Version": numbers},
    optional={"Thing": values, "Lane": lanes, "DueAt": numbers, "CreatedAt": numbers},
)


@st.composite
def writes(draw: st.DrawFn, updates: Sequence[str] = UPDATES) -> tuple[str, dict[str, object]]:
    """One write of the tasks table, as a call and as a part of a transaction."""
    name, kind = draw(keys), draw(st.sampled_from(["Put", "Update", "Delete"]))
    request: dict[str, object] = {"TableName": TABLES["TasksTable"]}
    expressions: list[str] = []
    if kind == "Put":
        request["Item"] = task(name, draw(items))
    else:
        request["Key"] = task(name, {})
    if kind == "Update":
        request["UpdateExpression"] = draw(st.sampled_from(updates))
        expressions.append(str(request["UpdateExpression"]))
    if draw(st.booleans()):
        request["ConditionExpression"] = draw(st.sampled_from(CONDITIONS))
        expressions.append(str(request["ConditionExpression"]))
        if draw(st.booleans()):
            request["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return kind, request | placeholders(draw, *expressions)


def key_of(request: Mapping[str, object]) -> object:
    named = request.get("Key") or request["Item"]
    assert isinstance(named, Mapping)
    return named["TaskId"]


@st.composite
def single_writes(draw: st.DrawFn) -> Call:
    kind, request = draw(writes((*UPDATES, *MAY_BE_INVALID)))
    returned = ["NONE", "ALL_OLD"]
    if kind == "Update":
        returned += ["ALL_NEW", "UPDATED_NEW", "UPDATED_OLD"]
    return f"{kind.lower()}_item", {**request, "ReturnValues": draw(st.sampled_from(returned))}


@st.composite
def transactions(draw: st.DrawFn) -> Call:
    parts = draw(
        st.lists(writes(), min_size=1, max_size=3, unique_by=lambda part: str(key_of(part[1])))
    )
    return "transact_write_items", {"TransactItems": [{kind: one} for kind, one in parts]}


@st.composite
def reads(draw: st.DrawFn) -> Call:
    wanted = draw(st.lists(keys, min_size=1, max_size=3))
    asked: dict[str, object] = {"Keys": [task(name, {}) for name in wanted]}
    if draw(st.booleans()):
        asked["ProjectionExpression"] = "TaskId, #t.Since, Version"
        asked["ExpressionAttributeNames"] = {"#t": "Thing"}
    return "batch_get_item", {"RequestItems": {TABLES["TasksTable"]: asked}}


@st.composite
def queries(draw: st.DrawFn) -> Call:
    given: dict[str, object] = {":lane": draw(lanes), ":until": draw(numbers)}
    request: dict[str, object] = {
        "TableName": TABLES["TasksTable"],
        "IndexName": "due",
        "KeyConditionExpression": "Lane = :lane AND DueAt <= :until",
        "ExpressionAttributeValues": given,
        "ScanIndexForward": draw(st.booleans()),
    }
    if draw(st.booleans()):
        request["KeyConditionExpression"] = "Lane = :lane AND DueAt BETWEEN :since AND :until"
        given[":since"] = {"N": "-2"}  # no draw is less
    if draw(st.booleans()):
        request["Limit"] = draw(st.integers(1, 3))
    if draw(st.booleans()):
        request["FilterExpression"] = "attribute_not_exists(CreatedAt) OR CreatedAt > :bound"
        given[":bound"] = draw(numbers)
    shown = draw(st.sampled_from(["all", "count", "some"]))
    if shown == "count":
        request["Select"] = "COUNT"
    elif shown == "some":
        request["ProjectionExpression"] = "DueAt, TaskId"
    return "query", request


calls = st.lists(
    st.one_of(single_writes(), single_writes(), transactions(), reads(), queries()), max_size=14
)

# --- what they answer ----------------------------------------------------------------------------


def answer(client: "DynamoDBClient", call: Call) -> object:
    """What the call returned, or its error; without what is no promise of the tables."""
    name, request = call
    if name == "query":
        return list(pages(client, request))
    try:
        found = getattr(client, name)(**request)
    except ClientError as error:
        reasons = error.response.get("CancellationReasons", [])
        codes = [(reason["Code"], plain(reason.get("Item"))) for reason in reasons]
        return error.response["Error"]["Code"], codes, plain(error.response.get("Item"))
    shown = {key: found[key] for key in ("Item", "Attributes") if found.get(key)}
    for table, read in found.get("Responses", {}).items():
        shown[table] = sorted(read, key=lambda item: item["TaskId"]["S"])
    return plain(shown)


def pages(client: "DynamoDBClient", request: dict[str, object]) -> Iterator[object]:
    """The items of each page. Items with one range key have no order, so they are sorted."""
    while True:
        page = client.query(**request)  # type: ignore[arg-type]
        items = page.get("Items", [])
        names = sorted({name for item in items for name in item})
        yield [item["DueAt"]["N"] for item in items], names, page["Count"], page["ScannedCount"]
        if "LastEvaluatedKey" not in page:
            return
        request = {**request, "ExclusiveStartKey": page["LastEvaluatedKey"]}


def plain(value: object) -> object:
    """A value with its numbers in one form: DynamoDB stores `1.0` as `1`."""
    if isinstance(value, dict):
        if value.keys() == {"N"}:
            return {"N": f"{float(value['N']):g}"}
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def with_prefix(value: object, prefix: str) -> object:
    """The request about items and partitions of its own."""
    if isinstance(value, dict):
        return {
            key: {"S": f"{prefix}{one['S']}"}
            if key == "TaskId" and isinstance(one, dict)
            else with_prefix(one, prefix)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [with_prefix(one, prefix) for one in value]
    return f"{value}{prefix}" if value in LANES else value


@pytest.fixture(scope="module")
def both(dynamodb_endpoint: str) -> "tuple[DynamoDBClient, DynamoDBClient]":
    real, memory = dynamodb_client(dynamodb_endpoint, PATIENT), MemoryDynamoDB().client
    for client in (real, memory):
        create_tables(client, f"{PREFIX}-")
    return real, memory


prefixes = count(1)


@pytest.mark.engine
@settings(max_examples=300, deadline=None)
@given(asked=calls)
def test_each_call_is_answered_as_dynamodb_local_answers_it(
    both: "tuple[DynamoDBClient, DynamoDBClient]", asked: list[Call]
) -> None:
    prefix = f"{next(prefixes)}-"
    for name, request in asked:
        own = with_prefix(request, prefix)
        assert isinstance(own, dict)
        expected, found = (answer(client, (name, own)) for client in both)
        assert found == expected, (name, request)


REFUSED: Mapping[str, Callable[[], Call]] = {
    "an item of more than 400 KB": lambda: (
        "put_item",
        {"TableName": TABLES["TasksTable"],
         "Item": task("large", {"Text": {"S": "x" * LARGEST_ITEM}})},
    ),
    "an empty key": lambda: (
        "put_item", {"TableName": TABLES["TasksTable"], "Item": task("", {})}
    ),
    "a key of another type": lambda: (
        "get_item", {"TableName": TABLES["TasksTable"], "Key": {"TaskId": {"N": "1"}}}
    ),
    "half of a key": lambda: (
        "get_item", {"TableName": TABLES["HistoryTable"], "Key": {"TaskId": {"S": "a"}}}
    ),
    "a table that does not exist": lambda: (
        "get_item", {"TableName": "none", "Key": {"TaskId": {"S": "a"}}}
    ),
    "101 writes": lambda: (
        "transact_write_items",
        {"TransactItems": [
            {"Delete": {"TableName": TABLES["TasksTable"], "Key": task(f"{n}", {})}}
            for n in range(101)
        ]},
    ),
    "two writes of one item": lambda: (
        "transact_write_items",
        {"TransactItems": [
            {"Delete": {"TableName": TABLES["TasksTable"], "Key": task("a", {})}},
            {"Put": {"TableName": TABLES["TasksTable"], "Item": task("a", {})}},
        ]},
    ),
    "101 keys": lambda: (
        "batch_get_item",
        {"RequestItems": {TABLES["TasksTable"]: {
            "Keys": [task(f"{number}", {}) for number in range(101)]
        }}},
    ),
    "a value that no expression uses": lambda: (
        "put_item",
        {"TableName": TABLES["TasksTable"], "Item": task("a", {}),
         "ConditionExpression": "attribute_exists(TaskId)",
         "ExpressionAttributeValues": {":v": {"N": "1"}}},
    ),
}  # fmt: skip


@pytest.mark.engine
@pytest.mark.parametrize("case", REFUSED)
def test_a_request_that_is_not_valid_has_the_same_error(
    both: "tuple[DynamoDBClient, DynamoDBClient]", case: str
) -> None:
    expected, found = (answer(client, REFUSED[case]()) for client in both)
    assert isinstance(expected, tuple)  # an error
    assert found == expected
