"""The price table and what is assumed beside it, as `prices.toml` says them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("prices.toml")


@dataclass(frozen=True, slots=True)
class Price:
    """`usd` for `per` of these units, and the page that says so."""

    usd: float
    per: float
    unit: str
    source: str


@dataclass(frozen=True)
class Assumed:
    """What neither a price list nor a measurement on one machine says; prices.toml says why."""

    dynamodb_ms: float
    sqs_ms: float
    processor_mb: float
    platform_log_bytes: float
    log_line_overhead: float
    logs_compressed_to: float
    pollers: float
    poll_seconds: float
    month_seconds: float


@dataclass(frozen=True)
class Prices:
    """List prices of one region on one day."""

    region: str
    dated: str
    prices: Mapping[str, Price]
    assumed: Assumed

    def usd(self, name: str, amount: float) -> float:
        """What so many units cost. Raises KeyError for a price that is not in the table."""
        price = self.prices[name]
        return amount * price.usd / price.per


@cache
def load_prices() -> Prices:
    """The table that comes with this console."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return Prices(
        region=found["region"],
        dated=found["dated"].isoformat(),
        prices={name: Price(**price) for name, price in found["price"].items()},
        assumed=Assumed(**found["assumed"]),
    )
