"""The pages say what was measured last, and what the price table and the template say."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from benchmarks.__main__ import PARTS
from benchmarks.cost import money, units
from benchmarks.page import BLOCK, PAGES, filled
from benchmarks.report import Report, Setting, amount
from benchmarks.scale import measure as scale
from benchmarks.scale.plan import INDEX_UNITS, ORDER_UNITS, TABLE_UNITS
from benchmarks.scale.quotas import load_quotas
from benchmarks.speed import latency
from roundsman_console.facts.cost.figures import load_figures
from roundsman_console.facts.cost.model import PROFILES, Wanted, bill_of
from roundsman_console.facts.cost.prices import load_prices
from tests.project import translate
from tests.support.template_reading import alarms

TEXT, SCALE, LATENCY = (page.read_text(encoding="utf-8") for page in PAGES)


def block(part: str) -> list[str]:
    """The lines of a block of the page on cost."""
    [text] = [found[0] for found in BLOCK.finditer(TEXT) if found[2] == part]
    return text.splitlines()


def test_each_part_has_a_block_of_a_page() -> None:
    blocks = [found[2] for page in (TEXT, SCALE, LATENCY) for found in BLOCK.finditer(page)]
    assert sorted(blocks) == sorted(PARTS)


@pytest.mark.parametrize(
    ("part", "measure"),
    [("money", money.measure), ("scale", scale.measure), ("latency", latency.measure)],
)
def test_a_page_shows_what_is_computed_of_the_recorded_figures(
    part: str, measure: Callable[[Setting], Report]
) -> None:
    printed = measure(Setting(lambda: "", lambda _: None)).text()
    for page in (TEXT, SCALE, LATENCY):
        assert filled(page, {part: printed}) == page, "make bench writes the page anew"


def test_the_page_on_scale_leads_to_the_quotas_it_goes_by_and_they_to_those_of_aws() -> None:
    quotas = load_quotas()
    link = f"dated {quotas.dated} ([quotas.toml](../../benchmarks/scale/quotas.toml)"
    assert link in " ".join(SCALE.split())
    assert all(each.source.startswith("https://") for each in quotas.by_name.values())


def test_a_block_is_replaced_and_the_rest_of_a_page_is_left_alone() -> None:
    page = "before\n<!-- bench: units -->\nold\n<!-- end of bench -->\nafter\n"
    done = filled(page, {"units": "new\n", "cold": "unused"})
    assert done == "before\n<!-- bench: units -->\n```\nnew\n```\n<!-- end of bench -->\nafter\n"
    assert filled(done, {"units": "new"}) == done
    assert filled(page, {}) == page


def test_the_page_on_cost_has_the_order_that_was_recorded() -> None:
    for name in units.ORDERS:
        use = load_figures().orders[name]
        shown = [use.write_units, use.read_units, use.sqs_requests, use.statuses, use.invocations]
        [row] = [line.split() for line in block("units") if line.startswith(f"{name} ")]
        assert row[1:6] == [amount(each) for each in shown]


def test_the_plan_goes_by_the_units_that_were_counted() -> None:
    lines = block("units")
    first = lines.index("Write units, busy") + 3
    by_place: Counter[str] = Counter()
    for line in lines[first : lines.index("", first)]:
        _, place, units_of_it = line.split()
        by_place[place] += int(units_of_it)
    assert by_place == {
        "TasksTable": TABLE_UNITS,
        "TasksTable/due": INDEX_UNITS,
        "OrdersTable": ORDER_UNITS,
    }


def without_orders() -> list[list[str]]:
    """The cells of the table of what a stack costs without orders."""
    [_, section] = TEXT.split("### Without orders\n")
    return [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.partition("\n### ")[0].splitlines()
        if line.startswith("|")
    ]


def test_the_page_says_what_each_profile_costs_without_orders() -> None:
    heading, _, alarms_row, *rows = without_orders()
    profiles = [cell.strip("`") for cell in heading[1:]]
    assert sorted(profiles) == sorted(PROFILES)
    for column, profile in enumerate(profiles, 1):
        found = bill_of(Wanted(0, profile=profile), load_figures(), load_prices())
        cells = [alarms_row[column], *(row[column] for row in rows)]
        *parts, total = [float(cell.split()[0]) for cell in cells if cell]
        assert total == round(found.usd(), 2)
        assert sum(parts) == pytest.approx(total, abs=0.02)
        counted = len(alarms(translate({"Engine.Profile": profile})))
        assert alarms_row[column].endswith(f" for {counted}")


def test_the_page_says_what_lean_would_cost_with_two_polls_for_each_mapping() -> None:
    prices = load_prices()
    two = replace(prices, assumed=replace(prices.assumed, pollers=2))
    usd = bill_of(Wanted(0, profile="lean"), load_figures(), two).usd()
    assert f"`lean` would be {usd:.2f}." in TEXT
