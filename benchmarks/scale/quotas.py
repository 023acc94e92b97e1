"""The quotas and limits of AWS, from `quotas.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("quotas.toml")


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of AWS."""

    value: int
    unit: str
    ask: bool
    """Whether AWS raises it on request."""
    source: str
    """The page of the AWS documentation."""


@dataclass(frozen=True)
class Quotas:
    """All quotas, as of the date `dated`."""

    dated: str
    by_name: Mapping[str, Quota]

    def __getitem__(self, name: str) -> int:
        """Return the value of a quota. Raises KeyError if it is not in the table."""
        return self.by_name[name].value


@cache
def load_quotas() -> Quotas:
    """Read the quotas from `quotas.toml`."""
    found = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return Quotas(
        dated=found["dated"].isoformat(),
        by_name={name: Quota(**each) for name, each in found["quota"].items()},
    )
