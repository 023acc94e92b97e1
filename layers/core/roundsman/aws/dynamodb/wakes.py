"""How far waking has gone: the row `wakes` of ControlTable, with one attribute per target.

An attribute is the wake as JSON. It is replaced only if it is as it was read. One that cannot be
read counts as none and is replaced.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import text
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.model.json import canonical_json, parse_json
from roundsman.model.wakes import Wake

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ID = "ControlId"
WAKES = "wakes"
IS_AS_READ_OR_WRITTEN = "#target = :before OR #target = :after"
CANNOT_BE_READ = "attribute_not_exists(#target) OR NOT begins_with(#target, :begin)"
BEGIN = '{"'


class DynamoWakes:
    """WakeStore in one row of ControlTable."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str) -> None:
        self._client = client
        self._table = control_table

    def read(self) -> Mapping[str, Wake]:
        """The wakes by target, read consistently, without those that cannot be read."""
        with aws_errors("reading how far waking has gone"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(WAKES)}, ConsistentRead=True
            )
        item = found.get("Item", {})
        read = {name: _wake(value.get("S", "")) for name, value in item.items() if name != ID}
        return {target: wake for target, wake in read.items() if wake is not None}

    def write(self, target: str, wake: Wake, *, before: Wake | None) -> bool:
        """Store the wake of a target if that stored is `before`. False if another is stored.

        True also if this wake is stored already: the answer of the first try was lost.
        """
        values = {":after": text(_text(wake))}
        condition = IS_AS_READ_OR_WRITTEN
        if before is None:
            condition = f"{CANNOT_BE_READ} OR #target = :after"
            values[":begin"] = text(BEGIN)
        else:
            values[":before"] = text(_text(before))
        try:
            with aws_errors(f"waking what waits for {target}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={ID: text(WAKES)},
                    UpdateExpression="SET #target = :after",
                    ConditionExpression=condition,
                    ExpressionAttributeNames={"#target": target},
                    ExpressionAttributeValues=values,
                )
        except ConditionFailed:
            return False
        return True


def _text(wake: Wake) -> str:
    return canonical_json(asdict(wake))


def _wake(found: str) -> Wake | None:
    try:
        values = parse_json(found)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    try:
        return Wake(**values)
    except TypeError:
        return None
