"""Reads `prices.toml`: the list prices of AWS, and the assumptions of the cost model."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True, slots=True)
class Price:
    """A list price: `usd` for each `per` units."""

    usd: float
    per: float
    unit: str
    """The unit in words: `write request units, on demand`."""
    source: str
    """The URL of the page of AWS with the price."""


@dataclass(frozen=True)
class Assumed:
    """Values that are neither a list price nor measured; prices.toml gives the reasons."""

    dynamodb_ms: float
    """How long a call to DynamoDB takes, in ms."""
    sqs_ms: float
    """How long a call to SQS takes, in ms."""
    processor_mb: float
    """The memory in MB at which a Lambda function gets a whole processor."""
    platform_log_bytes: float
    """Bytes that the Lambda platform logs per invocation."""
    log_line_overhead: float
    """Bytes that CloudWatch Logs adds to each log line."""
    logs_compressed_to: float
    """The size of stored logs, as a fraction of what was sent."""
    pollers: float
    """The long polls that Lambda keeps open for each event source mapping."""
    poll_seconds: float
    """How long a long poll waits for a message."""
    month_seconds: float
    """The length of a month in seconds."""


@dataclass(frozen=True)
class Prices:
    """The list prices of one region on one day."""

    region: str
    dated: str
    """The date of the prices: `2026-11-22`."""
    prices: Mapping[str, Price]
    """The prices, by name: `sqs.request`."""
    assumed: Assumed

    def usd(self, name: str, amount: float) -> float:
        """Return the cost of `amount` units in USD. Raises KeyError for an unknown price."""
        price = self.prices[name]
        return amount * price.usd / price.per


@cache
def load_prices() -> Prices:
    """Read the price table of this version of the console, once per process."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return Prices(
        region=found["region"],
        dated=found["dated"].isoformat(),
        prices={name: Price(**price) for name, price in found["price"].items()},
        assumed=Assumed(**found["assumed"]),
    )
