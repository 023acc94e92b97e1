"""What orders cost, for scripts."""

from roundsman_console.facts.cost.documents import (
    CostCheaper,
    CostEstimate,
    CostSpent,
    CostVolume,
)
from roundsman_console.facts.cost.estimate import Estimate
from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import STANDING
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import Spent
from roundsman_console.facts.cost.volumes import VOLUMES, Volumes


def estimate_for_scripts(estimate: Estimate, figures: Figures, prices: Prices) -> CostEstimate:
    """Return the bill for scripts. Amounts are per month; those in `order`, per order."""
    bill, volumes = estimate.bill, estimate.volumes
    return CostEstimate(
        region=prices.region,
        prices_dated=prices.dated,
        counted_on=figures.recorded_on,
        asked=estimate.wanted,
        order=estimate.units,
        usd_per_month=bill.usd(),
        usd_per_million=bill.usd_per_million,
        usd_standing=bill.usd(STANDING),
        usd_idle=estimate.usd_idle,
        lines=bill.lines,
        volumes=[_volume(volumes, at, orders) for at, orders in enumerate(VOLUMES)],
        cheaper_from=[CostCheaper(*pair, orders) for pair, orders in volumes.cheaper_from.items()],
        elsewhere=estimate.rivals,
    )


def _volume(volumes: Volumes, at: int, orders: int) -> CostVolume:
    profiles = {name: round(usd[at], 4) for name, usd in volumes.profiles.items()}
    elsewhere = {name: round(usd[at], 4) for name, usd in volumes.rivals.items()}
    return CostVolume(orders, profiles, elsewhere)


def spent_for_scripts(spent: Spent, prices: Prices) -> CostSpent:
    """Return the cost of what a stack has used, for scripts."""
    return CostSpent(
        region=prices.region,
        prices_dated=prices.dated,
        days=spent.days,
        orders=spent.orders,
        usd=spent.usd(),
        usd_per_million=spent.usd_per_million,
        lines=spent.lines,
        workflows=spent.workflows,
    )
