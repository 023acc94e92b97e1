"""The demo's events and the page about them say what is so."""

import json
import re
from pathlib import Path

import pytest

from roundsman.definition.input_types import field_names
from roundsman.model.json import parse_json
from roundsman.submission.events import CancelEvent, CancelFields
from roundsman.submission.processing import ProcessingFields
from roundsman.submission.submission import CancelAsked
from roundsman_testing.remote_services.fault_rules import read_rules
from tests.support.orders_samples import read, read_any, rejected
from workflows.order import Address, Line
from workflows.order import NewOrder as OrderFields

ROOT = Path(__file__).resolve().parents[3]
EVENTS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "events").glob("*.json")}
PAGE = (ROOT / "docs" / "reference" / "messages.md").read_text(encoding="utf-8")
README = (ROOT / "events" / "README.md").read_text(encoding="utf-8")
FIELDS = [
    *(name for kind in (OrderFields, Line, Address) for name in field_names(kind)),
    *(name for kind in (ProcessingFields, CancelEvent, CancelFields) for name in field_names(kind)),
]


def json_block(page: str) -> str:
    found = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("name", sorted(set(EVENTS) - {"malformed.json", "cancel.json"}))
def test_the_demos_orders_are_valid(name: str) -> None:
    read(EVENTS[name])


def test_the_malformed_order_has_many_problems_and_a_usable_id() -> None:
    found = rejected(EVENTS["malformed.json"])

    assert found.order_id == "ord-1006"
    assert {problem.path for problem in found.problems} == {
        "currency",
        "lines[0].quantity",
        "lines[1].unitPrice",
        "shippingAddress.country",
        "shippingAddress.postalCode",
        "processing.processAt",
        "processing.prority",
        "processing.workflow",
    }


def test_the_duplicate_is_the_good_order_in_other_bytes() -> None:
    good, duplicate = read(EVENTS["good.json"]), read(EVENTS["duplicate.json"])

    assert EVENTS["duplicate.json"] != EVENTS["good.json"]
    assert (duplicate.order_id, duplicate.content_hash) == (good.order_id, good.content_hash)


def test_the_conflicting_order_takes_the_good_orders_id_for_other_content() -> None:
    good, conflicting = read(EVENTS["good.json"]), read(EVENTS["conflicting.json"])

    assert conflicting.order_id == good.order_id
    assert conflicting.content_hash != good.content_hash


def test_the_cancellation_cancels_an_order_of_the_demo() -> None:
    found = read_any(EVENTS["cancel.json"])

    assert isinstance(found, CancelAsked)
    assert found.undo
    assert found.order_id == read(EVENTS["later.json"]).order_id


def test_every_other_order_of_the_demo_has_an_id_of_its_own() -> None:
    others = {"malformed.json", "duplicate.json", "conflicting.json", "cancel.json"}
    names = set(EVENTS) - others

    assert len({read(EVENTS[name]).order_id for name in names}) == len(names)


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_the_readme_names_each_file_beside_its_order(name: str) -> None:
    found = parse_json(EVENTS[name])
    assert isinstance(found, dict)

    assert f"| `{name}` | `{found['orderId']}` |" in README


def test_the_readmes_fault_rules_are_rules_for_orders_of_the_demo() -> None:
    rules = read_rules(json.loads(json_block(README)))

    strange = {"malformed.json", "cancel.json"}
    valid = {read(text).order_id for name, text in EVENTS.items() if name not in strange}
    assert len(rules) == 5
    assert {rule.order_id for rule in rules} <= valid


def test_the_pages_example_is_a_valid_order() -> None:
    event = read(json_block(PAGE))

    assert isinstance(event.content, dict)
    assert f'("{event.content["total"]}" here)' in PAGE


@pytest.mark.parametrize("name", FIELDS)
def test_the_page_describes_every_field(name: str) -> None:
    rows = "".join(line for line in PAGE.splitlines() if line.startswith("| `"))

    assert re.search(rf"[`.]{name}\b", rows) or name in ("shippingAddress", "processing")
