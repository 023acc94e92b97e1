"""The cheapest read of a stack: does AWS answer, what time is it there, when was the last visit?

It is one row, with the leases of the supervisors.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from roundsman.aws.dynamodb.control import DynamoLeases
from roundsman.errors import RoundsmanError
from roundsman.model.instants import EPOCH, milliseconds
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InspectorError

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PING_SECONDS = 2
"""How long AWS may take to answer."""


@dataclass(frozen=True, slots=True)
class Ping:
    """What one read of AWS has found."""

    visited_at: int | None
    """When the last complete visit of a shard by a supervisor began (epoch ms); None if there was
    none."""
    clock_ahead: int | None = None
    """By how much the clock of this machine is ahead of that of AWS, in ms; None if it is not
    known."""


class StackPing:
    """Reads the row of leases of one ControlTable, in one try.

    `compares_clocks` is False for an AWS on this machine, whose clock need not be that of AWS.
    """

    def __init__(self, control_table: str, *, compares_clocks: bool) -> None:
        self._table = control_table
        once = Config(
            connect_timeout=PING_SECONDS,
            read_timeout=PING_SECONDS,
            retries={"mode": "standard", "total_max_attempts": 1},  # the next ping is the retry
        )
        client: DynamoDBClient = boto3.client("dynamodb", config=once)
        if compares_clocks:
            client.meta.events.register("after-call", self._note_date)
        self._leases = DynamoLeases(client, control_table=control_table)
        self._clock_ahead: int | None = None

    def aws_time(self, at: int) -> int:
        """Return the instant by the clock of AWS when it is `at` by that of this machine (epoch
        ms), as far as the last answer tells.
        """
        return at - (self._clock_ahead or 0)

    def read(self) -> Ping:
        """Read the row. Raises InspectorError if there is no such table, and else as `aws_errors`
        does.
        """
        try:
            leases = self._leases.read()
        except RoundsmanError as error:
            if _is_not_found(error.__cause__):
                raise InspectorError(
                    f"AWS has no table {self._table} in this account and region: the stack was "
                    "deleted, or the credentials or the region have changed."
                ) from error
            raise
        visits = [lease.visited_at for lease in leases.by_shard.values()]
        return Ping(max(visits, default=0) or None, self._clock_ahead)

    def _note_date(self, parsed: Mapping[str, object], **_: object) -> None:
        found = parsed.get("ResponseMetadata")
        headers = found.get("HTTPHeaders") if isinstance(found, dict) else None
        date = headers.get("date", "") if isinstance(headers, dict) else ""
        self._clock_ahead = ahead_of(date, now())


def ahead_of(date: str, at: int) -> int | None:
    """Return how many ms `at` (epoch ms) is after the date of an answer; None without such a date.

    A date is a whole second.
    """
    try:
        return at - milliseconds(parsedate_to_datetime(date) - EPOCH)
    except (TypeError, ValueError):  # it is text of a service, or of what stands before it
        return None


def _is_not_found(error: BaseException | None) -> bool:
    return (
        isinstance(error, ClientError)
        and error.response.get("Error", {}).get("Code") == "ResourceNotFoundException"
    )
