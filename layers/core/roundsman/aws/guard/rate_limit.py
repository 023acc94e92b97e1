"""A rate limit on the calls of all instances of an agent together, in one row of ControlTable.

The row `rate#<agent>` stores when the next call may be made: the next *place* (`NextAt`). A caller
takes the place and moves it by one interval, in one conditional write, so no two callers take the
same place. If it is in the past, the place is now. Calls are thus evenly spaced, and idle time is
not saved for a burst.

Callers that would wait more than 2 s (4 s for a later call of the same attempt) are rejected with a
retry time, because a longer sleep costs more in Lambda than giving the request back. Each gets a
retry time of its own, one interval after the one before (`ReturnAt`), so a long backlog comes back
at the rate at which it can be served, and not all at once every two seconds.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, ClassVar

from roundsman.agents.guard import CallHeld, RateLimited
from roundsman.aws.dynamodb.codec import Item, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import ConditionFailed, aws_errors, row_of
from roundsman.aws.observability import count, logger, where
from roundsman.model.instants import MINUTE, SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

LONGEST_WAIT = 2 * SECOND  # ms; a longer sleep costs more than giving the request back
ROOM = SECOND  # ms for the call itself; one that is cut off counts against a healthy service
LONGEST_RETURN = 10 * MINUTE  # ms; later retry times would be out of date
MICROSECOND = 1_000  # per ms; at high rates places are less than 1 ms apart
MOST_TRIES = 4

IS_FREE_NOW = "attribute_not_exists(NextAt) OR NextAt < :now"
IS_SOON = "NextAt >= :now AND NextAt <= :latest"
RETURN_IS_AHEAD = "ReturnAt >= :first AND ReturnAt <= :latest"


class RateLimit:
    """At most `calls_per_second` for all instances that share the table. `sleep` takes ms.

    `record` is the id of its row, if that is not the one of the agent.
    """

    longest_return: ClassVar[int] = LONGEST_RETURN
    limited: ClassVar[type[RateLimited]] = RateLimited
    whose: ClassVar[str] = ""
    """Follows the limit in what is said of a call that is rejected."""

    def __init__(
        self,
        agent: str,
        client: "DynamoDBClient",
        *,
        control_table: str,
        calls_per_second: float,
        clock: Clock,
        sleep: Callable[[int], None],
        record: str | None = None,
    ) -> None:
        self._agent = agent
        self._client = client
        self._table = control_table
        self._record = record or f"rate#{agent}"
        self._key: Item = {"ControlId": text(self._record)}
        self._limit_text = f"{calls_per_second:g}"
        self._interval = -int(-SECOND * MICROSECOND // calls_per_second)  # rounded up
        self._clock = clock
        self._sleep = sleep
        self._next_at = 0

    def wait(self, *, ends_at: int, longest: int = LONGEST_WAIT) -> None:
        """Take a place and sleep until it.

        Raises RateLimited if the place is more than `longest` ms ahead. Raises it also if the place
        leaves the call too little time before `ends_at` (epoch ms): less than a second, and less
        than half of the time that is left now. If the row cannot be written, the call passes.
        """
        try:
            place = self._place(ends_at, longest)
        except CallHeld:
            raise
        except Exception as error:  # noqa: BLE001  # it must not cause an outage
            count("RateFailed")
            logger().warning(
                "the rate limit could not be applied; the call is allowed", extra=where(error)
            )
            return
        wait = -(-place // MICROSECOND) - self._clock()
        if wait > 0 and not self.is_lifted():
            self._sleep(wait)

    def is_lifted(self) -> bool:
        """Return whether the limit is not applied now, as far as the row was read."""
        return False

    def _place(self, ends_at: int, longest: int) -> int:
        """Take a place, in epoch microseconds. If the answer is lost, the place stays unused."""
        for _ in range(MOST_TRIES):
            now = self._clock() * MICROSECOND
            left = ends_at * MICROSECOND - now
            spare = max(left - ROOM * MICROSECOND, left // 2)
            latest = now + min(longest * MICROSECOND, spare)
            place = self._take_now(now) if self._next_at < now else self._take_next(now, latest)
            if place is not None:
                self._next_at = place + self._interval
                return place
            if self._next_at > latest:
                break
        if self.is_lifted():
            return now
        limit = f"{self._limit_text} calls per second{self.whose}"
        raise self.limited(
            f"{self._agent} has reached its limit of {limit}", until=self._return_at()
        )

    def _take_now(self, now: int) -> int | None:
        after = {":after": number(now + self._interval), ":now": number(now)}
        return now if self._written("SET NextAt = :after", IS_FREE_NOW, after) else None

    def _take_next(self, now: int, latest: int) -> int | None:
        values = {
            ":interval": number(self._interval),
            ":now": number(now),
            ":latest": number(latest),
        }
        row = self._written("SET NextAt = NextAt + :interval", IS_SOON, values)
        return row.number("NextAt") - self._interval if row else None

    def _written(self, update: str, condition: str, values: Item) -> ItemReader | None:
        """The row after the write; None if the condition failed: then `_next_at` is as stored."""
        try:
            with aws_errors(f"updating the rate limit of {self._agent}"):
                found = self._client.update_item(
                    TableName=self._table,
                    Key=self._key,
                    UpdateExpression=update,
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as refused:
            self._next_at = self._reader(row_of(refused)).number("NextAt", 0)
            return None
        return self._reader(found.get("Attributes", {}))

    def _return_at(self) -> int:
        """The retry time (epoch ms) of a rejected call: its own, after all earlier ones."""
        now = self._clock() * MICROSECOND
        first = max(self._next_at, now + self._interval)
        try:
            at = self._take_return(first, latest=now + self.longest_return * MICROSECOND)
        except Exception as error:  # noqa: BLE001  # the calls then come back together
            logger().warning("the retry time could not be stored", extra=where(error))
            at = first
        return -(-at // MICROSECOND)

    def _take_return(self, first: int, latest: int) -> int:
        """The next retry time in microseconds; `first` if that is earlier or after `latest`."""
        values = {
            ":interval": number(self._interval),
            ":first": number(first),
            ":latest": number(latest),
        }
        row = self._written("SET ReturnAt = ReturnAt + :interval", RETURN_IS_AHEAD, values)
        if row is None:
            after = {":after": number(first + self._interval)}
            self._written("SET ReturnAt = :after", "attribute_exists(ControlId)", after)
            return first
        return row.number("ReturnAt") - self._interval

    def _reader(self, row: "Mapping[str, Value]") -> ItemReader:
        return ItemReader(row, self._record)
