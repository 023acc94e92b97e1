"""Computes all that `roundsman cost` prints: the bill of a month, and what other months cost.

The functions are pure.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeAlias

from roundsman_console.base.constraints import Count, Date
from roundsman_console.base.result import Shown, Unit
from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import (
    MILLION,
    PROFILES,
    STANDING,
    BillLine,
    Rival,
    Units,
    Usd,
    UsdPerMillion,
    Wanted,
    bill_of,
    rivals_of,
    units_of,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import CostSpent

VOLUMES = (0, 10_000, 100_000, 1_000_000, 10_000_000)
"""Orders a month."""
MOST_COMPARED = 1_000_000_000
"""The greatest number of orders a month at which it is tried whether a profile is cheaper."""


def _rounded(by: Mapping[str, float]) -> dict[str, float]:
    return {name: round(usd, 4) for name, usd in by.items()}


UsdBy: TypeAlias = Annotated[
    Mapping[str, float], Shown(unit=Unit(Mapping[str, float], _rounded, str))
]
"""Amounts in USD by name, to a hundredth of a cent in JSON."""


@dataclass(frozen=True, slots=True)
class CostVolume:
    """The cost of a month with another number of such orders, in USD."""

    orders_per_month: Count
    profiles: UsdBy
    """By profile."""
    elsewhere: UsdBy
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
    """The estimated bill of a month, without payloads."""

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


@dataclass(frozen=True, slots=True)
class Cost:
    """Costs in USD at list prices."""

    estimate: CostEstimate | None = None
    """The estimated bill of a month; null if the usage of a stack was asked for."""
    spent: CostSpent | None = None
    """The cost of what a deployed stack has used; null if an estimate was asked for."""


def estimate_of(wanted: Wanted, figures: Figures, prices: Prices) -> CostEstimate:
    """Return the estimate for the orders and the stack that are `wanted`."""
    bill = bill_of(wanted, figures, prices)
    volumes, cheaper_from = volumes_of(wanted, figures, prices)
    return CostEstimate(
        region=prices.region,
        prices_dated=prices.dated,
        counted_on=figures.recorded_on,
        asked=wanted,
        order=units_of(wanted, figures, prices),
        usd_per_month=bill.usd(),
        usd_per_million=bill.usd_per_million,
        usd_standing=bill.usd(STANDING),
        usd_idle=bill_of(replace(wanted, orders_per_month=0), figures, prices).usd(),
        lines=bill.lines,
        volumes=volumes,
        cheaper_from=cheaper_from,
        elsewhere=rivals_of(wanted, figures, prices),
    )


def volumes_of(
    wanted: Wanted, figures: Figures, prices: Prices
) -> tuple[list[CostVolume], list[CostCheaper]]:
    """Return what orders like `wanted` cost at each of VOLUMES, and from which number on is less.

    The number of orders in `wanted`, and its profile, are not used.
    """
    rivals = {one.name: one.usd_per_million for one in rivals_of(wanted, figures, prices)}

    def usd(profile: str, orders: float) -> float:
        month = replace(wanted, profile=profile, orders_per_month=orders)
        return bill_of(month, figures, prices).usd()

    def more(profile: str, rival: str) -> Callable[[int], float]:
        """What the other service costs more than the profile, by the number of orders."""
        return lambda orders: rivals[rival] * orders / MILLION - usd(profile, orders)

    volumes = [
        CostVolume(
            orders,
            {profile: usd(profile, orders) for profile in PROFILES},
            {rival: each * orders / MILLION for rival, each in rivals.items()},
        )
        for orders in VOLUMES
    ]
    cheaper = [
        CostCheaper(profile, rival, _positive_from(more(profile, rival)))
        for profile in PROFILES
        for rival in rivals
    ]
    return volumes, cheaper


def _positive_from(more: Callable[[int], float]) -> int | None:
    """Return the least number of orders at which `more` is positive; None if it never is.

    It stays so: the more orders there are, the less one of them costs with its share of the rest.
    """
    least, most = 0, MOST_COMPARED
    if more(most) <= 0:
        return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if more(middle) > 0 else (middle, most)
    return most
