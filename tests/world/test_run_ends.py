"""At what `World.run` ends if it is given both a time and a condition."""

from datetime import timedelta

import pytest

from roundsman import Step, Undo, Workflow
from roundsman_testing import World, crash_everywhere

STEP = Step(name="s", agent="a", complete_within=timedelta(seconds=30))
WAITS = Workflow(name="w", steps=(STEP,), complete_within=timedelta(days=9), on_failure=Undo())


def test_a_condition_that_is_true_already_moves_no_clock() -> None:
    world = World(WAITS)
    world.on("s").asks(timedelta(days=5), remind_every=timedelta(days=1))
    world.submit({})
    world.run(for_=timedelta(seconds=1))
    begin = world.now
    world.run(for_=timedelta(days=3), until=lambda: True)
    assert world.now == begin


def test_a_run_for_a_time_ends_at_its_condition_or_at_the_end_of_the_time() -> None:
    world = World(WAITS)
    world.submit({})
    begin = world.now
    world.run(for_=timedelta(days=3), until=lambda: not world.processes.watch.open_tasks())
    assert world.now - begin < 60_000
    world.run(for_=timedelta(days=3), until=lambda: False)
    assert world.now - begin >= 3 * 86_400_000


def test_a_condition_may_read_the_task_of_an_order_whose_event_still_waits() -> None:
    world = World(WAITS)
    order = world.submit({})
    world.run(until=lambda: world.task(order).ended)
    assert world.task(order).ended


def test_whatever_call_fails_a_condition_that_reads_the_task_is_no_error() -> None:
    def story(world: World) -> None:
        order = world.submit({})
        world.run(until=lambda: world.task(order).ended)

    assert crash_everywhere(story, lambda faults: World(WAITS, faults=faults)).runs > 10


def test_a_condition_about_an_order_that_never_was_says_so() -> None:
    world = World(WAITS)
    world.submit({})
    with pytest.raises(LookupError, match="nobody was never taken"):
        world.run(until=lambda: world.task("nobody").ended)
