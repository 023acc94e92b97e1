"""An agent's notes of its calls: one row of ControlTable for each key, `calls#<agent>#<key>`.

`Calls` counts the calls that were noted and may have had an effect; requests of claims up to
`ClosedUpTo` may not call any more. The row goes KEPT_FOR after it was written last. A key whose row
is gone is one that was never called: no request of that time can act any more, and one that comes
later proves nothing where the scheduler knows of an earlier attempt: see
`roundsman.agents.call_notes`.
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
from roundsman.model.instants import MINUTE, SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

KEPT_FOR = 30 * 24 * 60 * MINUTE
"""Longer than a queue and its dead letters together keep a request, 18 days."""

MAY_CALL = "attribute_not_exists(ClosedUpTo) OR ClosedUpTo < :claim"
NO_OTHER_CALL = "(attribute_not_exists(Calls) OR Calls = :calls)"
NOT_CLOSED_FURTHER = "(attribute_not_exists(ClosedUpTo) OR ClosedUpTo <= :claim)"


class DynamoCallNotes:
    """CallNotes of one agent. `client` should fail fast: it is asked before each call."""

    def __init__(
        self, agent: str, client: "DynamoDBClient", *, control_table: str, clock: Clock
    ) -> None:
        self._agent = agent
        self._client = client
        self._table = control_table
        self._clock = clock

    def begin(self, key: str, claim: int) -> Begun:
        """Note that a request of the claim with this number is about to call the service.

        Raises TryAgain and CallRefused.
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
        """Let no request under this key of this claim, or an earlier one, call any more.

        Only where no call is noted but, where `begun`, the caller's own. Raises TryAgain and
        CallRefused.
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
            # A close whose answer was lost finds itself, and a copy of an older request what has
            # been closed since.
            row = ItemReader(row_of(refused), record)
            return row.number("Calls", 0) == 0 and row.number("ClosedUpTo", 0) >= claim
        return True

    def _record(self, key: str) -> str:
        return f"calls#{self._agent}#{key}"

    def _expires(self) -> "Value":
        return number((self._clock() + KEPT_FOR) // SECOND)

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        try:
            with aws_errors(doing):
                yield
        except (TryAgain, CallRefused) as error:
            count("CallNotesFailed")
            logger().warning("a note of a call could not be written", extra=where(error))
            raise
