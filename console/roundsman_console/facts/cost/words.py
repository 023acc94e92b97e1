"""What orders cost, in words and in rows of a table."""

from roundsman_console.facts.cost.model import (
    STANDING,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import Spent


def amount(value: float) -> str:
    """Format a number: from 100 on without decimals, below with at most two."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")


def no_figures(spent: Spent) -> str:
    """Return the sentence about a period of which CloudWatch has no figures; empty if it has."""
    if spent.lines and spent.usd():
        return ""
    return f"CloudWatch has no figures for these {spent.days:.1f} days."


def came_words(spent: Spent) -> str:
    """Return the number of orders and the length of the period."""
    return f"{spent.orders:,.0f} orders in {spent.days:.1f} days"


def sum_words(spent: Spent) -> str:
    """Return the sums of the bill in words."""
    return (
        f"{spent.usd():,.2f} USD, {spent.usd(STANDING):,.2f} of it for waiting; "
        f"{spent.usd_per_million:,.2f} per million orders"
    )


def price_words(prices: Prices) -> str:
    """Return which prices the bill has, and what it leaves out."""
    return (
        f"List prices of {prices.region} on {prices.dated}, no free tier. Storage, alarms "
        "and custom metrics are not included; the estimate by --orders-per-month includes "
        "them."
    )


def line_rows(spent: Spent) -> list[tuple[str, str, str]]:
    """Return the part, the amount and the USD of each line, the most expensive first."""
    return [
        (f"{line.service}: {line.what}", amount(line.amount), f"{line.usd:,.2f}")
        for line in sorted(spent.lines, key=lambda line: -line.usd)
    ]


def workflow_rows(spent: Spent) -> list[tuple[str, str, str, str, str]]:
    """Return the workflow, its orders, decisions per order, USD, and USD per million orders."""
    return [
        (
            one.workflow,
            f"{one.orders:,.0f}",
            f"{one.decisions / one.orders if one.orders else 0.0:,.1f}",
            f"{one.usd:,.2f}",
            f"{one.usd_per_million:,.2f}",
        )
        for one in spent.workflows
    ]
