"""Finds orders by their search keys, in the indexes of OrdersTable, and keeps the secret of keys.

An order row has each of its search keys (`roundsman.model.search`) as an attribute of its own,
which one index has as its key, with the time when the order was stored. So an entry is stored with
its order in one write, for one write unit, changes and goes with it, and there is none without an
order. A stack has as many of the indexes as its parameter `SearchFields` says.

The secret under which masked values are hashed is the row `search` of ControlTable. It is made when
the first order needs it.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_bytes
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import SEARCH_ATTRIBUTES, Item, text
from roundsman.aws.dynamodb.control import ID, NO_SUCH_ROW
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.errors import UnreadableRecord
from roundsman.model.instants import MINUTE
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import QueryInputTypeDef

SEARCH = "search"
"""The row of ControlTable with the secret."""

INDEXES = tuple(name.lower() for name in SEARCH_ATTRIBUTES)
"""The names of the indexes: `search1` to `search3`."""

END_OF_TIME = 10**15
"""Epoch ms; far beyond any instant of an order."""

KEPT_FOR = 5 * MINUTE
"""How long an instance relies on a secret that it has read, in ms: a restore takes longer."""


class DynamoSearchSecret:
    """The secret of the search keys of masked values, in ControlTable. It never changes."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        control_table: str,
        clock: Clock,
        made: Callable[[], bytes] = token_bytes,
    ) -> None:
        self._client = client
        self._table = control_table
        self._clock = clock
        self._made = made
        self._kept: tuple[bytes, int] | None = None

    def __call__(self) -> bytes:
        """Return the secret; the first caller of a stack makes it.

        A restore may have removed it: then the one that this instance knows is stored again. Raises
        TryAgain, CallRefused and UnreadableRecord.
        """
        now = self._clock()
        if self._kept is None or now - self._kept[1] >= KEPT_FOR:
            while (found := self.stored()) is None:
                self._store(self._made() if self._kept is None else self._kept[0])
            self._kept = (found, now)
        return self._kept[0]

    def stored(self) -> bytes | None:
        """Return the stored secret; None if no order has needed one. Raises UnreadableRecord."""
        with aws_errors("reading the secret of search"):
            found = self._client.get_item(
                TableName=self._table, Key={ID: text(SEARCH)}, ConsistentRead=True
            )
        if "Item" not in found:
            return None
        secret = found["Item"].get("Secret", {}).get("B")
        if not isinstance(secret, bytes):
            raise UnreadableRecord(SEARCH, "Secret", "is not binary")
        return secret

    def _store(self, secret: bytes) -> None:
        with suppress(ConditionFailed), aws_errors("storing the secret of search"):
            self._client.put_item(
                TableName=self._table,
                Item={ID: text(SEARCH), "Secret": {"B": secret}},
                ConditionExpression=NO_SUCH_ROW,
            )


@dataclass(frozen=True, slots=True)
class FoundOrder:
    """An entry of an index."""

    order_id: str
    created_at: int
    """When the order was stored, in epoch ms."""


def look_for_orders(
    client: "DynamoDBClient",
    orders_table: str,
    index: str,
    key: str,
    *,
    since: int = 0,
    until: int = END_OF_TIME,
    newest_first: bool = False,
    page: int | None = None,
) -> Iterator[list[FoundOrder]]:
    """Yield the pages of the orders with this search key that one of INDEXES has, sorted by time.

    Only those stored from `since` to `until` (epoch ms). Each page is read when the iterator
    reaches it; it may lag behind by about a second. Raises TryAgain, and CallRefused if the stack
    does not have the index.
    """
    values: Item = {":key": text(key), ":since": {"N": str(since)}, ":until": {"N": str(until)}}
    attribute = SEARCH_ATTRIBUTES[INDEXES.index(index)]
    query: QueryInputTypeDef = {
        "TableName": orders_table,
        "IndexName": index,
        "KeyConditionExpression": f"{attribute} = :key AND CreatedAt BETWEEN :since AND :until",
        "ExpressionAttributeValues": values,
        "ScanIndexForward": not newest_first,
    }
    if page is not None:
        query["Limit"] = page
    while True:
        with aws_errors("searching orders"):
            found = client.query(**query)
        yield [
            FoundOrder(item["OrderID"]["S"], int(item["CreatedAt"]["N"])) for item in found["Items"]
        ]
        if "LastEvaluatedKey" not in found:
            return
        query["ExclusiveStartKey"] = found["LastEvaluatedKey"]
