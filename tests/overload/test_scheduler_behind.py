"""The simulation of a scheduler that is behind or down."""

from functools import cache

import pytest

from roundsman.wire.commands import INSPECT, START
from roundsman_testing.world.capacity import SCHEDULER, SUBMISSION, SUPERVISOR
from roundsman_testing.world.queues import REPLIES
from tests.overload.scheduler_behind import Cell, simulated

found_of = cache(simulated)

IN_TIME = [
    Cell(within=30, times=1),
    Cell(within=30, times=0.5, instances=4, batch=10, steps=4, fenced=False, max_attempts=1),
    Cell(within=10, times=1, limited=SUBMISSION),
]
AN_HOUR = Cell(times=0.2, instances=4, down=(SCHEDULER,), minutes=60)


@pytest.mark.verify
@pytest.mark.parametrize("cell", IN_TIME, ids=str)
def test_a_scheduler_that_keeps_up_reads_one_message_for_each_order_and_each_step(
    cell: Cell,
) -> None:
    found = found_of(cell)
    assert (found.failed, found.counted) == (0, 0)
    assert found.effort < 1.01
    assert found.requests == found.orders * found.steps


def test_a_scheduler_that_is_down_finds_the_starts_and_replies_that_have_waited() -> None:
    found = found_of(AN_HOUR)
    assert found.open == found.orders
    assert found.waiting.keys() <= {START, INSPECT, REPLIES}
    assert found.waiting[START] >= found.orders // 2
    assert found.waiting[REPLIES] > 0


BEHIND = [
    Cell(within=10, times=3, max_attempts=1, fenced=False, steps=4),
    Cell(within=30, times=3, instances=4, batch=10),
    Cell(within=30, times=10, takes=2.0, max_attempts=1),
    Cell(within=10, times=1.5, steady=True, takes=2.0),
]
DOWN = [
    Cell(times=0.2, instances=4, down=(SCHEDULER,), minutes=10, max_attempts=1),
    AN_HOUR,
    Cell(times=0.2, instances=4, down=(SUPERVISOR,), minutes=60),
    Cell(times=0.2, instances=4, down=(SCHEDULER, SUPERVISOR), minutes=60, max_attempts=1),
]


@pytest.mark.verify
@pytest.mark.parametrize("cell", [*BEHIND, *DOWN], ids=str)
def test_no_healthy_order_fails_of_a_scheduler_that_is_behind_or_down(cell: Cell) -> None:
    found = found_of(cell)
    assert (found.failed, found.counted) == (0, 0)


@pytest.mark.parametrize("cell", [*BEHIND, *DOWN], ids=str)
def test_a_scheduler_that_is_behind_or_was_down_reads_at_most_a_third_more_than_the_ideal(
    cell: Cell,
) -> None:
    assert found_of(cell).effort <= 1.3


@pytest.mark.parametrize("cell", DOWN, ids=str)
def test_after_an_outage_one_start_one_inspect_and_one_reply_wait_at_most(cell: Cell) -> None:
    found = found_of(cell)
    for kind in (START, INSPECT, REPLIES):
        assert found.waiting[kind] <= found.open
