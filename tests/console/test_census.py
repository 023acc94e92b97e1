"""Counting the orders of each workflow in the index: right, or lower bounds with all workflows."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from roundsman.engine.due import Lane, lane_key
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.orders.census import take_census
from roundsman_console.facts.orders.counts import Count
from tests.console.many_orders import ManyOrders
from tests.console.shelves import archived, open_task
from tests.console.step_samples import AT

SHARDS = 16
COMPLETED, UNDONE, CANCELLED = TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED


def over_after(many: ManyOrders, requests: int) -> Callable[[], float]:
    """A clock by which a second is over after so many requests, each time it begins."""
    return lambda: many.requests["Query"] / requests


@pytest.fixture(scope="module")
def kept() -> list[Task]:
    """20,000 orders: most of one workflow, of which another is only among the oldest ones."""
    done = replace(archived("a"), state=COMPLETED, ending=None, failure=None, steps={})
    tasks = []
    for place in range(20_000):
        shard = place % SHARDS
        if place < 1_000:
            base, lane, workflow = archived("a"), Lane.ARCHIVED, "story"
        elif place < 2_000:
            base, lane, workflow = open_task("a"), Lane.OPEN, "gift"
        else:
            base, lane, workflow = done, Lane.DONE, "story"
        if place == 19_000:
            base, workflow = replace(done, state=UNDONE), "rare"
        tasks.append(
            replace(
                base,
                task_id=f"ord-{place:05}",
                workflow=workflow,
                shard=shard,
                lane=lane_key(lane, shard),
                due_at=AT - place,
            )
        )
    return tasks


@pytest.fixture
def many(kept: list[Task]) -> ManyOrders:
    return ManyOrders.of(kept)


@pytest.fixture
def stack(many: ManyOrders) -> DeployedStack:
    return many.stack(SHARDS)


@pytest.mark.exhaustive
def test_all_20_000_orders_are_counted_by_workflow_and_end(stack: DeployedStack) -> None:
    census = take_census(stack, ["unused"], clock=lambda: 0.0)
    assert (census.whole, census.complete, census.looked_at) == (True, True, 20_000)
    assert {*census.workflows} == {"story", "gift", "rare", "unused"}
    assert census.ended("story", COMPLETED) == Count(17_999)
    assert census.archived("story") == Count(1_000)
    assert census.completed_share("story") == 17_999 / 18_999
    assert census.open("gift") == Count(1_000)
    assert census.completed_share("gift") is None
    assert census.ended("rare", UNDONE, CANCELLED) == Count(1)
    assert census.completed_share("rare") == 0
    assert (census.open("unused"), census.ended("unused", COMPLETED)) == (Count(0), Count(0))


@pytest.mark.exhaustive
def test_counts_that_stop_in_time_are_lower_bounds_and_every_workflow_is_found(
    stack: DeployedStack, many: ManyOrders
) -> None:
    census = take_census(stack, clock=over_after(many, 40))
    assert census.partly == {Lane.DONE}
    assert {*census.workflows} == {"story", "gift", "rare"}
    assert census.complete
    assert (census.archived("story"), census.open("gift")) == (Count(1_000), Count(1_000))
    found = census.ended("story", COMPLETED)
    assert found.more
    assert 0 < found.count < 17_999
    assert census.completed_share("story") is None, "a share of some orders would be another"
    assert census.ended("rare", UNDONE) == Count(1, more=True)


@pytest.mark.exhaustive
def test_a_search_that_has_no_time_says_that_workflows_may_be_missing(
    stack: DeployedStack, many: ManyOrders
) -> None:
    over = over_after(many, 1)
    census = take_census(stack, clock=over)
    assert not census.complete
    assert census.partly == {Lane.ARCHIVED, Lane.OPEN, Lane.DONE}
    assert take_census(stack, ["story"], clock=over).open("story") == Count(0, more=True)


@pytest.mark.exhaustive
def test_samples_are_of_every_workflow(stack: DeployedStack, kept: list[Task]) -> None:
    by_id = {task.task_id: task for task in kept}
    ids = take_census(stack, clock=lambda: 0.0).samples(60)
    assert len(ids) == len({*ids}) <= 60
    assert {by_id[one].workflow for one in ids} == {"story", "gift", "rare"}


def test_an_end_that_the_index_does_not_say_makes_the_counts_lower_bounds() -> None:
    done = replace(archived("a"), lane="done#0", state=COMPLETED, ending=None)
    many = ManyOrders.of([done, replace(done, task_id="b", state=TaskState.ACTIVE)])
    census = take_census(many.stack(1))
    assert census.ended(done.workflow, COMPLETED) == Count(1, more=True)
    assert census.archived(done.workflow) == Count(0)
