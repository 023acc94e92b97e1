"""What `roundsman cost` prints with --json: costs in USD at list prices."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from roundsman_console.base.constraints import Count, Date
from roundsman_console.base.result import Shown, rounded
from roundsman_console.facts.cost.model import (
    BillLine,
    Rival,
    Rounded,
    Units,
    Usd,
    UsdPerMillion,
    Wanted,
)
from roundsman_console.facts.cost.usage import OfWorkflow


@dataclass(frozen=True, slots=True)
class CostVolume:
    """The cost of a month with another number of such orders, in USD."""

    orders_per_month: Count
    profiles: Mapping[str, float]
    """By profile."""
    elsewhere: Mapping[str, float]
    """By the name of the service."""


@dataclass(frozen=True, slots=True)
class CostCheaper:
    """From how many orders a month on a profile costs less than another service."""

    profile: str
    elsewhere: str
    orders_per_month: int | None
    """Null if it costs more at a thousand million orders too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """The estimated bill of a month."""

    region: str
    """The AWS region whose list prices are used."""
    prices_dated: Date
    counted_on: Date
    """When the usage of an order was measured."""
    asked: Wanted
    order: Units
    usd_per_month: Usd
    usd_per_million: UsdPerMillion
    """The cost of a million orders, without the standing cost."""
    usd_standing: Usd
    """The cost of a month that does not depend on the number of orders, if there are some."""
    usd_idle: Usd
    """The cost of a month without orders."""
    lines: Sequence[BillLine]
    volumes: Sequence[CostVolume]
    cheaper_from: Sequence[CostCheaper]
    elsewhere: Sequence[Rival]


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSpent:
    """The cost of what a deployed stack has used."""

    region: str
    prices_dated: Date
    days: Annotated[float, Shown(unit=rounded(4))]
    """The length of the period."""
    orders: Rounded
    """The number of orders that were accepted in the period."""
    usd: Usd
    usd_per_million: UsdPerMillion
    """Without the standing cost; 0 if there was no order."""
    lines: Sequence[BillLine]
    workflows: Sequence[OfWorkflow]


@dataclass(frozen=True, slots=True)
class Cost:
    """Costs in USD at list prices."""

    estimate: CostEstimate | None = None
    """The estimated bill of a month; null if the usage of a stack was asked for."""
    spent: CostSpent | None = None
    """The cost of what a deployed stack has used; null if an estimate was asked for."""
