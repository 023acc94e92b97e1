"""Formats a bill for people (text) and for scripts (JSON)."""

from collections.abc import Sequence

from rich.table import Table

from roundsman_console.cost.alternatives import Rival
from roundsman_console.cost.figures import Figures
from roundsman_console.cost.model import PER_ORDER, STANDING, Bill, BillLine, Units
from roundsman_console.cost.prices import Prices
from roundsman_console.documents import CostEstimateDocument, CostLineDocument
from roundsman_console.terminal import results

MILLION = 1_000_000


def show_bill(
    bill: Bill, units: Units, rivals: Sequence[Rival], figures: Figures, prices: Prices
) -> None:
    """Print the parts of the bill, then the cost of the same orders on other services."""
    console, wanted = results(), bill.wanted
    console.print(
        f"{wanted.orders_per_month:,.0f} orders a month, {wanted.steps} steps each, "
        f"{wanted.batch:g} messages per invocation, {wanted.memory} MB, {wanted.architecture}"
    )
    console.print(
        f"An order: {amount(units.write_units)} write units, {amount(units.read_units)} read "
        f"units, {amount(units.sqs_requests)} SQS requests, {amount(units.invocations)} "
        f"invocations, {units.log_bytes:,.0f} bytes of logs\n"
    )
    console.print(_table(bill))
    console.print(
        f"\n{bill.usd():,.2f} USD a month: {bill.usd_per_million:,.2f} per million orders, "
        f"and {bill.usd(STANDING):,.2f} even without orders"
    )
    for rival in rivals:
        console.print(
            f"{rival.name}: {rival.usd_per_million:,.2f} USD per million ({rival.counted})"
        )
    console.print(
        f"List prices of {prices.region} on {prices.dated}, no free tier; counted on "
        f"{figures.recorded_on}. Failed attempts, and data that leaves AWS, are extra."
    )


def _table(bill: Bill) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Part", overflow="fold")
    for heading in ("Amount", "USD per month", "USD per million"):
        table.add_column(heading, justify="right", no_wrap=True)
    for line in sorted(bill.lines, key=lambda line: (line.kind != PER_ORDER, -line.usd)):
        million = line.usd / bill.wanted.orders_per_month * MILLION
        table.add_row(
            f"{line.service}: {line.what}",
            amount(line.amount),
            f"{line.usd:,.2f}",
            f"{million:,.2f}" if line.kind == PER_ORDER else "",
        )
    return table


def amount(value: float) -> str:
    """Format a number: from 100 on without decimals, below with at most two."""
    return f"{value:,.0f}" if value >= 100 else f"{value:,.2f}".rstrip("0").rstrip(".")


def document_of(
    bill: Bill, units: Units, rivals: Sequence[Rival], figures: Figures, prices: Prices
) -> CostEstimateDocument:
    """Return the bill as JSON for scripts. Amounts are per month; those in `order`, per order."""
    wanted = bill.wanted
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
        "lines": [line_document(line) for line in bill.lines],
        "elsewhere": [
            {
                "name": rival.name,
                "usdPerMillionOrders": rounded(rival.usd_per_million),
                "counted": rival.counted,
            }
            for rival in rivals
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
