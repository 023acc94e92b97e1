"""Computes all that `roundsman cost --orders-per-month` shows."""

from dataclasses import dataclass, replace

from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import (
    Bill,
    Rival,
    Units,
    Wanted,
    bill_of,
    rivals_of,
    units_of,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.volumes import Volumes, volumes_of


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a month, and of other months."""

    wanted: Wanted
    bill: Bill
    units: Units
    usd_idle: float
    """The cost of a month without orders."""
    volumes: Volumes
    rivals: tuple[Rival, ...]


def estimate_of(wanted: Wanted, figures: Figures, prices: Prices) -> Estimate:
    """Return the estimate for the orders and the stack that are `wanted`."""
    idle = replace(wanted, orders_per_month=0)
    return Estimate(
        wanted,
        bill_of(wanted, figures, prices),
        units_of(wanted, figures, prices),
        bill_of(idle, figures, prices).usd(),
        volumes_of(wanted, figures, prices),
        rivals_of(wanted, figures, prices),
    )
