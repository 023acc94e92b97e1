"""Whole orders with a fault at every single call of every part: all of them, not a sample.

For each story, one run without faults counts the calls; then each call in turn fails in each way
there is. Every record is held against the invariants as it is written (`roundsman_testing`).
"""

from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import cache

import pytest
from _pytest.mark.structures import ParameterSet

from roundsman.model.json import canonical_json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_testing import Fault, Faults, World
from roundsman_testing.world.crashes import PASSING, crash_everywhere
from tests.support.crash_stories import STORIES, WELL
from tests.support.crash_story import ORDER_ID, Story, circuits_that_never_open, run_story
from tests.support.machine_world import step, workflow

SECONDS = timedelta(seconds=1)


SHORT = (
    "a declined card",
    "a transient fault",
    "cancelled before its time",
    "success with retention zero",
    "success without replyTo",
)
"""What `make check` tries; `make verify` tries the others too, which take most of the time."""


def world_of(story: Story, faults: Faults, **skew: timedelta) -> World:
    return World(
        story.workflow,
        agents=story.agents(),
        faults=faults,
        skew=skew,
        circuits=circuits_that_never_open(story.workflow),
    )


def undisturbed(story: Story) -> World:
    world = world_of(story, Faults())
    run_story(story, world)
    return world


@cache
def task_without(name: str) -> Task:
    """The task of a story at its end, in the run without faults."""
    return undisturbed(STORIES[name]).task(ORDER_ID)


def states(task: Task, but: Sequence[str]) -> dict[str, ProcessState]:
    return {n: found.process_state for n, found in task.steps.items() if n not in but}


def of_its_length(name: str) -> ParameterSet:
    return pytest.param(name, marks=[] if name in SHORT else [pytest.mark.verify])


def check(story: Story, world: World, before: Task) -> None:
    """All that must be so at the end, whatever failed on the way; `before`: of the run without."""
    task = world.task(ORDER_ID)
    assert task.state is story.end
    assert not task.owed
    assert states(task, story.perhaps) == states(before, story.perhaps)
    check_messages(story, world)
    check_effects(story, world)


def check_messages(story: Story, world: World) -> None:
    """Each status and alert came at least once; a repeated one is the same; `seq` rises."""
    statuses = {(status.seq, status.name) for status in world.statuses(ORDER_ID)}
    assert [name for _, name in sorted(statuses)] == story.statuses
    assert len({seq for seq, _ in statuses}) == len(statuses)
    kinds = {alert.attributes["kind"] for alert in world.post.alerts} - {"breaker_closed"}
    assert kinds == ({"task_archived"} if story.alerts else set())
    assert not world.post.put_aside


def check_effects(story: Story, world: World) -> None:
    """What must stand stands once, under one key in every attempt; and nothing else does."""
    stands = [name for name in world.standing(ORDER_ID) if name not in story.perhaps]
    assert sorted(stands) == sorted(name for name in story.stands if name not in story.perhaps)
    assert set(world.services.ledger.count.values()) <= {1}


def check_attempts(world: World, before: Task) -> None:
    """Each fault costs one attempt at most, counted at the same agent."""
    for name, record in world.task(ORDER_ID).steps.items():
        if name in before.steps and before.steps[name].tried != record.tried:
            continue
        spent = before.steps[name].failure_count if name in before.steps else 0
        assert record.failure_count <= spent + len(world.faults.happened), name


def everywhere(name: str, faults: Collection[Fault] = PASSING, then: Sequence[int] = ()) -> int:
    story = STORIES[name]

    def whole(world: World) -> None:
        run_story(story, world)
        check(story, world, task_without(name))
        check_attempts(world, task_without(name))

    made = lambda faults: world_of(story, faults)  # noqa: E731
    return crash_everywhere(whole, made, faults=faults, then=then).runs


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", [of_its_length(name) for name in STORIES])
def test_every_order_comes_to_its_end_whatever_single_call_fails(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    runs = everywhere(name)
    record_property("runs", runs)
    assert runs > 0


@pytest.mark.exhaustive
def test_where_redelivery_comes_before_complete_by_no_fault_of_a_scheduler_costs_an_attempt() -> (
    None
):
    slow = step("reserve", complete_within=timedelta(minutes=5))
    charge = step("charge", slow, complete_within=timedelta(minutes=5))

    def well(world: World) -> None:
        world.submit({"orderId": ORDER_ID})
        world.run()
        task = world.task(ORDER_ID)
        assert task.state is TaskState.COMPLETED
        for hit in world.faults.happened:
            if hit.name == "reply":
                return  # the agent's own
        assert [record.failure_count for record in task.steps.values()] == [0, 0]

    lost = {Fault.SWALLOWED}  # on the way
    plan = workflow(slow, charge)
    crash_everywhere(well, lambda faults: World(plan, faults=faults), faults=PASSING - lost)


@pytest.mark.verify
@pytest.mark.parametrize("name", ["a transient fault", "an agent that hangs", "a declined card"])
def test_every_order_comes_to_its_end_when_recovery_is_hit_as_well(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    faults = (Fault.CRASH_AFTER, Fault.UNKNOWN)
    runs = everywhere(name, faults=faults, then=(1, 2, 3, 5))
    record_property("runs", runs)
    assert runs > 0


@pytest.mark.parametrize(
    "ahead", [-20, *(pytest.param(ahead, marks=pytest.mark.exhaustive) for ahead in (-1, 1, 20))]
)
def test_clocks_that_differ_cost_a_retry_and_nothing_else(ahead: int) -> None:
    for name, story in STORIES.items():
        world = world_of(story, Faults(), supervisor=ahead * SECONDS)
        run_story(story, world)
        check(story, world, task_without(name))


@pytest.mark.exhaustive
def test_without_faults_each_thing_is_reported_and_sent_once() -> None:
    for name, story in STORIES.items():
        world = undisturbed(story)
        check(story, world, world.task(ORDER_ID))
        statuses = [status.name for status in world.statuses(ORDER_ID)]
        assert statuses == story.statuses or name == "an order that is sent twice"
        alerts = [alert.attributes["kind"] for alert in world.post.alerts]
        assert len(alerts) - alerts.count("breaker_closed") == story.alerts


def test_a_healthy_order_is_carried_by_messages_alone() -> None:
    world = undisturbed(WELL["success without replyTo"])
    assert world.standing(ORDER_ID) == ["reserve", "charge", "ship"]
    assert "due" not in world.faults.calls, "no supervisor was needed"
    assert world.history(ORDER_ID) == []
    assert canonical_json(world.task(ORDER_ID).results()) == (
        '{"charge":{"done":"charge"},"reserve":{"done":"reserve"},"ship":{"done":"ship"}}'
    )
