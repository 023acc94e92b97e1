"""Formats the cost of a deployed stack for people (text) and for scripts (JSON)."""

from rich.table import Table

from roundsman_console.cost.format import amount, line_document, rounded
from roundsman_console.cost.model import STANDING
from roundsman_console.cost.prices import Prices
from roundsman_console.cost.usage import Spent
from roundsman_console.documents import CostSpentDocument
from roundsman_console.sanitize import plain
from roundsman_console.terminal import results


def show_spent(spent: Spent, stack: str, prices: Prices) -> None:
    """Print the cost by part, then by workflow. `stack` is the name of the stack."""
    console = results()
    came = f"{spent.orders:,.0f} orders in {spent.days:.1f} days"
    if not spent.lines or not spent.usd():
        console.print(f"{stack}: CloudWatch has no figures for these {spent.days:.1f} days.")
        return
    console.print(f"{stack}: {came}\n")
    table = Table(box=None, pad_edge=False)
    table.add_column("Part", overflow="fold")
    for heading in ("Amount", "USD"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in sorted(spent.lines, key=lambda line: -line.usd):
        table.add_row(f"{line.service}: {line.what}", amount(line.amount), f"{line.usd:,.2f}")
    console.print(table)
    console.print(
        f"\n{spent.usd():,.2f} USD, {spent.usd(STANDING):,.2f} of it for waiting; "
        f"{spent.usd_per_million:,.2f} per million orders"
    )
    if spent.workflows:
        console.print()
        console.print(_workflows(spent))
    console.print(
        f"\nList prices of {prices.region} on {prices.dated}, no free tier. Storage, alarms "
        "and custom metrics are not included; the estimate by --orders-per-month includes "
        "them."
    )


def _workflows(spent: Spent) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Workflow", overflow="fold")
    for heading in ("Orders", "Decisions per order", "USD", "USD per million"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in spent.workflows:
        each = one.decisions / one.orders if one.orders else 0.0
        table.add_row(
            plain(one.workflow),
            f"{one.orders:,.0f}",
            f"{each:,.1f}",
            f"{one.usd:,.2f}",
            f"{one.usd_per_million:,.2f}",
        )
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
