"""A rate limit on the calls for each tenant, for all instances of an agent together.

It is that of the agent (`roundsman.aws.guard.rate_limit`) with a row for each tenant, and is asked
before it, so that the calls of one tenant above its rate take no places of the others. Each call
that is rejected has a retry time of its own within LONGEST_RETURN, so a long backlog asks once an
hour. A call waits at most MOST_ASLEEP intervals, so that one tenant occupies few instances.
"""

from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING

from roundsman.agents.guard import TenantAtRate
from roundsman.aws.dynamodb.codec import Item, number
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.dynamodb.tenant_rates import DynamoTenantRates, expires_at, tenant_row_id
from roundsman.aws.guard.rate_limit import LONGEST_WAIT, RateLimit
from roundsman.aws.observability import count, logger, where
from roundsman.model.instants import SECOND
from roundsman.model.tenant_rate import LONGEST_RETURN, tenant_key
from roundsman.ports import Clock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value

MOST_ASLEEP = 3
"""About how many calls of one tenant wait for their places at the same time, each in an instance of
the function."""

MOST_KEPT = 1_000
"""The tenants whose next places one instance remembers, which saves a write."""


class TenantRate(RateLimit):
    """The rate of one tenant."""

    longest_return = LONGEST_RETURN
    limited = TenantAtRate
    whose = " for the tenant of the order"
    began = False
    """Whether the call that was rejected last is the first of a line."""
    _lifted_until = 0

    def is_lifted(self) -> bool:
        """Return whether an operator has lifted the rate, as far as the row was read."""
        return self._lifted_until > self._clock()

    def _written(self, update: str, condition: str, values: Item) -> ItemReader | None:
        values = {**values, ":expires": number(expires_at(self._clock()))}
        return super()._written(f"{update}, ExpiresAt = :expires", condition, values)

    def _take_return(self, first: int, latest: int) -> int:
        found = super()._take_return(first, latest)
        self.began = found == first
        return found

    def _reader(self, row: "Mapping[str, Value]") -> ItemReader:
        found = super()._reader(row)
        self._lifted_until = found.number("LiftedUntil", 0)
        return found


@dataclass(eq=False)
class TenantRates:
    """At most `calls_per_second` for each tenant. `sleep` takes ms."""

    agent: str
    client: "DynamoDBClient"
    _: KW_ONLY
    control_table: str
    calls_per_second: float
    clock: Clock
    sleep: "Callable[[int], None]"
    _kept: dict[str, TenantRate] = field(default_factory=dict, init=False)

    def wait(self, tenant: str, order: str, *, ends_at: int, longest: int) -> None:
        """Take a place of the tenant and sleep until it. Raises TenantAtRate as `RateLimit.wait`.

        `order` is the order whose step calls.
        """
        key = tenant_key(self.agent, tenant)
        rate = self._of(key)
        asleep = int(MOST_ASLEEP * SECOND / self.calls_per_second)
        try:
            rate.wait(ends_at=ends_at, longest=min(longest, longest * asleep // LONGEST_WAIT))
        except TenantAtRate:
            if rate.began:
                self._note(key, order)
            raise

    def _of(self, key: str) -> TenantRate:
        if key not in self._kept and len(self._kept) >= MOST_KEPT:
            self._kept.clear()
        return self._kept.setdefault(
            key,
            TenantRate(
                self.agent,
                self.client,
                control_table=self.control_table,
                calls_per_second=self.calls_per_second,
                clock=self.clock,
                sleep=self.sleep,
                record=tenant_row_id(self.agent, key),
            ),
        )

    def _note(self, key: str, order: str) -> None:
        """Note for operators that the tenant is at its rate."""
        try:
            rows = DynamoTenantRates(self.client, control_table=self.control_table)
            rows.note(self.agent, key, order)
        except Exception as error:  # noqa: BLE001  # only a list lacks it
            count("TenantMarksFailed")
            logger().warning("a tenant at its rate could not be noted", extra=where(error))
