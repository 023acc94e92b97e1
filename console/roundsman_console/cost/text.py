"""Formats a bill, of orders or of a deployed stack, for people (text) and for scripts (JSON)."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from roundsman_console.cells import plain
from roundsman_console.cost.estimate import Estimate
from roundsman_console.cost.figures import Figures
from roundsman_console.cost.model import (
    MILLION,
    PER_ORDER,
    PROFILES,
    STANDING,
    Bill,
    BillLine,
)
from roundsman_console.cost.prices import Prices
from roundsman_console.cost.usage import Spent
from roundsman_console.cost.volumes import VOLUMES, Volumes
from roundsman_console.documents import CostEstimateDocument, CostLineDocument, CostSpentDocument
from roundsman_console.terminal import results


def show_estimate(estimate: Estimate, figures: Figures, prices: Prices) -> None:
    """Print the parts of the bill, then other numbers of orders, profiles and services."""
    wanted, bill, units = estimate.wanted, estimate.bill, estimate.units
    console = results()
    console.print(
        f"{wanted.orders_per_month:,.0f} orders a month, {wanted.steps} steps each, "
        f"{wanted.batch:g} messages per invocation, {wanted.memory} MB, {wanted.architecture}, "
        f"profile {wanted.profile}"
    )
    console.print(
        f"An order: {amount(units.write_units)} write units, {amount(units.read_units)} read "
        f"units, {amount(units.sqs_requests)} SQS requests, {amount(units.invocations)} "
        f"invocations, {units.log_bytes:,.0f} bytes of logs\n"
    )
    console.print(_bill_table(bill))
    console.print()
    if bill.orders:
        console.print(
            f"{bill.usd():,.2f} USD a month: {bill.usd_per_million:,.2f} per million orders, "
            f"and {bill.usd(STANDING):,.2f} for what stands there"
        )
    console.print(f"{estimate.usd_idle:,.2f} USD a month without orders\n")
    console.print(_table(("USD for orders a month", *COLUMNS), volume_rows(estimate.volumes)))
    console.print()
    for rival in estimate.rivals:
        console.print(
            f"{rival.name}: {rival.usd_per_million:,.2f} USD per million ({rival.counted})"
        )
    console.print(
        f"List prices of {prices.region} on {prices.dated}, no free tier; counted on "
        f"{figures.recorded_on}. Failed attempts, and data that leaves AWS, are extra."
    )


def _bill_table(bill: Bill) -> Table:
    rows = [
        (
            f"{line.service}: {line.what}",
            amount(line.amount),
            f"{line.usd:,.2f}",
            f"{line.usd / bill.orders * MILLION:,.2f}" if line.kind == PER_ORDER else "",
        )
        for line in sorted(bill.lines, key=lambda line: (line.kind != PER_ORDER, -line.usd))
        if line.amount
    ]
    return _table(("Part", "Amount", "USD per month", "USD per million"), rows)


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """Return a table whose first column is of names, and all others of numbers."""
    table = Table(box=None, pad_edge=False)
    table.add_column(headings[0], overflow="fold")
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for name, *numbers in rows:
        table.add_row(plain(name), *numbers)
    return table


def amount(value: float) -> str:
    """Format a number: from 100 on without decimals, below with at most two."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")


COLUMNS = (*PROFILES, "Step F.", "durable f.")
"""The columns of the table of volumes: the profiles, then the other services."""


def volume_rows(volumes: Volumes) -> list[tuple[str, ...]]:
    """Return what each number of orders a month costs, then from which on a profile is cheaper."""
    columns = (*volumes.profiles.values(), *volumes.rivals.values())
    rows = [
        ("idle" if not orders else f"{orders:,}", *(f"{one[at]:,.2f}" for one in columns))
        for at, orders in enumerate(VOLUMES)
    ]
    for rival, short in zip(volumes.rivals, COLUMNS[len(PROFILES) :], strict=True):
        found = (volumes.cheaper_from[profile, rival] for profile in PROFILES)
        cells = ("never" if orders is None else f"{orders:,}" for orders in found)
        rows.append((f"less than {short} from", *cells, "", ""))
    return rows


def document_of(estimate: Estimate, figures: Figures, prices: Prices) -> CostEstimateDocument:
    """Return the bill as JSON for scripts. Amounts are per month; those in `order`, per order."""
    wanted, bill, units = estimate.wanted, estimate.bill, estimate.units
    volumes = estimate.volumes
    return {
        "region": prices.region,
        "pricesDated": prices.dated,
        "countedOn": figures.recorded_on,
        "asked": {
            "ordersPerMonth": wanted.orders_per_month,
            "steps": wanted.steps,
            "batch": wanted.batch,
            "statuses": wanted.statuses,
            "orderBytes": wanted.order_bytes,
            "resultBytes": wanted.result_bytes,
            "serviceMs": wanted.service_ms,
            "memory": wanted.memory,
            "architecture": wanted.architecture,
            "taskDays": wanted.task_days,
            "orderDays": wanted.order_days,
            "logDays": wanted.log_days,
            "tenants": wanted.tenants,
            "interval": wanted.interval,
            "profile": wanted.profile,
        },
        "order": {
            "writeUnits": round(units.write_units, 6),
            "readUnits": round(units.read_units, 6),
            "sqsRequests": round(units.sqs_requests, 6),
            "invocations": round(units.invocations, 6),
            "gbSeconds": round(units.gb_seconds, 6),
            "logBytes": round(units.log_bytes, 6),
        },
        "usdPerMonth": rounded(bill.usd()),
        "usdPerMillionOrders": rounded(bill.usd_per_million),
        "usdStanding": rounded(bill.usd(STANDING)),
        "usdIdle": rounded(estimate.usd_idle),
        "lines": [line_document(line) for line in bill.lines],
        "volumes": [
            {
                "ordersPerMonth": orders,
                "profiles": {name: rounded(usd[at]) for name, usd in volumes.profiles.items()},
                "elsewhere": {name: rounded(usd[at]) for name, usd in volumes.rivals.items()},
            }
            for at, orders in enumerate(VOLUMES)
        ],
        "cheaperFrom": [
            {"profile": profile, "elsewhere": rival, "ordersPerMonth": orders}
            for (profile, rival), orders in volumes.cheaper_from.items()
        ],
        "elsewhere": [
            {
                "name": rival.name,
                "usdPerMillionOrders": rounded(rival.usd_per_million),
                "counted": rival.counted,
            }
            for rival in estimate.rivals
        ],
    }


def line_document(line: BillLine) -> CostLineDocument:
    """Return one line of a bill as JSON for scripts."""
    return {
        "service": line.service,
        "what": line.what,
        "amount": round(line.amount, 3),
        "unit": line.unit,
        "usd": rounded(line.usd),
        "for": line.kind,
    }


def rounded(usd: float) -> float:
    """Round an amount in USD to a hundredth of a cent."""
    return round(usd, 4)


# ---- what a deployed stack has used --------------------------------------------------------------


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
    console.print(_table(("Part", "Amount", "USD"), line_rows(spent)))
    console.print(f"\n{sum_words(spent)}")
    if spent.workflows:
        console.print()
        headings = ("Workflow", "Orders", "Decisions per order", "USD", "USD per million")
        console.print(_table(headings, workflow_rows(spent)))
    console.print(f"\n{price_words(prices)}")


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
