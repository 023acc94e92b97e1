"""At what `World.run` ends if it is given both a time and a condition."""

from datetime import timedelta

from roundsman import Step, Undo, Workflow
from roundsman_testing import World

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
