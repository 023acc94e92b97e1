"""The results of two releases side by side."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks import comparison
from benchmarks.comparison import FIGURES, LATEST, compared
from benchmarks.report import Setting
from roundsman.model.json import Json

NOTHING = Setting(lambda: "", lambda _: None)
WRITES = "write units, an order of four steps"


def results(**parts: Json) -> Mapping[str, Json]:
    return {"measured_on": "2026-11-22", "machine": "2 cores", **parts}


def row(before: Mapping[str, Json], latest: Mapping[str, Json], name: str = WRITES) -> list[str]:
    [table] = compared(before, latest).tables
    return next([*cells[1:]] for cells in table.rows if cells[0] == name)


def test_a_figure_is_shown_before_and_now_with_their_ratio() -> None:
    before, latest = results(order={"write_units": 26.0}), results(order={"write_units": 13.0})
    assert row(before, latest) == ["26", "13", "0.50"]


@pytest.mark.parametrize("other", [None, "13", {"more": 1}, [1]])
def test_a_figure_that_one_of_them_lacks_has_no_ratio(other: Json) -> None:
    whole, odd = results(order={"write_units": 13.0}), results(order={"write_units": other})
    assert row(whole, odd) == ["13", "", ""]
    assert row(odd, whole) == ["", "13", ""]
    assert row(whole, results()) == ["13", "", ""]


def test_a_figure_of_zero_before_has_no_ratio() -> None:
    assert row(results(order={"write_units": 0}), results(order={"write_units": 1})) == [
        *("0", "1", "")
    ]


def test_each_figure_is_one_of_the_latest_results() -> None:
    latest = json.loads(LATEST.read_text(encoding="utf-8"))
    [table] = compared(latest, latest).tables
    assert [cells[-1] for cells in table.rows] == ["1.00"] * len(FIGURES)


def test_it_says_on_which_machines_and_days_they_were_measured() -> None:
    [note] = compared(results(), results(machine="4 cores")).notes
    assert note == "Before: 2026-11-22, 2 cores. Now: 2026-11-22, 4 cores."


def test_without_results_of_before_there_is_no_table(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(comparison, "BEFORE", tmp_path / "before.json")
    found = comparison.measure(NOTHING)
    assert (found.tables, found.notes) == ([], ["There is no before.json to compare with."])
