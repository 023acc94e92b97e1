"""AWS's quotas and limits, as `quotas.toml` says them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("quotas.toml")


@dataclass(frozen=True, slots=True)
class Quota:
    """`value` of these units; whether AWS raises it on request, and the page that says so."""

    value: int
    unit: str
    ask: bool
    source: str


@dataclass(frozen=True)
class Quotas:
    """All of them, as they stood on one day."""

    dated: str
    by_name: Mapping[str, Quota]

    def __getitem__(self, name: str) -> int:
        """The value of one. Raises KeyError for one that is not in the table."""
        return self.by_name[name].value


@cache
def load_quotas() -> Quotas:
    """The table that comes with this simulation."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return Quotas(
        dated=found["dated"].isoformat(),
        by_name={name: Quota(**each) for name, each in found["quota"].items()},
    )
