"""Formats the cost of a deployed stack for people (text) and for scripts (JSON)."""

from rich.table import Table

from roundsman_console.cost.format import amount, line_document, rounded
from roundsman_console.cost.model import STANDING
from roundsman_console.cost.prices import Prices
from roundsman_console.cost.usage import Spent
from roundsman_console.documents import CostSpentDocument
from roundsman_console.sanitize import plain
from roundsman_console.terminal import results


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


def show_spent(spent: Spent, stack: str, prices: Prices) -> None:
    """Print the cost by part, then by workflow. `stack` is the name of the stack."""
    console = results()
    nothing = no_figures(spent)
    if nothing:
        console.print(f"{stack}: {nothing}")
        return
    console.print(f"{stack}: {came_words(spent)}\n")
    table = Table(box=None, pad_edge=False)
    table.add_column("Part", overflow="fold")
    for heading in ("Amount", "USD"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in line_rows(spent):
        table.add_row(*row)
    console.print(table)
    console.print(f"\n{sum_words(spent)}")
    if spent.workflows:
        console.print()
        console.print(_workflows(spent))
    console.print(f"\n{price_words(prices)}")


def _workflows(spent: Spent) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Workflow", overflow="fold")
    for heading in ("Orders", "Decisions per order", "USD", "USD per million"):
        table.add_column(heading, justify="right", no_wrap=True)
    for workflow, *figures in workflow_rows(spent):
        table.add_row(plain(workflow), *figures)
    return table


def spent_document(spent: Spent, prices: Prices) -> CostSpentDocument:
    """Return the cost as JSON for scripts."""
    return {
        "region": prices.region,
        "pricesDated": prices.dated,
        "days": round(spent.days, 4),
        "orders": round(spent.orders),
        "usd": rounded(spent.usd()),
        "usdPerMillionOrders": rounded(spent.usd_per_million),
        "lines": [line_document(line) for line in spent.lines],
        "workflows": [
            {
                "workflow": one.workflow,
                "orders": round(one.orders),
                "decisions": round(one.decisions),
                "usd": rounded(one.usd),
                "usdPerMillionOrders": rounded(one.usd_per_million),
            }
            for one in spent.workflows
        ],
    }
