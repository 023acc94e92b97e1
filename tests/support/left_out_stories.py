"""Stories of results that are left out of the record, for the tables of transitions."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND
from roundsman.model.task import Effect, StepError
from tests.support.machine_world import World, begun, plan, step
from tests.support.restored_stories import restored

FENCED = Compensation(fences_late_performs=True)
LONG = "x" * 200
NOT_JSON = StepError("ResultNotJson", "result is a set, which is not JSON", unexpected=True)


def awaited(deadline: timedelta = timedelta(days=9)) -> World:
    """The step `a` is done, and `b` waits for its result; the branch `c` is performed."""
    a = step("a", result_limit=100, compensation=FENCED)
    world = begun(a, step("b", a), step("c"), on_failure=Undo(), deadline=deadline)
    world.succeeds("a", LONG)
    return world


def given() -> World:
    world = awaited()
    world.succeeds("a", LONG)  # AWAITS_RESULT, STALE
    world.succeeds("c")
    world.resolve("a", result={"id": 7})
    world.start()
    world.succeeds("b")
    return world


def given_as_the_last_step() -> World:
    """It adds steps that cannot be added, so that its order awaits the result."""
    world = begun(step("a", retry=Retry(max_attempts=1)))
    wrong = StepError("WrongThen", "adds other[a]", unexpected=True)
    world.reply("a", Outcome.TRANSIENT, error=wrong, effect=Effect.STANDS)
    world.resolve("a", result={"id": 7})
    return world


def nobody_reads_it() -> World:
    world = begun(step("a", result_limit=100), step("b"), on_failure=Undo())
    world.succeeds("a", LONG)
    world.resolve("a", result="short")  # of a step that is Processed
    world.succeeds("b")
    return world


def undone_on_request() -> World:
    world = awaited()
    world.succeeds("c")
    world.ask_undo()
    world.start()
    world.succeeds("a")
    return world


def cancelled_and_begun_anew(under: Plan | None = None) -> World:
    """No step has a compensation, so the order may begin again."""
    a = step("a", result_limit=100)
    world = begun(a, step("b", a))
    world.succeeds("a", LONG)
    world.cancel(undo=False)
    world.resubmit(again=True, under=under)
    return world


def archived_at_its_deadline() -> World:
    world = awaited(deadline=timedelta(hours=2))
    world.succeeds("c")
    world.wait(3 * 3600).inspect()
    return world


def of_an_earlier_attempt(*, ready: bool) -> World:
    a = step("a", result_limit=100)
    world = begun(a, step("b", a))
    first = world.lock("a")
    if ready:
        world.overdue("a")
    else:
        world.fails("a", retry_after=60 * SECOND)
    world.succeeds("a", LONG, lock=first)
    return world


def of_an_answer() -> World:
    a = step("a", result_limit=100)
    world = begun(a, step("b", a))
    world.waits_for_callback("a", 1_800)
    world.succeeds("a", LONG)
    return world


def of_a_parked_step() -> World:
    a = step("a", result_limit=100)
    world = begun(a, step("b", a))
    world.gives_back("a", retry_after=600 * SECOND, called=True)
    world.succeeds("a", LONG, lock="earlier.1")
    return world


def of_a_restored_step() -> World:
    a = step("a", "first", result_limit=100)
    world = restored(World(plan(step("first"), a, step("b", "a"), on_failure=Archive())))
    world.succeeds("a", LONG, lock="earlier.1")
    return world


def undone_when_no_request_can_act() -> World:
    a = step("a", result_limit=100, compensation=Compensation())
    world = begun(a, step("b", a), on_failure=Undo())
    world.succeeds("a", LONG)
    world.ask_undo()
    return world


def that_is_no_json() -> World:
    a = step("a", retry=Retry(max_attempts=1))
    world = begun(a, step("b", a), on_failure=Archive())
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    return world


LEFT_OUT_STORIES: list[Callable[[], World]] = [
    given,
    given_as_the_last_step,
    nobody_reads_it,
    undone_on_request,
    cancelled_and_begun_anew,
    lambda: cancelled_and_begun_anew(under=plan(step("c"))),
    archived_at_its_deadline,
    lambda: of_an_earlier_attempt(ready=True),
    lambda: of_an_earlier_attempt(ready=False),
    that_is_no_json,
    of_an_answer,
    of_a_parked_step,
    of_a_restored_step,
    undone_when_no_request_can_act,
]
