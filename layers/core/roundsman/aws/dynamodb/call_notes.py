"""An agent's notes of its calls: a row of ControlTable per idempotency key, `calls#<agent>#<key>`.

`Calls` counts the noted calls that may have had an effect. Requests of claims with numbers up to
`ClosedUpTo` must not call the service any more. The row expires CALL_NOTES_LAST after its last
write. A key without a row counts as never called. That is safe: no request from the time of an
expired row can act any more, and the scheduler says in a later one that its outcome is unknown, so
that it proves nothing (see `roundsman.agents.call_notes`).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from roundsman.agents.call_notes import Begun
from roundsman.aws.dynamodb.codec import Item, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import ConditionFailed, aws_errors, row_of
from roundsman.aws.observability import count, logger, where
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.instants import SECOND
from roundsman.model.task import CALL_NOTES_LAST
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

MAY_CALL = "attribute_not_exists(ClosedUpTo) OR ClosedUpTo < :claim"
NO_OTHER_CALL = "(attribute_not_exists(Calls) OR Calls = :calls)"
NOT_CLOSED_FURTHER = "(attribute_not_exists(ClosedUpTo) OR ClosedUpTo <= :claim)"


class DynamoCallNotes:
    """CallNotes of one agent, in ControlTable.

    `client` should have short timeouts: it is used before each call to the service.
    """

    def __init__(
        self, agent: str, client: "DynamoDBClient", *, control_table: str, clock: Clock
    ) -> None:
        self._agent = agent
        self._client = client
        self._table = control_table
        self._clock = clock

    def begin(self, key: str, claim: int) -> Begun:
        """Note that a request of the claim with this number is about to call the service.

        Returns CLOSED, and notes nothing, if the key is closed for this claim. Raises TryAgain and
        CallRefused.
        """
        record = self._record(key)
        values = {":one": number(1), ":claim": number(claim), ":expires": self._expires()}
        try:
            with self._errors(f"noting a call under {key}"):
                found = self._client.update_item(
                    TableName=self._table,
                    Key={"ControlId": text(record)},
                    UpdateExpression="ADD Calls :one SET ExpiresAt = :expires",
                    ConditionExpression=MAY_CALL,
                    ExpressionAttributeValues=values,
                    ReturnValues="UPDATED_NEW",
                )
        except ConditionFailed:
            return Begun.CLOSED
        calls = ItemReader(found.get("Attributes", {}), record).number("Calls")
        return Begun.FIRST if calls == 1 else Begun.AGAIN

    def close(self, key: str, claim: int, *, begun: bool) -> bool:
        """Close the key: requests of this claim and of earlier ones must not call any more.

        Closes the key only if no call is noted, or, with `begun`, no call except the caller's own.
        Returns True if the key is closed for this claim, also if another caller closed it. Raises
        TryAgain and CallRefused.
        """
        record = self._record(key)
        values: Item = {
            ":calls": number(int(begun)),
            ":none": number(0),
            ":claim": number(claim),
            ":expires": self._expires(),
        }
        try:
            with self._errors(f"closing the key {key}"):
                self._client.update_item(
                    TableName=self._table,
                    Key={"ControlId": text(record)},
                    UpdateExpression="SET Calls = :none, ClosedUpTo = :claim, ExpiresAt = :expires",
                    ConditionExpression=f"{NO_OTHER_CALL} AND {NOT_CLOSED_FURTHER}",
                    ExpressionAttributeValues=values,
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as refused:
            # The key is closed already if the answer to this close was lost and the client
            # repeated it, or if a newer claim has closed the key since.
            row = ItemReader(row_of(refused), record)
            return row.number("Calls", 0) == 0 and row.number("ClosedUpTo", 0) >= claim
        return True

    def _record(self, key: str) -> str:
        return f"calls#{self._agent}#{key}"

    def _expires(self) -> "Value":
        return number((self._clock() + CALL_NOTES_LAST) // SECOND)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            with aws_errors(doing):
                yield
        except (TryAgain, CallRefused) as error:
            count("CallNotesFailed")
            logger().warning("a call note could not be written", extra=where(error))
            raise
