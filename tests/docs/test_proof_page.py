"""The tables of the page on proofs are those of the code."""

import json
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from roundsman.model.instants import SECOND
from roundsman_dev.prove.application.orders import ProofOrder, Treatment
from roundsman_dev.prove.faults import FAULTS, ProofFault
from roundsman_dev.prove.promises import RunPromise
from roundsman_dev.prove.text import report_text
from tests.console.schemas import assert_schema

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
PAGE = (HOW_TO / "prove.md").read_text(encoding="utf-8")
EXAMPLE = HOW_TO / "prove-report.json"


def rows_after(heading: str) -> list[list[str]]:
    """The rows of the table whose first heading is this."""
    table = re.search(rf"^\| {re.escape(heading)} \|.*\n\|[- |]+\|\n((?:\|.*\n)+)", PAGE, re.M)
    assert table is not None, heading
    return [[cell.strip() for cell in row[1:-2].split("|")] for row in table[1].splitlines(True)]


def test_the_page_lists_every_treatment_with_the_ends_to_which_it_leads() -> None:
    ends: dict[Treatment, set[str]] = {}
    for order in map(ProofOrder, range(200)):
        ends.setdefault(order.treatment, set()).add(order.end.state)
    rows = {row[0]: row[1] for row in rows_after("the services ...")}
    assert rows.keys() == {str(treatment) for treatment in Treatment}
    for treatment, states in ends.items():
        assert {
            word for word in ("Completed", "Undone", "Archived") if word in rows[treatment]
        } == (states)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda one: one.name)
def test_the_page_says_of_a_fault_where_it_is_made_and_what_it_needs(fault: ProofFault) -> None:
    needs = ", ".join(f"`{right}`" for right in fault.needs) or "none"
    row = [fault.name, fault.does, "yes" if fault.local else "no", needs]
    assert row in rows_after("fault")


def test_the_example_of_a_report_is_one_of_this_release() -> None:
    """It is of a proof on a local AWS: roundsman prove --orders 40."""
    report = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert_schema("prove", report)
    assert (report["verdict"], report["sent"]) == ("kept", 40)
    assert {one["fault"] for one in report["faults"]} == {fault.name for fault in FAULTS}
    assert {one["promise"] for one in report["promises"]} >= {one.name for one in RunPromise}
    assert f"({EXAMPLE.name})" in PAGE


def test_the_page_lists_every_fault_and_every_promise_of_the_run() -> None:
    assert len(rows_after("fault")) == len(FAULTS)
    assert rows_after("promise") == [[f"`{one.name}`", one.value] for one in RunPromise]


def as_reported(found: dict[str, object]) -> object:
    """An object of a report, of which this is the JSON."""
    if any(name[0].isupper() for name in found):  # the names of states
        return found
    in_ms = {
        name: value * SECOND
        for name, value in found.items()
        if name in ("p50", "p90", "p99", "longest", "seconds") and isinstance(value, int | float)
    }
    named = {re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name): name for name in found}
    return SimpleNamespace(**{name: (found | in_ms)[key] for name, key in named.items()})


def test_the_lines_of_a_report_on_the_page_are_those_of_the_example() -> None:
    report = json.loads(EXAMPLE.read_text(encoding="utf-8"), object_hook=as_reported)
    block = PAGE.split("## Read the report")[1].split("```text\n")[1].split("```")[0]
    assert set(block.splitlines()) <= set(report_text(report).splitlines())
