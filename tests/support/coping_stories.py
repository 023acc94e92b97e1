"""Stories of agents that take no work, of steps with several agents, and of long steps."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import AgentView
from roundsman.model.instants import SECOND
from tests.support.machine_world import T0, World, begun, plan, step

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=ONCE)
UNFENCED = Compensation(retry=ONCE)
LATER = ProcessingOptions(start_at=T0 + 60 * SECOND)
TWO = ("first", "second")
SLOW = step("a", heartbeat_within=timedelta(seconds=10), complete_within=timedelta(minutes=10))


def routed(
    *, fenced: bool = True, attempts: int = 1, agents: tuple[str, ...] = TWO, **known: AgentView
) -> World:
    """A started task whose step `a` may go to several agents, undone if it fails."""
    compensation = FENCED if fenced else UNFENCED
    retry = Retry(max_attempts=attempts)
    made = plan(step("a", agents=agents, compensation=compensation, retry=retry), on_failure=Undo())
    world = World(made)
    world.agents = {f"{name}/normal": view for name, view in known.items()}
    world.start()
    return world


def held(options: ProcessingOptions | None = None) -> World:
    """A task whose first step is held for ten minutes before it was ever claimed."""
    world = World(
        plan(step("a", compensation=FENCED), on_failure=Undo()), options or ProcessingOptions()
    )
    if options is not None:
        world.wait(60)
    world.hold("worker", 600).start()
    return world


def held_and_released() -> World:
    world = held()
    world.release("worker").wait(20).inspect()
    world.start()
    world.gives_back("a")
    world.wait(60).start()
    world.succeeds("a")
    return world


def held_after_a_step() -> World:
    first = step("first", agent="other")
    world = begun(first, step("a", first))
    world.hold("worker", 600).succeeds("first")
    return world


def held_after_a_late_success() -> World:
    """The first step's answer comes after it was requeued, and lets the next one be held."""
    first = step("first", agent="other")
    world = begun(first, step("a", first))
    lock = world.lock("first")
    world.overdue("first")
    world.hold("worker", 600).succeeds("first", lock=lock)
    return world


def held_undo() -> World:
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", a, agent="other"), on_failure=Undo())
    world.succeeds("a")
    world.hold("worker", 60).is_refused("b")
    world.release("worker").wait(90).start()
    world.succeeds("a")
    return world


def long_and_called_back() -> World:
    world = begun(SLOW)
    world.shows_progress("a")
    world.waits_for_callback("a", 300, remind_every=100)
    world.wait(100).start()
    world.succeeds("a")
    return world


def settled() -> World:
    world = routed()
    world.fails("a")
    world.succeeds("a")
    world.succeeds("a")
    return world


def settled_by_hand() -> World:
    """The undo at the first agent fails; a person makes it, and the step goes on elsewhere."""
    world = routed()
    world.fails("a")
    world.is_refused("a")
    world.resolve("a")
    return world


def refused_at_the_second() -> World:
    """Settled at the first agent and refused by the second: the task is undone at both."""
    world = routed()
    world.fails("a")
    world.succeeds("a")
    world.is_refused("a")
    return world


def undone_at_both() -> World:
    world = refused_at_the_second()
    world.succeeds("a")
    world.succeeds("a")
    return world


def undone_at_one_by_hand() -> World:
    world = refused_at_the_second()
    world.is_refused("a")
    world.resolve("a")
    return world


def cancelled_while_it_is_undone_to_go_on() -> World:
    """Cancelled as it stands, while its step's undo at the first agent waits to begin."""
    world = routed(fenced=False)
    world.fails("a")
    world.cancel(undo=False)
    return world


def cancelled_while_one_is_undone_to_go_on_and_one_waits() -> World:
    """Cancelled as it stands: the wait for a callback ends, and the other step's undo waits."""
    world = begun(
        step("a", agents=TWO, compensation=UNFENCED, retry=Retry(max_attempts=1)),
        step("b", agent="desk"),
        on_failure=Archive(),
    )
    world.waits_for_callback("b", 600)
    world.fails("a")
    world.cancel(undo=False)
    return world


def archived_in_an_undo_that_goes_on() -> World:
    """Its plan was missing while its step's undo at the first agent waited, and is back."""
    world = routed(fenced=False)
    world.fails("a")
    world.stored_plan = False
    world.inspect()
    world.stored_plan = True
    return world


def cancelled_in_an_undo_that_goes_on(seconds: int) -> World:
    world = archived_in_an_undo_that_goes_on()
    world.wait(seconds).cancel(undo=False)
    return world


def cancelled_while_its_plan_is_missing() -> World:
    """Nothing of it can be undone, but without its plan nobody knows that."""
    world = begun(step("a"))
    world.cancel()
    world.stored_plan = False
    world.overdue("a")
    return world


def resubmitted_once_its_plan_is_back() -> World:
    world = cancelled_while_its_plan_is_missing()
    world.stored_plan = True
    world.resubmit()
    return world


def polled() -> World:
    """An outside job is not done at the first poll; a person gives it time, and then it is done."""
    world = begun(step("a", compensation=FENCED), on_failure=Undo())
    world.is_not_done("a")
    world.extend(60, "a")
    world.wait(60).start()
    world.succeeds("a")
    return world


COPING_STORIES: list[Callable[[], World]] = [
    held,
    lambda: held(LATER),
    held_and_released,
    held_after_a_step,
    held_after_a_late_success,
    held_undo,
    long_and_called_back,
    settled,
    settled_by_hand,
    undone_at_both,
    undone_at_one_by_hand,
    lambda: cancelled_in_an_undo_that_goes_on(0),
    lambda: cancelled_in_an_undo_that_goes_on(60),
    resubmitted_once_its_plan_is_back,
    polled,
    cancelled_while_one_is_undone_to_go_on_and_one_waits,
]
