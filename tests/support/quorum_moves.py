"""Stories in which a step of which enough others have succeeded changes its task's state."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from roundsman.definition.workflow import AnyOf, Signal, Sleep, Step, Undo
from roundsman.model.events import Outcome
from tests.support.fan_out_stories import FENCED, UNFENCED
from tests.support.machine_world import World, begun, plan, step

LONG = timedelta(minutes=14)
accepted = Signal("accepted", within=LONG)
late = Sleep(name="late", for_=timedelta(minutes=2))


def two_results_are_missing() -> World:
    """Both answer with too much; a person gives one result, and the undo of the other waits."""
    air, sea = (
        step(name, agent=name, compensation=UNFENCED, result_limit=10) for name in ("air", "sea")
    )
    world = begun(air, sea, step("book", AnyOf(air, sea)), on_failure=Undo())
    world.succeeds("sea", "x" * 20)
    world.succeeds("air", "x" * 20)
    world.resolve("air")
    return world


def a_result_is_missing(first: Signal | Sleep) -> World:
    """`sea` has answered with too much near the end of its time, beside what waits."""
    sea = step("sea", agent="sea", compensation=UNFENCED, result_limit=10, complete_within=LONG)
    world = begun(first, sea, step("book", AnyOf(first, sea)), on_failure=Undo())
    world.succeeds("sea", "x" * 20)
    return world


def the_sleep_is_over() -> World:
    world = a_result_is_missing(late)
    world.wait(121).inspect()
    return world


def the_signal_comes() -> World:
    world = a_result_is_missing(accepted)
    world.signal("accepted")
    return world


def an_answer_is_awaited(
    first: Signal | Sleep, then: Step, *beside: Step, keep: bool = False
) -> World:
    """`ask` waits for its answer, and `then` begins after it or after what is first."""
    ask = step("ask", compensation=None if keep else FENCED, keep=keep)
    last = replace(then, after=AnyOf(first, ask))
    world = begun(first, ask, *beside, last, on_failure=Undo())
    world.waits_for_callback("ask", 600)
    return world


def the_signal_is_first(*beside: Step) -> World:
    """The wait for the answer ends, and the undo of `ask` begins; what is beside it has failed."""
    world = an_answer_is_awaited(accepted, step("book"), *beside)
    for one in beside:
        world.fails(one.name)
    world.signal("accepted")
    return world


def the_time_is_first(then: Step) -> World:
    """A Start comes after the sleep: the wait ends, and `ask` may stay as it is."""
    world = an_answer_is_awaited(late, then, keep=True)
    world.hold("book", 600)
    world.wait(121).start()
    return world


def moved(*beside: Step, waits: Callable[[World], object]) -> World:
    """Under the plan that it goes on with one of two is enough, and has succeeded."""
    air, sea = (step(name, agent=name, compensation=FENCED) for name in ("air", "sea"))
    world = begun(air, sea, *beside, step("book", air, sea), on_failure=Undo())
    world.succeeds("air")
    for one in beside:
        world.fails(one.name)
    waits(world)
    book = step("book", AnyOf(air, sea))
    world.move(plan(air, sea, *beside, book, on_failure=Undo()))
    return world


def its_answer_is_awaited(world: World) -> None:
    world.waits_for_callback("sea", 600)


def moved_after_a_timeout() -> World:
    """`sea` is to be tried again when it is not needed any more, and its undo waits."""
    air, sea = (step(name, agent=name, compensation=UNFENCED) for name in ("air", "sea"))
    world = begun(air, sea, step("book", air, sea), on_failure=Undo())
    world.succeeds("air")
    world.overdue("sea")
    world.move(plan(air, sea, step("book", AnyOf(air, sea)), on_failure=Undo()))
    return world


def answered_late() -> World:
    """An earlier attempt at `air` has succeeded, and the undo of `sea` waits; `book` is held."""
    air = step("air", agent="air", compensation=UNFENCED)
    sea = step("sea", agent="sea", compensation=UNFENCED, result_limit=10, complete_within=LONG)
    world = begun(air, sea, step("book", AnyOf(air, sea), agent="book"), on_failure=Undo())
    world.succeeds("sea", "x" * 20)
    lock = world.lock("air")
    world.overdue("air")
    world.hold("book", 600)
    world.reply("air", Outcome.SUCCEEDED, lock=lock)
    return world


AGAIN = step("again", agent="again")

QUORUM_MOVES: list[Callable[[], World]] = [
    two_results_are_missing,
    the_sleep_is_over,
    the_signal_comes,
    the_signal_is_first,
    lambda: the_signal_is_first(AGAIN),
    lambda: the_time_is_first(step("book", agent="book")),
    lambda: the_time_is_first(Sleep(name="book", for_=timedelta(minutes=2))),
    lambda: moved(waits=its_answer_is_awaited),
    lambda: moved(AGAIN, waits=its_answer_is_awaited),
    moved_after_a_timeout,
    answered_late,
]
