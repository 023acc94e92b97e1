"""The rows of ControlTable with the rates of tenants at agents.

- `rate#<agent>#<hash>`: the places of one tenant's calls (`aws.guard.rate_limit`), and until when
  an operator has lifted its rate. It expires once nothing was written for ROW_KEPT.
- `rate#<agent>#`: which tenants have been at their rate. A row of the first kind cannot be listed,
  so this one has the hash and an order of each of the last, in SLOTS places by their hashes. The
  order tells a person the name of the tenant.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import Item, number, text
from roundsman.aws.dynamodb.item_reader import ItemReader
from roundsman.aws.errors import aws_errors
from roundsman.model.instants import DAY, SECOND
from roundsman.model.tenant_rate import tenant_key

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ID = "ControlId"
MICROSECOND = 1_000  # per ms
SLOTS = 16
ROW_KEPT = 2 * DAY
"""Longer than a rate is lifted for (`LONGEST_LIFT` of the console)."""


def tenant_row_id(agent: str, key: str) -> str:
    """Return the id of the row of the tenant with this key; of the list of tenants if empty."""
    return f"rate#{agent}#{key}"


def expires_at(now: int) -> int:
    """Return when a row that is written now (epoch ms) expires, in epoch seconds."""
    return (now + ROW_KEPT) // SECOND


@dataclass(frozen=True, slots=True)
class TenantRow:
    """What is known of the rate of one tenant at an agent. Instants are epoch ms."""

    returns_until: int = 0
    """When the last call that was given back comes again."""
    lifted_until: int = 0
    by: str = ""
    """Who has lifted the rate; empty if nobody has."""


class DynamoTenantRates:
    """The rates of the tenants at agents, as operators see and lift them."""

    def __init__(self, client: "DynamoDBClient", *, control_table: str) -> None:
        self._client = client
        self._table = control_table

    def read(self, agent: str, key: str) -> TenantRow:
        """Return the row of the tenant with this key."""
        row = self._row(tenant_row_id(agent, key))
        return TenantRow(
            row.number("ReturnAt", 0) // MICROSECOND,
            row.number("LiftedUntil", 0),
            row.text("LiftedBy", ""),
        )

    def lift(self, agent: str, tenant: str, *, until: int, by: str, now: int) -> None:
        """Let all calls of the tenant pass until then; at once again if that is in the past."""
        self._set(
            tenant_row_id(agent, tenant_key(agent, tenant)),
            "SET LiftedUntil = :until, LiftedBy = :by, ExpiresAt = :expires",
            {":until": number(until), ":by": text(by), ":expires": number(expires_at(now))},
        )

    def note(self, agent: str, key: str, order: str) -> None:
        """Note that the tenant with this key is at its rate, as this order shows."""
        slot = f"At{int(key[:4], 16) % SLOTS}"
        self._set(
            tenant_row_id(agent, ""), f"SET {slot} = :seen", {":seen": text(f"{key} {order}")}
        )

    def noted(self, agent: str) -> Iterator[tuple[str, str]]:
        """Yield the key and an order of each tenant that was noted last."""
        row = self._row(tenant_row_id(agent, ""))
        for slot in range(SLOTS):
            key, _, order = row.text(f"At{slot}", "").partition(" ")
            if order:
                yield key, order

    def _row(self, name: str) -> ItemReader:
        with aws_errors("reading the rate of a tenant"):
            found = self._client.get_item(TableName=self._table, Key={ID: text(name)})
        return ItemReader(found.get("Item", {}), name)

    def _set(self, name: str, update: str, values: Item) -> None:
        with aws_errors("storing the rate of a tenant"):
            self._client.update_item(
                TableName=self._table,
                Key={ID: text(name)},
                UpdateExpression=update,
                ExpressionAttributeValues=values,
            )
