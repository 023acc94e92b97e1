"""Overload by design: a queue that is longer than its steps' time delays orders and fails none."""

from collections.abc import Sequence
from functools import cache

import pytest

from tests.overload.agent_queue import Cell, Found, simulated

MINUTE = 60

found_of = cache(simulated)

BURSTS = [
    Cell(within=30, share=1 / 5, backlog=10, instances=1),
    Cell(within=30, share=1 / 2, backlog=10, instances=4),
    Cell(within=900, share=1 / 2, backlog=10, instances=1),
    Cell(within=900, share=1 / 5, backlog=3, instances=3, max_attempts=3),
]
STEADY = [
    Cell(within=30, share=1 / 2, backlog=3, instances=1, steady=True),
    Cell(within=900, share=1 / 5, backlog=10, instances=1, steady=True),
    Cell(within=900, share=1 / 2, backlog=3, instances=2, steady=True, max_attempts=3),
]
UNFENCED = [
    Cell(within=30, share=1 / 2, backlog=3, instances=1, fenced=False),
    Cell(within=30, share=1 / 2, backlog=10, instances=2, fenced=False, steady=True),
    Cell(within=900, share=1 / 5, backlog=10, instances=1, fenced=False),
    Cell(within=900, share=1 / 2, backlog=3, instances=1, fenced=False, steady=True),
    Cell(within=900, share=1 / 2, backlog=10, instances=1, fenced=False, max_attempts=3),
]


def named(cell: Cell) -> str:
    how = "steady" if cell.steady else "burst"
    return f"{how} of {cell.within} s, {cell.share:.2f}, {cell.backlog} times, {cell.instances}"


@pytest.mark.parametrize("cell", [*BURSTS, *STEADY, *UNFENCED], ids=named)
def test_no_healthy_order_fails_of_a_long_queue_and_no_attempt_of_one_is_counted(
    cell: Cell,
) -> None:
    found = found_of(cell)
    assert (found.failed, found.counted, found.undos) == (0, 0, 0)
    assert found.took < 1.6, "and in about the time that the work takes"


@pytest.mark.parametrize("cell", [*BURSTS, *STEADY], ids=named)
def test_a_request_whose_undo_waits_for_nothing_is_sent_once(cell: Cell) -> None:
    assert found_of(cell).requests_an_order <= 1.05


def test_what_is_not_fenced_is_sent_fewer_than_three_times() -> None:
    found = found_of(UNFENCED[2])
    assert 1 < found.requests_an_order < 2.5


def requests_an_order(cells: Sequence[Cell]) -> float:
    found: list[Found] = [found_of(cell) for cell in cells]
    return sum(each.requests for each in found) / sum(each.orders for each in found)


def test_over_all_of_them_an_order_has_fewer_than_one_and_a_half_requests() -> None:
    assert requests_an_order([*BURSTS, *STEADY, *UNFENCED]) < 1.5


def test_an_order_that_killed_its_agent_is_sent_again_while_others_wait() -> None:
    """The first of the queue: found one complete-by after the queue's last news of it."""
    cell = Cell(within=30, share=1 / 5, backlog=3, instances=2, max_attempts=2, dying=1)
    found = simulated(cell)
    assert found.failed == 0
    (recovered,) = found.recovered
    assert recovered < (3 * 30 + 30 + MINUTE) * 1_000, "the supervisor looks every minute"


def test_an_order_that_killed_its_agent_is_found_at_its_complete_by_where_nothing_waits() -> None:
    cell = Cell(within=30, share=1 / 5, backlog=0.4, instances=2, max_attempts=2, dying=1)
    found = simulated(cell)
    assert (found.failed, found.counted) == (0, 1)
    assert found.recovered[0] <= (30 + 2) * 1_000
