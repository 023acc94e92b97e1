"""Stories of tasks whose tables were restored to an earlier instant."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.definition.workflow import Retry, Signal
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Reconcile
from roundsman.model.instants import SECOND
from roundsman.model.states import TaskState
from tests.support.fan_out_stories import lines, pick
from tests.support.machine_world import T0, World, begun, plan, step
from tests.support.undo_stories import FENCED, undoing

HOUR = 3_600
LATER = ProcessingOptions(start_at=T0 + 60 * SECOND)


def restored(world: World, seconds: float = HOUR) -> World:
    """The tables are restored to the present instant so many seconds later, and reconciled."""
    at = world.now
    world.wait(seconds)
    world.apply(Reconcile(world.asked(), at))
    return world


def one_of_two_done() -> World:
    """`a` is done and `b` is under way; nothing is known of `c`, which comes after both."""
    a, b = step("a", compensation=FENCED), step("b", compensation=FENCED)
    world = begun(a, b, step("c", a, b, compensation=FENCED))
    world.succeeds("a", {"id": 1})
    return world


def fails_beside_another() -> World:
    """`a` waits for an hour and more, and `b` is under way beside it."""
    waits = Retry(first_delay=timedelta(hours=10), max_delay=timedelta(hours=10))
    world = begun(step("a", retry=waits), step("b"), complete_within=timedelta(days=10))
    world.fails("a", retry_after=20 * HOUR * SECOND)
    return world


def fails_at_first() -> World:
    """`a` waits for its second attempt."""
    world = begun(step("a"))
    world.fails("a")
    return world


def scheduled() -> World:
    return World(plan(step("a")), LATER)


def new() -> World:
    return World(plan(step("a")))


def ready_again() -> World:
    """`a` was overdue and waits to be claimed."""
    world = new()
    world.start()
    world.overdue("a")
    assert world.task_state() is TaskState.PENDING
    return world


def undo_under_way() -> World:
    world = undoing()
    world.start()
    assert world.record("a").under_way
    return world


def undo_waits_for_what_may_have_been_performed() -> World:
    """`a` is to be undone and to go on at its second agent, but `c` may have been performed."""
    a = step("a", agents=("first", "second"), compensation=FENCED, retry=Retry(max_attempts=1))
    world = begun(a, step("b"), step("c", "a", compensation=FENCED))
    restored(world)
    world.start()
    world.fails("a")
    world.succeeds("b")
    return world


def fans_out_after_a_restore() -> World:
    """Nobody knows whether the items were performed since, and they are begun again."""
    world = World(plan(pick(compensation=FENCED)), order=lines(2))
    restored(world)
    world.start()
    return world


def waits_for_a_signal() -> World:
    return begun(Signal("paid", within=timedelta(minutes=10)))


RESTORED_STORIES: list[Callable[[], World]] = [
    lambda: restored(one_of_two_done()),
    lambda: restored(fails_beside_another()),
    lambda: restored(fails_at_first()),
    lambda: restored(scheduled()),
    lambda: restored(scheduled(), 30),
    lambda: restored(ready_again()),
    lambda: restored(undo_under_way()),
    undo_waits_for_what_may_have_been_performed,
    fans_out_after_a_restore,
    lambda: restored(waits_for_a_signal()),
]
