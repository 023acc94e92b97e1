"""The simulation of a stack in a new account, whose quota is less than the sum of its caps."""

from functools import cache

import pytest

from tests.overload.small_account import Cell, simulated

found_of = cache(simulated)

LEAST_CAPS = [
    Cell(20, quota=2, call=5),
    Cell(30, call=25, attempts=1),
    Cell(60, attempts=1),
    Cell(40, apart=1.0, call=5, attempts=1),
]
"""All caps at 2. The last three have steps that are tried once: an attempt that failed because of
a refused call would undo the order."""
DEFAULT_CAPS = [Cell(60, cap=10), Cell(30, cap=10, call=25)]
"""The caps of the template, with the retries of the engine."""


QUICK = 2
"""The number of cells that every run simulates."""


@pytest.mark.parametrize(
    "cell",
    [
        *LEAST_CAPS[:QUICK],
        *(
            pytest.param(cell, marks=pytest.mark.verify)
            for cell in (*LEAST_CAPS[QUICK:], *DEFAULT_CAPS)
        ),
    ],
    ids=str,
)
def test_no_order_fails_or_is_stuck_because_lambda_refuses_calls(cell: Cell) -> None:
    found = found_of(cell)
    assert found.throttled > 0, "otherwise it shows nothing"
    assert found.completed == cell.orders


@pytest.mark.verify
def test_without_the_quota_the_same_load_is_refused_nothing() -> None:
    found = found_of(Cell(60, attempts=1, quota=1_000))
    assert (found.throttled, found.completed) == (0, 60)
