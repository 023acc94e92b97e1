"""Stories of sleeps, for the tables of transitions."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.definition.workflow import Limit, Sleep, SleepUntil
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.instants import SECOND
from roundsman.model.order_limit import Turn
from tests.support.machine_world import T0, World, begun, plan, step

NAP = Sleep(name="nap", for_=timedelta(minutes=10))


def begins_with_a_sleep_that_a_supervisor_ends() -> World:
    world = World(plan(NAP), ProcessingOptions(start_at=T0 + 60 * SECOND))
    world.wait(60).start()
    world.wait(600).inspect()
    return world


def given_more_time_and_then_ended_by_a_person() -> World:
    world = begun(NAP, step("b", NAP))
    world.extend(600, "nap")
    world.resolve("nap")
    world.start()
    world.succeeds("b")
    return world


def sleeps_after_a_late_success() -> World:
    """The first attempt succeeds while the step waits for its second one."""
    first = step("a")
    world = begun(first, Sleep(name="nap", for_=timedelta(minutes=10), after=(first,)))
    lock = world.lock("a")
    world.fails("a")
    world.succeeds("a", lock=lock)
    world.wait(600).start()
    return world


def begins_at_an_instant_that_is_past() -> World:
    until = SleepUntil("input.departure", name="nap")
    world = begun(until, step("b", until), order={"departure": "2020-01-01T00:00:00Z"})
    world.succeeds("b")
    return world


def begun_again_after_a_cancellation() -> World:
    world = begun(NAP)
    world.cancel(undo=False)
    world.resubmit(again=True)
    world.start()
    world.wait(600).start()
    return world


def begins_with_a_sleep_after_its_turn_has_come() -> World:
    """It waits for its turn, is looked at, and begins."""
    world = World(plan(NAP, limit=Limit(by="input.customerId")))
    world.turn = Turn(free=False, why="waits for its turn")
    world.start()
    world.wait(3 * 3_600).inspect()
    world.start()
    world.turn = Turn(free=True, why="it is its turn")
    world.start()
    world.wait(600).start()
    return world


def ends_as_its_turn_comes() -> World:
    until = SleepUntil("input.departure", name="nap")
    world = World(plan(until, limit=Limit(by="input.customerId")))
    world.order = {"departure": "2020-01-01T00:00:00Z"}
    world.start()  # nobody has looked whether it is its turn
    world.turn = Turn(free=True, why="it is its turn")
    world.start()
    return world


SLEEP_STORIES: list[Callable[[], World]] = [
    begins_with_a_sleep_that_a_supervisor_ends,
    given_more_time_and_then_ended_by_a_person,
    sleeps_after_a_late_success,
    begins_at_an_instant_that_is_past,
    begun_again_after_a_cancellation,
    begins_with_a_sleep_after_its_turn_has_come,
    ends_as_its_turn_comes,
]
