"""The pages say what was measured last, and what the price table and the template say."""

import json
from collections import Counter

import pytest

from benchmarks.__main__ import merged
from benchmarks.page import BLOCK, PAGES, filled
from benchmarks.scale.plan import INDEX_UNITS, ORDER_UNITS, TABLE_UNITS
from benchmarks.scale.quotas import load_quotas
from roundsman.model.json import Json
from roundsman.testing.stack.template import mapping_of, part
from roundsman_console.cost.figures import load_figures
from tests.project import TEMPLATE, load_template

LATEST = json.loads((TEMPLATE.parent / "benchmarks" / "results" / "latest.json").read_text("utf-8"))
TEXT, SCALE, LATENCY = (page.read_text(encoding="utf-8") for page in PAGES)
SHOWN = {"units", "money", "growth", "cold", "throughput"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [(TEXT, SHOWN), (SCALE, {"scale"}), (LATENCY, {"latency"})],
    ids=["cost", "scale", "latency"],
)
def test_a_page_shows_what_was_printed_last(text: str, parts: set[str]) -> None:
    assert {found[2] for found in BLOCK.finditer(text)} == parts
    assert parts <= LATEST["tables"].keys()
    assert filled(text, LATEST["tables"]) == text, "make bench writes the page anew"


def test_the_page_on_scale_names_each_quota_it_goes_by() -> None:
    for name, quota in load_quotas().by_name.items():
        assert f"{quota.value:,}" in SCALE, name
        assert quota.source in SCALE, name
    assert load_quotas().dated in SCALE


def test_a_block_is_replaced_and_the_rest_of_a_page_is_left_alone() -> None:
    page = "before\n<!-- bench: units -->\nold\n<!-- end of bench -->\nafter\n"
    done = filled(page, {"units": "new\n", "cold": "unused"})
    assert done == "before\n<!-- bench: units -->\n```\nnew\n```\n<!-- end of bench -->\nafter\n"
    assert filled(done, {"units": "new"}) == done
    assert filled(page, {}) == page


def test_the_results_are_of_the_order_that_was_recorded() -> None:
    busy = load_figures().orders["busy"]
    order = LATEST["order"]
    assert (order["write_units"], order["read_units"]) == (busy.write_units, busy.read_units)
    assert order["sqs_requests"] == busy.sqs_requests
    for found in (LATEST, order):
        assert 0 < found["usd_per_million_batch5"] < found["usd_per_million_unbatched"]
    assert sum(order["billed_ms"]["unbatched"].values()) > 0


def test_parts_that_say_something_of_an_order_keep_what_others_said() -> None:
    latest: dict[str, Json] = {"order": {"write_units": 13, "usd": 27}, "cold": {"a": 1}}
    said: dict[str, Json] = {"order": {"usd": 26}, "cold": {"b": 2}}
    assert merged(latest, said) == {"order": {"write_units": 13, "usd": 26}, "cold": {"b": 2}}
    assert merged({}, said) == said


def test_the_plan_goes_by_the_units_that_were_counted() -> None:
    written = LATEST["order"]["by_operation"]["write_units"]
    by_place: Counter[str] = Counter()
    for operation_and_place, units in written.items():
        by_place[operation_and_place.split(" ")[1]] += units
    assert by_place == {
        "TasksTable": TABLE_UNITS,
        "TasksTable/due": INDEX_UNITS,
        "OrdersTable": ORDER_UNITS,
    }


def test_the_page_counts_the_alarms_of_the_template() -> None:
    resources = part(load_template(), "Resources").values()
    kinds = [str(mapping_of(resource)["Type"]) for resource in resources]
    assert f"{kinds.count('AWS::CloudWatch::Alarm')} alarms" in TEXT
