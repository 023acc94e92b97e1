"""Which orders a limit lets be under way: a row of ControlTable for each key, `limit#<hash>`.

A row has the turns of the orders under way as JSON. It is replaced only if it is as it was read,
and is removed with its last order. One that cannot be read counts as none and is replaced.
"""

from dataclasses import asdict
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import Item, text
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.model.json import canonical_json, parse_json
from roundsman.model.order_limit import LimitRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ID = "ControlId"
STATE = "Turns"
IS_AS_READ_OR_WRITTEN = f"{STATE} = :before OR {STATE} = :after"
CANNOT_BE_READ = f"attribute_not_exists({STATE}) OR NOT begins_with({STATE}, :begin)"
BEGIN = '{"holders":'


def limit_row_id(limit: str) -> str:
    """The id of the row of this key."""
    return f"limit#{limit}"


class DynamoOrderLimits:
    """LimitStore in ControlTable."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str) -> None:
        self._client = client
        self._table = control_table

    def read(self, limit: str) -> LimitRow:
        """The row, read consistently; an empty one if there is none that can be read."""
        with aws_errors("reading which orders a limit lets be under way"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(limit_row_id(limit))}, ConsistentRead=True
            )
        return _row(found.get("Item", {}).get(STATE, {}).get("S", ""))

    def write(self, limit: str, before: LimitRow, after: LimitRow) -> bool:
        """Store `after` if `before` is stored, or remove the row if `after` has no turn.

        True also if it is as `after` says already: the answer of the first try was lost.
        """
        condition, values = CANNOT_BE_READ, dict[str, str]()
        if before == LimitRow():
            values[":begin"] = BEGIN
        else:
            condition, values[":before"] = f"{STATE} = :before", _text(before)
        key = {ID: text(limit_row_id(limit))}
        try:
            with aws_errors("storing which orders a limit lets be under way"):
                if not after.holders:
                    self._client.delete_item(
                        TableName=self._table,
                        Key=key,
                        ConditionExpression=f"{condition} OR attribute_not_exists({ID})",
                        ExpressionAttributeValues=_values(values),
                    )
                    return True
                values[":after"] = _text(after)
                self._client.put_item(
                    TableName=self._table,
                    Item={**key, STATE: text(_text(after))},
                    ConditionExpression=f"{condition} OR {STATE} = :after",
                    ExpressionAttributeValues=_values(values),
                )
        except ConditionFailed:
            return False
        return True


def _values(values: dict[str, str]) -> Item:
    return {name: text(value) for name, value in values.items()}


def _text(row: LimitRow) -> str:
    return canonical_json(asdict(row))


def _row(found: str) -> LimitRow:
    try:
        values = parse_json(found)
    except ValueError:
        return LimitRow()
    holders = values.get("holders") if isinstance(values, dict) else None
    if not isinstance(values, dict) or not isinstance(holders, list):
        return LimitRow()
    last = values.get("last")
    return LimitRow(tuple(map(str, holders)), last if isinstance(last, str) else None)
