"""The rejections of order events: two rows of ControlTable for each.

`rejected#order#<order id>` has the last one of an order, `rejected#message#<message id>` that of a
message. Whoever sent the event knows its message, and finds the rejection of that event even if
another event with the same order id was rejected since.
"""

from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import expiry, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import aws_errors
from roundsman.errors import Problem
from roundsman.submission.rejections import REJECTION_KEPT_FOR, Rejection, kept_problems

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value


class DynamoRejections:
    """RejectionStore in ControlTable."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str) -> None:
        self._client = client
        self._table = control_table

    def keep(self, rejection: Rejection) -> None:
        """Keep a rejection. Raises TryAgain and CallRefused."""
        problems: list[Value] = [
            {"M": {"Path": text(one.path), "Message": text(one.message)}}
            for one in kept_problems(rejection.problems)
        ]
        for row in (_of_message(rejection.message_id), _of_order(rejection.order_id)):
            with aws_errors(f"keeping the rejection of {rejection.order_id}"):
                self._client.put_item(
                    TableName=self._table,
                    Item={
                        "ControlId": text(row),
                        "OrderId": text(rejection.order_id),
                        "MessageId": text(rejection.message_id),
                        "RejectedAt": number(rejection.rejected_at),
                        "Problems": {"L": problems},
                        "ExpiresAt": expiry(rejection.rejected_at + REJECTION_KEPT_FOR),
                    },
                )

    def of_message(self, message_id: str, now: int) -> Rejection | None:
        """Return the rejection of the event in this message; None if none is kept at `now`.

        The read is strongly consistent. Raises UnreadableRecord, TryAgain and CallRefused.
        """
        return self._read(_of_message(message_id), now)

    def of_order(self, order_id: str, now: int) -> Rejection | None:
        """Return the last rejection of an event with this order id, as `of_message`."""
        return self._read(_of_order(order_id), now)

    def _read(self, row: str, now: int) -> Rejection | None:
        with aws_errors(f"reading {row}"):
            found = self._client.get_item(
                TableName=self._table, Key={"ControlId": text(row)}, ConsistentRead=True
            )
        if "Item" not in found:
            return None
        item = ItemReader(found["Item"], row)
        rejected_at = item.number("RejectedAt")
        if rejected_at + REJECTION_KEPT_FOR <= now:
            return None
        problems = tuple(
            Problem(one.text("Path"), one.text("Message")) for one in item.list_of_maps("Problems")
        )
        return Rejection(item.text("OrderId"), item.text("MessageId"), rejected_at, problems)


def _of_message(message_id: str) -> str:
    return f"rejected#message#{message_id}"


def _of_order(order_id: str) -> str:
    return f"rejected#order#{order_id}"
