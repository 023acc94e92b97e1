"""The short way of a call to moto asks and answers the same as the way of botocore and moto."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest
from botocore.exceptions import ClientError, ParamValidationError
from moto import mock_aws
from moto.core.botocore_stubber import BotocoreStubber
from moto.moto_api._internal import mock_random

from roundsman_testing.stack import Stack
from tests.moto.orders import order
from tests.support import short_way

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WAYS = ("short", "plain")


def take(way: str, patch: pytest.MonkeyPatch) -> None:
    """Let all calls go this way."""
    if way == "plain":
        for target, original in short_way.PLAIN.items():
            patch.setattr(target, original)


@pytest.fixture(params=WAYS)
def table(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> "Iterator[DynamoDBClient]":
    """A table with two items, each way."""
    take(request.param, monkeypatch)
    with mock_aws():
        client: DynamoDBClient = boto3.client("dynamodb")
        client.create_table(
            TableName="t",
            KeySchema=[{"AttributeName": "K", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "K", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        for key in ("a", "b"):
            client.put_item(TableName="t", Item={"K": {"S": key}, "N": {"N": "1"}})
        yield client


@pytest.mark.exhaustive
def test_each_answer_of_an_orders_course_is_the_same_and_leaves_the_same_behind(
    roundsman_stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: Counter[str] = Counter()
    for module in ("moto.core.responses", "tests.support.short_way"):
        monkeypatch.setattr(f"{module}.utcnow", roundsman_stack.clock.utcnow)

    def one_way(way: str, request: AWSPreparedRequest) -> tuple[object, object]:
        mock_random.seed(compared.total())  # of the ids of messages and requests
        with pytest.MonkeyPatch.context() as patch:
            take(way, patch)
            return BotocoreStubber().process_request(request), left(roundsman_stack)

    def both(_: BotocoreStubber, request: AWSPreparedRequest) -> object:
        before = roundsman_stack.contents()
        plain = one_way("plain", request)
        roundsman_stack.put_back(before)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(BotocoreStubber, "process_request", short_way.process_request)
            short = one_way("short", request)
        assert short == plain
        compared[str(request.headers.get("X-Amz-Target"))] += 1
        return short[0]

    monkeypatch.setattr(BotocoreStubber, "process_request", both)
    roundsman_stack.submit(order("ord-1"), {**order("ord-2"), "paymentToken": "tok_declined"}, "x")
    roundsman_stack.run()
    roundsman_stack.pass_time(300)
    assert [roundsman_stack.task(f"ord-{n}").state for n in (1, 2)] == ["Completed", "Undone"]
    assert len(compared) >= 8
    assert compared.total() > 100


def left(stack: Stack) -> object:
    """What all queues and tables have."""
    queues, tables = stack.contents()
    return (
        {name: [vars(message) for message in messages] for name, (messages, _) in queues.items()},
        {name: sorted(map(repr, items.items())) for name, items in tables.items()},
    )


def test_a_transaction_that_is_refused_changes_nothing(table: "DynamoDBClient") -> None:
    before = table.scan(TableName="t")["Items"]
    with pytest.raises(ClientError) as refused:
        table.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": "t",
                        "Key": {"K": {"S": "a"}},
                        "UpdateExpression": "SET N = N + :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                },
                {"Put": {"TableName": "t", "Item": {"K": {"S": "c"}}}},
                {
                    "Delete": {
                        "TableName": "t",
                        "Key": {"K": {"S": "b"}},
                        "ConditionExpression": "attribute_not_exists(K)",
                    }
                },
            ]
        )
    assert refused.value.response["Error"]["Code"] == "TransactionCanceledException"
    assert [each["Code"] for each in refused.value.response["CancellationReasons"]] == [
        *("None", "None", "ConditionalCheckFailed")
    ]
    assert table.scan(TableName="t")["Items"] == before


def test_a_transaction_writes_all(table: "DynamoDBClient") -> None:
    table.transact_write_items(
        TransactItems=[
            {
                "Update": {
                    "TableName": "t",
                    "Key": {"K": {"S": "a"}},
                    "UpdateExpression": "SET N = N + :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                }
            },
            {"Put": {"TableName": "t", "Item": {"K": {"S": "c"}}}},
            {"Delete": {"TableName": "t", "Key": {"K": {"S": "b"}}}},
        ]
    )
    found = {
        item["K"]["S"]: item.get("N", {}).get("N") for item in table.scan(TableName="t")["Items"]
    }
    assert found == {"a": "2", "c": None}


def test_an_error_has_its_code_and_status(table: "DynamoDBClient") -> None:
    with pytest.raises(ClientError) as refused:
        table.get_item(TableName="other", Key={"K": {"S": "a"}})
    assert refused.value.response["Error"]["Code"] == "ResourceNotFoundException"
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400


ATTRIBUTES: list[dict[str, object]] = [
    {"S": ""},
    {"N": "1.50"},
    {"BOOL": False},
    {"NULL": True},
    {"B": b"\x00x"},
    {"SS": ["a", "b"]},
    {"NS": ["1"]},
    {"M": {"a": {"L": [{"S": "x"}, {"M": {"b": {"B": b"x"}}}]}}},
    {"L": []},
    {"M": {}},
]


@pytest.mark.parametrize("attribute", ATTRIBUTES, ids=str)
def test_an_attribute_is_read_as_it_was_written(
    table: "DynamoDBClient", attribute: dict[str, object]
) -> None:
    item: dict[str, Any] = {"K": {"S": "a"}, "A": attribute}
    table.put_item(TableName="t", Item=item)
    assert table.get_item(TableName="t", Key={"K": {"S": "a"}})["Item"] == item


@pytest.mark.parametrize(
    "attribute",
    [
        {"S": 1},
        {"N": 1},
        {"BOOL": "x"},
        {"X": "x"},
        {"M": {"a": {"S": None}}},
        {"L": [{"S": "x"}, "x"]},
        "x",
    ],
    ids=json.dumps,
)
def test_an_attribute_that_dynamodb_does_not_know_is_refused(
    table: "DynamoDBClient", attribute: object
) -> None:
    item: dict[str, Any] = {"K": {"S": "a"}, "A": attribute}
    with pytest.raises(ParamValidationError):
        table.put_item(TableName="t", Item=item)


@pytest.fixture
def authorization() -> Callable[[], str]:
    """What a call says of who makes it."""
    client = boto3.Session().client("dynamodb")
    seen: list[str] = []

    def note(request: object, **_: object) -> None:
        value = vars(request)["headers"]["Authorization"]
        seen.append(value.decode() if isinstance(value, bytes) else value)
        raise Seen

    client.meta.events.register_first("before-send", note)

    def ask() -> str:
        with pytest.raises(Seen):
            client.list_tables()
        return seen[-1]

    return ask


class Seen(Exception):
    """Raised in place of a call."""


def test_only_what_moto_receives_has_no_signature(authorization: Callable[[], str]) -> None:
    assert "Signature=none" not in authorization()
    with mock_aws():
        assert "Signature=none" in authorization()
        assert "/us-east-1/dynamodb/aws4_request" in authorization()
