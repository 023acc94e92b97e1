"""The ledger of the services: what came about under each idempotency key, in a table.

A service honours keys, and after an undo it refuses every later perform with that key for ever. The
ledger also notes what a service alone can know: each call, what it was asked for, and whether it
came too late.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CONDITION_FAILED = "ConditionalCheckFailedException"


class Fenced(Exception):
    """The key was undone, so that nothing may come about under it any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of a service to perform a step."""

    key: str
    agent: str
    digest: str
    """A hash of what was asked for: the order, the item and the earlier results."""
    at: int
    """When the service was called, in epoch ms."""
    is_late: bool
    """Whether that is after the complete-by of the request."""


@dataclass(frozen=True)
class EffectLedger:
    """The ledger in one table. Its methods raise the errors of boto3."""

    client: "DynamoDBClient"
    table: str

    def note(self, call: Call) -> int:
        """Note a call to perform, and return how many there were under its key."""
        late = "1" if call.is_late else "0"
        found = self.client.update_item(
            TableName=self.table,
            Key={"Key": {"S": call.key}},
            UpdateExpression=(
                "SET AgentName = :agent, FirstAt = if_not_exists(FirstAt, :at) "
                "ADD Calls :one, Late :late, Inputs :digest"
            ),
            ExpressionAttributeValues={
                ":agent": {"S": call.agent},
                ":at": {"N": str(call.at)},
                ":one": {"N": "1"},
                ":late": {"N": late},
                ":digest": {"SS": [call.digest]},
            },
            ReturnValues="UPDATED_NEW",
        )
        return int(found["Attributes"]["Calls"]["N"])

    def take_effect(self, key: str, at: int) -> None:
        """Let the effect of a key come about, unless it stands already.

        Raises Fenced if it was undone, which is noted.
        """
        try:
            self.client.update_item(
                TableName=self.table,
                Key={"Key": {"S": key}},
                UpdateExpression="SET Standing = :true, TookAt = :at ADD Effects :one",
                ConditionExpression="attribute_not_exists(UndoneAt) "
                "AND attribute_not_exists(Standing)",
                ExpressionAttributeValues={
                    ":true": {"BOOL": True},
                    ":at": {"N": str(at)},
                    ":one": {"N": "1"},
                },
            )
        except ClientError as error:
            _raise_unless_refused(error)
            if self._read(key).get("UndoneAt") is not None:
                self._add(key, "Fenced")
                raise Fenced from error

    def undo(self, key: str, at: int) -> int:
        """Undo the effect of a key, if there is one, and fence the key.

        Returns how many calls to undo it there were.
        """
        calls = self._add(key, "UndoCalls")
        self.client.update_item(
            TableName=self.table,
            Key={"Key": {"S": key}},
            UpdateExpression="SET UndoneAt = if_not_exists(UndoneAt, :at) REMOVE Standing",
            ExpressionAttributeValues={":at": {"N": str(at)}},
        )
        return calls

    def stands(self, key: str) -> bool:
        """Return whether the effect of a key stands."""
        return "Standing" in self._read(key)

    # Any: an item is what the reader of an attribute says it is.
    def _read(self, key: str) -> dict[str, Any]:
        found = self.client.get_item(
            TableName=self.table, Key={"Key": {"S": key}}, ConsistentRead=True
        )
        return dict(found.get("Item", {}))

    def _add(self, key: str, count: str) -> int:
        found = self.client.update_item(
            TableName=self.table,
            Key={"Key": {"S": key}},
            UpdateExpression="ADD #count :one",
            ExpressionAttributeNames={"#count": count},
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="UPDATED_NEW",
        )
        return int(found["Attributes"][count]["N"])


def _raise_unless_refused(error: ClientError) -> None:
    if error.response.get("Error", {}).get("Code") != CONDITION_FAILED:
        raise error
