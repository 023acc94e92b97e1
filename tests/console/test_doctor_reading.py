"""The doctor's reading of many items at once, where DynamoDB leaves some of them out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from roundsman.errors import TryAgain
from roundsman.inspector.doctor.gather_tasks import TRIES, batch_get

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
    found = batch_get(table.client(), "t", "TaskId", ["a", "b", "c", "d", "e"])
    assert [item["TaskId"]["S"] for item in found] == ["a", "b", "c", "d", "e"]
    assert table.asked == [5, 3, 1]


def test_a_table_that_hands_out_nothing_is_not_asked_for_ever() -> None:
    table = Sparing(0)
    with pytest.raises(TryAgain, match="left out 8 times"):
        batch_get(table.client(), "t", "TaskId", ["a"])
    assert table.asked == [1] * TRIES
