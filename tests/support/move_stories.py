"""Stories of an open task that goes on under another plan."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.instants import SECOND
from tests.support.machine_world import T0, World, begun, plan, step

A = step("a")
LATER = step("later", "a", agent="slow")


def parked() -> World:
    """A task whose last step waits for an agent on hold, and was never sent."""
    world = World(plan(A, LATER))
    world.hold("slow", 600)
    world.start()
    world.wait(20).succeeds("a")
    return world


def ready() -> World:
    """The same, but the hold is over, and nobody has claimed the step yet."""
    world = parked()
    world.release("slow")
    world.wait(60).inspect()
    return world


def sent_late() -> World:
    """A task whose first step was overdue 20 s before the end of its time."""
    world = World(plan(A, LATER))
    world.wait(3_550).start()
    world.overdue("a")
    return world


def under_way() -> World:
    """A task whose first step is at its agent."""
    return begun(A, LATER)


def scheduled() -> World:
    """A task that has not started."""
    return World(plan(A, LATER), ProcessingOptions(start_at=T0 + 600 * SECOND))


def moved(world: World, *, without: bool) -> World:
    """The task under a plan without the last step, or with another agent for it."""
    world.move(plan(A) if without else plan(A, step("later", "a", agent="other")))
    return world


def has_less_time(world: World, seconds: int) -> World:
    """The task under a plan that gives it so much less than an hour."""
    world.move(plan(A, LATER, complete_within=timedelta(hours=1, seconds=-seconds)))
    return world


MOVE_STORIES: list[Callable[[], World]] = [
    lambda: moved(parked(), without=True),
    lambda: moved(parked(), without=False),
    lambda: has_less_time(parked(), 3_570),
    lambda: has_less_time(sent_late(), 15),
    lambda: moved(ready(), without=True),
    lambda: moved(under_way(), without=True),
    lambda: moved(scheduled(), without=True),
    lambda: moved(scheduled().wait(601), without=True),
]
