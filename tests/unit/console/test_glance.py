"""What the overview sees of many orders, some shards at each reading."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from roundsman.engine.due import Lane, lane_key, shard_of
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.task_records import TaskGlance
from roundsman_console.facts.finding.glance import (
    LARGE_FOR,
    READ_HERE,
    REQUESTS,
    SHARDS_A_READING,
    Allowance,
    Glance,
    counted_now,
    of_all,
)
from roundsman_console.facts.orders.counts import Count
from roundsman_console.facts.orders.open_orders import OpenOrders
from tests.console.many_orders import ManyOrders
from tests.support.machine_world import T0, World, plan, step

SHARDS = 16
MANY = 12_000
LANES = {TaskState.ACTIVE: Lane.OPEN, TaskState.ARCHIVED: Lane.ARCHIVED}
FIRST = World(plan(step("a"))).task


def tasks(many: int) -> Iterator[Task]:
    """Orders of all lanes: of ten, eight are completed, one is open and one archived."""
    for place in range(many):
        name = f"ord-{place}"
        shard = shard_of(name, SHARDS)
        state = {0: TaskState.ARCHIVED, 1: TaskState.ACTIVE}.get(place % 10, TaskState.COMPLETED)
        ended = None if state is TaskState.ACTIVE else T0 - place
        yield replace(
            FIRST,
            task_id=name,
            lane=lane_key(LANES.get(state, Lane.DONE), shard),
            state=state,
            ended_at=ended,
            due_at=T0 - place,
        )


@pytest.fixture(scope="module")
def many() -> ManyOrders:
    return ManyOrders.of(tasks(MANY))


def test_a_reading_has_a_bounded_number_of_requests_and_some_readings_see_everything(
    many: ManyOrders,
) -> None:
    glance, at = Glance(many.stack(SHARDS)), T0
    first = glance.look_at_orders(at, Allowance())
    assert first.lanes[Lane.DONE] == Count(0, more=True), "not looked at is no number"
    seen, readings = first, 1
    while seen.looked < seen.parts:
        before = many.requests.total()
        at, readings = at + 30_000, readings + 1
        seen = glance.look_at_orders(at, Allowance())
        assert many.requests.total() - before <= SHARDS_A_READING
    assert (readings, seen.whole) == (3 * SHARDS // SHARDS_A_READING, True)
    assert seen.lanes[Lane.ARCHIVED] == Count(MANY // 10)
    assert seen.lanes[Lane.OPEN] == Count(MANY // 10)
    assert seen.lanes[Lane.DONE].more, "a shard has more entries than are read of it"
    assert len(seen.opened) == READ_HERE
    assert seen.opened[0] == f"ord-{MANY - 9}", "due first"
    assert seen.newest_archived[0] == "ord-0"
    assert seen.oldest_archived == T0 - (MANY - 10)
    assert seen.since is not None
    assert seen.since < at


def test_the_states_of_open_orders_are_those_that_were_read(many: ManyOrders) -> None:
    glance = Glance(many.stack(SHARDS))
    for _ in range(4):
        seen = glance.look_at_orders(T0, Allowance())
    counts = seen.counts(OpenOrders((FIRST,), whole=False))
    assert counts.states[FIRST.state] == Count(1, more=True)
    assert counts.states[TaskState.RETRY] == Count(0, more=True)
    assert counts.states[TaskState.ARCHIVED] == Count(MANY // 10)
    assert not counts.states[TaskState.UNDONE].count


def test_a_large_table_is_not_read_as_a_whole_again_for_an_hour(many: ManyOrders) -> None:
    glance = Glance(many.stack(SHARDS))
    before = many.requests["Scan"]
    for at in (T0, T0 + 1, T0 + LARGE_FOR - 1):
        glance.look_at_orders(at, Allowance())
    assert many.requests["Scan"] - before == 1
    glance.look_at_orders(T0 + LARGE_FOR, Allowance())
    assert many.requests["Scan"] - before == 2


def test_no_more_is_asked_than_a_reading_may(many: ManyOrders) -> None:
    glance, spent = Glance(many.stack(SHARDS)), Allowance(0)
    before = many.requests.total()
    seen = glance.look_at_orders(T0, spent)
    assert many.requests.total() == before
    assert (seen.looked, seen.parts) == (0, 3 * SHARDS)
    assert Allowance().left < REQUESTS
    short = Allowance(3)
    assert (short.take(2), short.take(5), short.take(1), short.left) == (2, 1, 0, 0)


def test_all_orders_of_a_small_table_are_counted_without_those_whose_retention_is_over() -> None:
    found = of_all(
        [
            TaskGlance("a", "open#3", T0 + 5, "Active", False, "", None),
            TaskGlance("b", "open#1", T0 + 2, "Retry", False, "f-1", None),
            TaskGlance("c", "archived#0", T0, "Archived", False, "f-1", None),
            TaskGlance("d", "done#0", T0, "Completed", True, "", T0 // 1000 + 9),
            TaskGlance("e", "done#0", T0, "Completed", True, "", T0 // 1000 - 9),
            TaskGlance("f", "strange", T0, "Strange", False, "", None),
        ],
        T0,
    )
    assert found.whole
    assert (found.opened, found.newest_archived) == (["b", "a"], ["c"])
    assert found.states[TaskState.COMPLETED] == Count(1)
    assert found.left_out == Count(1)
    assert found.members == {"f-1": 2}
    assert (found.oldest_due, found.oldest_archived) == (T0 + 2, T0)


def test_a_group_has_the_number_of_its_supervisor_unless_all_orders_were_read() -> None:
    assert counted_now([], None, T0) == []
