"""A rate of calls that holds for all instances of an agent together: places in one row.

The row `rate#<agent>` says when the next call may be made. Whoever takes that place moves it on by
one interval, in one conditional write, so no two take the same; where it lies in the past, the
place is now. Calls are so spaced evenly, and no pause is saved up for a burst.

Who would have to wait longer than a Lambda should be paid to sleep gets no place. It is told
another time to come, each its own, an interval after the one before (`ReturnAt`): so what a long
queue holds comes back at the pace at which it can be served, and not all of it every two seconds.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from roundsman.agents.guard import HeldBack, NoPlace
from roundsman.aws.dynamodb.codec import Item, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import ConditionFailed, aws_errors, row_of
from roundsman.aws.observability import count, logger, where
from roundsman.model.instants import MINUTE, SECOND
from roundsman.ports import Clock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

LONGEST_WAIT = 2 * SECOND  # more costs more in Lambda than the requests of giving it back
ROOM = SECOND  # left for the call after its turn: cut off, it would tell against a healthy service
LONGEST_RETURN = 10 * MINUTE  # beyond it what was said long ago would no longer be true
MICROSECOND = 1_000  # of them in a ms; places lie closer together than a ms at high rates
MOST_TRIES = 4

IS_FREE_NOW = "attribute_not_exists(NextAt) OR NextAt < :now"
IS_SOON = "NextAt >= :now AND NextAt <= :latest"
RETURN_IS_AHEAD = "ReturnAt >= :first AND ReturnAt <= :latest"


class Rate:
    """At most `calls_per_second` for all instances that share the table; `sleep` takes ms."""

    def __init__(
        self,
        agent: str,
        client: "DynamoDBClient",
        *,
        control_table: str,
        calls_per_second: float,
        clock: Clock,
        sleep: Callable[[int], None],
    ) -> None:
        self._agent = agent
        self._client = client
        self._table = control_table
        self._record = f"rate#{agent}"
        self._key: Item = {"ControlId": text(self._record)}
        self._said = f"{calls_per_second:g}"
        self._interval = -int(-SECOND * MICROSECOND // calls_per_second)  # rounded up
        self._clock = clock
        self._sleep = sleep
        self._next_at = 0

    def wait(self, *, ends_at: int, longest: int = LONGEST_WAIT) -> None:
        """Take a place and wait for it.

        Raises NoPlace where it is more than `longest` ms off, or would leave the call no room
        before `ends_at` (epoch ms): a second, or half of what there is. Where no place can be
        asked for, the call passes.
        """
        try:
            place = self._place(ends_at, longest)
        except HeldBack:
            raise
        except Exception as error:  # noqa: BLE001  # a limit must not stop what it limits
            count("RateFailed")
            logger().warning("no place could be asked for; the call passes", extra=where(error))
            return
        wait = -(-place // MICROSECOND) - self._clock()
        if wait > 0:
            self._sleep(wait)

    def _place(self, ends_at: int, longest: int) -> int:
        """The instant of this call, in microseconds. A place whose answer is lost stays empty."""
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
        raise NoPlace(
            f"more than {self._said} calls a second of {self._agent}", until=self._return_at()
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
        """The row after the write; None where the condition did not hold, NextAt then seen."""
        try:
            with aws_errors(f"asking for a place among the calls of {self._agent}"):
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
        """When to come again (epoch ms): each its own time, after all that were given before."""
        now = self._clock() * MICROSECOND
        first = max(self._next_at, now + self._interval)
        try:
            at = self._take_return(first, latest=now + LONGEST_RETURN * MICROSECOND)
        except Exception as error:  # noqa: BLE001  # then they come back together
            logger().warning("no time to come again could be noted", extra=where(error))
            at = first
        return -(-at // MICROSECOND)

    def _take_return(self, first: int, latest: int) -> int:
        """After the last one that is known; from the first on where that is past, or too far."""
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
