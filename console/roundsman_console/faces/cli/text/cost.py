"""Formats a bill, of orders or of a deployed stack, for people (text) and for scripts (JSON)."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.terminal import results
from roundsman_console.facts.cost.estimate import Estimate
from roundsman_console.facts.cost.figures import Figures
from roundsman_console.facts.cost.model import (
    MILLION,
    PER_ORDER,
    PROFILES,
    STANDING,
    Bill,
)
from roundsman_console.facts.cost.prices import Prices
from roundsman_console.facts.cost.usage import Spent
from roundsman_console.facts.cost.volumes import VOLUMES, Volumes
from roundsman_console.facts.cost.words import (
    amount,
    came_words,
    line_rows,
    no_figures,
    price_words,
    sum_words,
    workflow_rows,
)


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


# ---- what a deployed stack has used --------------------------------------------------------------


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
