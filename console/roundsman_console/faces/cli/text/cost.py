"""Formats a bill, of orders or of a deployed stack, for people (text) and for scripts (JSON)."""

from collections.abc import Iterable, Sequence

from rich.table import Table

from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.terminal import results
from roundsman_console.facts.cost.estimate import CostCheaper, CostEstimate, CostVolume
from roundsman_console.facts.cost.memory import MEMORY_WORDS, memory_tables
from roundsman_console.facts.cost.model import MILLION, PER_ORDER, PROFILES
from roundsman_console.facts.cost.usage import (
    PAYLOADS_LEFT_OUT,
    CostSpent,
    amount,
    came_words,
    line_rows,
    no_figures,
    price_words,
    sum_words,
    workflow_rows,
)


def show_estimate(estimate: CostEstimate) -> None:
    """Print the parts of the bill, then other numbers of orders, profiles and services."""
    wanted, units = estimate.asked, estimate.order
    console = results()
    console.print(
        f"{wanted.orders_per_month:,.0f} orders a month, {wanted.steps} steps each, "
        f"{wanted.batch:g} messages per invocation, {wanted.memory} MB, {wanted.architecture}, "
        f"profile {wanted.profile}"
    )
    console.print(
        f"An order: {amount(units.write_units)} write units{_of_search(wanted.search_fields)}, "
        f"{amount(units.read_units)} read "
        f"units, {amount(units.sqs_requests)} SQS requests, {amount(units.invocations)} "
        f"invocations, {units.log_bytes:,.0f} bytes of logs\n"
    )
    console.print(_bill_table(estimate))
    console.print()
    if wanted.orders_per_month:
        console.print(
            f"{estimate.usd_per_month:,.2f} USD a month: {estimate.usd_per_million:,.2f} per "
            f"million orders, and {estimate.usd_standing:,.2f} for what stands there"
        )
    console.print(f"{estimate.usd_idle:,.2f} USD a month without orders\n")
    rows = volume_rows(estimate.volumes, estimate.cheaper_from)
    console.print(_table(("USD for orders a month", *COLUMNS), rows))
    console.print()
    for rival in estimate.elsewhere:
        console.print(
            f"{rival.name}: {rival.usd_per_million:,.2f} USD per million ({rival.counted})"
        )
    console.print(
        f"List prices of {estimate.region} on {estimate.prices_dated}, no free tier; counted on "
        f"{estimate.counted_on}. Failed attempts, and data that leaves AWS, are extra. "
        f"{PAYLOADS_LEFT_OUT}"
    )


def _of_search(fields: int) -> str:
    return f" ({fields} of them for search)" if fields else ""


def _bill_table(estimate: CostEstimate) -> Table:
    orders = estimate.asked.orders_per_month
    rows = [
        (
            f"{line.service}: {line.what}",
            amount(line.amount),
            f"{line.usd:,.2f}",
            f"{line.usd / orders * MILLION:,.2f}" if line.kind == PER_ORDER else "",
        )
        for line in sorted(estimate.lines, key=lambda line: (line.kind != PER_ORDER, -line.usd))
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


def volume_rows(
    volumes: Sequence[CostVolume], cheaper_from: Sequence[CostCheaper]
) -> list[tuple[str, ...]]:
    """Return what each number of orders a month costs, then from which on a profile is cheaper."""
    rows = []
    for one in volumes:
        usd = (*one.profiles.values(), *one.elsewhere.values())
        orders = f"{one.orders_per_month:,}" if one.orders_per_month else "idle"
        rows.append((orders, *(f"{each:,.2f}" for each in usd)))
    from_on = {(one.profile, one.elsewhere): one.orders_per_month for one in cheaper_from}
    for rival, short in zip(volumes[0].elsewhere, COLUMNS[len(PROFILES) :], strict=True):
        found = (from_on[profile, rival] for profile in PROFILES)
        cells = ("never" if orders is None else f"{orders:,}" for orders in found)
        rows.append((f"less than {short} from", *cells, "", ""))
    return rows


# ---- what a deployed stack has used --------------------------------------------------------------


def show_spent(spent: CostSpent, stack: str) -> None:
    """Print the cost by part, by workflow and by memory. `stack` is the name of the stack."""
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
    tables = memory_tables(spent.functions)
    for table in tables:
        console.print()
        console.print(_table(table.columns, table.rows))
    words = (*((MEMORY_WORDS,) if tables else ()), price_words(spent))
    console.print(f"\n{' '.join(words)}")
