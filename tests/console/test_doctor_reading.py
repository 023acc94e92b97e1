"""The doctor's reading: of many items at once, and of tables that an emulator has made."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import boto3
import pytest

from roundsman.errors import TryAgain
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.finding.orders import TRIES, existing
from roundsman_console.facts.finding.report import Looking, Unseen
from roundsman_console.facts.finding.stack import look_at_table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Keys = Sequence[Mapping[str, Mapping[str, str]]]


@dataclass
class Sparing:
    """A DynamoDB that hands out so many items at once."""

    most: int
    asked: list[int] = field(default_factory=list)

    def client(self) -> "DynamoDBClient":
        """Itself, as what it stands in for."""
        return cast("DynamoDBClient", self)

    def batch_get_item(self, RequestItems: Mapping[str, Mapping[str, Keys]]) -> object:  # boto3's
        ((table, wanted),) = RequestItems.items()
        keys = wanted["Keys"]
        self.asked.append(len(keys))
        left = {table: {"Keys": keys[self.most :]}} if keys[self.most :] else {}
        return {"Responses": {table: keys[: self.most]}, "UnprocessedKeys": left}


def test_what_was_left_out_is_asked_for_again() -> None:
    table = Sparing(2)
    found = existing(table.client(), "t", "TaskId", ["a", "b", "c", "d", "e"])
    assert found == {"a", "b", "c", "d", "e"}
    assert table.asked == [5, 3, 1]


def test_what_the_last_read_hands_out_counts() -> None:
    table, ids = Sparing(1), [str(number) for number in range(TRIES)]
    assert existing(table.client(), "t", "TaskId", ids) == set(ids)
    assert existing(table.client(), "t", "TaskId", []) == set()
    assert len(table.asked) == TRIES


def test_a_table_that_hands_out_nothing_is_not_asked_for_ever() -> None:
    table = Sparing(0)
    with pytest.raises(TryAgain, match="left out 8 times"):
        existing(table.client(), "t", "TaskId", ["a"])
    assert table.asked == [1] * TRIES


ANSWERS: Mapping[str, Mapping[str, object]] = {
    "DescribeTable": {"Table": {"TableStatus": "ACTIVE"}},
    "DescribeTimeToLive": {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}},
    "DescribeContinuousBackups": {"ContinuousBackupsDescription": {}},
}
"""What DynamoDB says of a table without TTL and recovery."""


@pytest.mark.parametrize(
    ("endpoint", "checked"),
    [
        ("http://127.0.0.1:4510", False),
        ("https://localhost:4510", False),
        ("https://dynamodb.eu-west-1.amazonaws.com", True),
        ("https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com", True),
    ],
)
def test_ttl_and_recovery_of_tables_that_an_emulator_has_made_are_not_checked(
    monkeypatch: pytest.MonkeyPatch, endpoint: str, checked: bool
) -> None:
    def answered(model: SimpleNamespace, **_: object) -> tuple[object, object]:
        return SimpleNamespace(status_code=200), ANSWERS[model.name]

    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", boto3.Session(region_name="eu-west-1"))
    assert boto3.DEFAULT_SESSION is not None
    boto3.DEFAULT_SESSION.events.register(
        "before-call.dynamodb", cast("Callable[..., None]", answered)
    )
    looking = Looking()
    found = look_at_table(DeployedStack("roundsman", {}, {}), "OrdersTable", "orders", looking)
    assert [one.kind.value for one in found] == (["ttl-off", "recovery-off"] if checked else [])
    why = "the local AWS does not make them of the template"
    unseen = Unseen("the TTL and the recovery of the tables", why, lacking=True)
    assert list(looking.unseen) == ([] if checked else [unseen])
