"""Calculates the cost of a million orders at list prices, here and on AWS's orchestrators."""

from collections.abc import Mapping
from dataclasses import replace

from benchmarks.report import Report, Setting, Table, amount
from roundsman_console.faces.cli.text.cost import COLUMNS, volume_rows
from roundsman_console.facts.cost.estimate import volumes_of
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.model import (
    PER_ORDER,
    Bill,
    Units,
    Wanted,
    bill_of,
    billed_ms,
    rivals_of,
    units_of,
)
from roundsman_console.facts.cost.prices import load_prices

MONTHLY = 3_000_000.0  # orders per month; a little more than one order per second
UNBATCHED = Wanted(MONTHLY)
CASES = {
    "unbatched": UNBATCHED,
    "batch of 5": replace(UNBATCHED, batch=5),
    "batch of 10": replace(UNBATCHED, batch=10),
    "batch of 5, 30 M": Wanted(10 * MONTHLY, batch=5),
    "unbatched, x86_64": replace(UNBATCHED, architecture="x86_64"),
}


def measure(_setting: Setting) -> Report:
    """Return the costs from the recorded figures and the price table of the console."""
    figures, prices = load_figures(), load_prices()
    bills = {name: bill_of(wanted, figures, prices) for name, wanted in CASES.items()}
    rivals = rivals_of(UNBATCHED, figures, prices)
    parts = [line.what for line in bills["unbatched"].lines if line.kind == PER_ORDER]
    rows = [[what, *(_usd(_million(bill, what)) for bill in bills.values())] for what in parts]
    rows.append(["in all", *(_usd(bill.usd_per_million) for bill in bills.values())])
    times = {name: billed_ms(wanted, figures, prices) for name, wanted in CASES.items()}
    units = {name: units_of(wanted, figures, prices) for name, wanted in CASES.items()}
    return Report(
        [
            Table("USD for a million orders of four steps", ("", *bills), rows),
            Table("Lambda's ms for one order, services left out", ("", *times), _ms(times, units)),
            *(
                Table(f"USD for orders a month, {name}", ("", *COLUMNS), _month(CASES[name]))
                for name in ("unbatched", "batch of 5")
            ),
        ],
        [
            *(f"{r.name}: {r.usd_per_million:.2f} USD ({r.counted})." for r in rivals),
            "30 M: at 30,000,000 orders a month, since marks are noted by time, not by order.",
            f"At {MONTHLY:,.0f} orders a month; list prices of {prices.region}, {prices.dated}.",
        ],
    )


def _month(wanted: Wanted) -> list[list[str]]:
    volumes = volumes_of(wanted, load_figures(), load_prices())
    return [list(row) for row in volume_rows(*volumes)]


def _ms(times: Mapping[str, Mapping[str, float]], units: Mapping[str, Units]) -> list[list[str]]:
    roles = next(iter(times.values()))
    rows = [[role, *(f"{each[role]:.0f}" for each in times.values())] for role in roles]
    rows.append(["in all", *(f"{sum(each.values()):.0f}" for each in times.values())])
    rows.append(["invocations", *(amount(each.invocations) for each in units.values())])
    return rows


def _million(bill: Bill, what: str) -> float:
    usd = sum(line.usd for line in bill.lines if (line.kind, line.what) == (PER_ORDER, what))
    return usd / bill.orders * 1_000_000


def _usd(usd: float) -> str:
    return f"{usd:,.2f}"
