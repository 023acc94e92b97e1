"""Stories of steps of which only enough have to succeed; with the others they pass both tables."""

from collections.abc import Callable
from datetime import timedelta

from roundsman.definition.workflow import AnyOf, Compensation, Retry, Signal, Sleep, Undo
from tests.support.fan_out_stories import AGAIN, FENCED, ONCE, UNFENCED, lines
from tests.support.machine_world import World, begun, plan, step

CARRIERS = ("air", "sea", "road")
THRICE = Retry(max_attempts=3)


def asked(
    enough: int = 1, compensation: Compensation | None = FENCED, retry: Retry = ONCE
) -> World:
    """Three carriers are asked, each with an agent of its own; `book` begins when enough of them
    have answered. Started."""
    quotes = [
        step(name, agent=name, compensation=compensation, retry=retry, keep=compensation is None)
        for name in CARRIERS
    ]
    book = step("book", AnyOf(*quotes, enough=enough), compensation=FENCED)
    return begun(*quotes, book, on_failure=Undo())


def one_was_first(compensation: Compensation | None = FENCED) -> World:
    """Air has answered, then sea, and road has refused; all that is not needed is undone."""
    world = asked(compensation=compensation)
    world.succeeds("air", {"price": 3})
    world.succeeds("sea", {"price": 1})
    world.is_refused("road")
    for name in ("sea", "road") if compensation else ():
        world.succeeds(name)
    world.succeeds("book")
    return world


def items(enough: int = 2, count: int = 4, compensation: Compensation | None = FENCED) -> World:
    """`pick` for so many lines, of which enough have to succeed, then `ship`; started."""
    pick = step(
        "pick",
        for_each="input.lines",
        enough=enough,
        compensation=compensation,
        retry=ONCE,
        keep=compensation is None,
    )
    world = World(plan(pick, step("ship", pick), on_failure=Undo()), order=lines(count))
    world.start()
    return world


def some_items_were_first() -> World:
    """Of four items two have succeeded, and the undo of the others is under way."""
    world = items()
    for index in range(4):
        world.succeeds(f"pick[{index}]", index)
    return world


def a_signal_or_a_time() -> World:
    """`go_on` begins when the customer has accepted, or after ten minutes; started."""
    accepted = Signal("accepted", within=timedelta(minutes=50))
    late = Sleep(name="late", for_=timedelta(minutes=10))
    return begun(accepted, late, step("go_on", AnyOf(accepted, late)))


def the_signal_was_first() -> World:
    world = a_signal_or_a_time()
    world.signal("accepted", {"yes": True})
    return world


def the_time_was_first() -> World:
    world = a_signal_or_a_time()
    world.wait(600).start()
    return world


def _kept(*acts: Callable[[World], object]) -> Callable[[], World]:
    """What happens to `sea`, which may stay as it is; then air has answered."""

    def told() -> World:
        world = asked(compensation=None, retry=THRICE)
        for act in acts:
            act(world)
        world.succeeds("air")
        return world

    return told


def it_never_began() -> World:
    """`sea` comes after another step, which is still at its agent."""
    before = step("before")
    sea = step("sea", before, compensation=FENCED)
    air = step("air", compensation=FENCED)
    world = begun(before, sea, air, step("book", AnyOf(air, sea)))
    world.succeeds("air")
    return world


def its_result_was_missing() -> World:
    """The result of `sea` is too long, and `book` would read it."""
    air, sea = (
        step(name, agent=name, compensation=None, keep=True, result_limit=10)
        for name in ("air", "sea")
    )
    world = begun(air, sea, step("book", AnyOf(air, sea)))
    world.succeeds("sea", "x" * 20)
    world.succeeds("air")
    return world


def it_waited_for_an_answer() -> World:
    """`sea` waits for its callback, and fences late performs."""
    world = asked(compensation=AGAIN)
    world.waits_for_callback("sea", 600)
    world.succeeds("air")
    return world


def it_waited_and_may_stay() -> World:
    return _kept(lambda world: world.waits_for_callback("sea", 600))()


def it_waited_and_may_still_act() -> World:
    """`sea` waits for its callback, and nothing fences a late perform: the undo has to wait."""
    world = asked(compensation=UNFENCED)
    world.waits_for_callback("sea", 600)
    world.succeeds("air")
    return world


def a_sleep_follows() -> World:
    """`sea` waits for its next attempt when the time is over, and a sleep comes after both."""
    later = Retry(first_delay=timedelta(hours=1), max_delay=timedelta(hours=1))
    sea = step("sea", keep=True, retry=later)
    nap = Sleep(name="nap", for_=timedelta(seconds=10))
    rest = Sleep(name="rest", for_=timedelta(seconds=10), after=AnyOf(sea, nap))
    world = begun(sea, nap, rest, complete_within=timedelta(hours=9))
    world.fails("sea")
    world.wait(20).start()
    return world


it_was_retried = _kept(lambda world: world.fails("sea"))
it_was_parked = _kept(lambda world: world.hold("sea", 600).gives_back("sea"))
it_was_overdue = _kept(
    lambda world: world.shows_progress("sea"), lambda world: world.overdue("sea")
)


QUORUM_STORIES: list[Callable[[], World]] = [
    one_was_first,
    lambda: one_was_first(compensation=None),
    some_items_were_first,
    the_signal_was_first,
    the_time_was_first,
    it_never_began,
    a_sleep_follows,
    its_result_was_missing,
    it_waited_for_an_answer,
    it_waited_and_may_stay,
    it_was_retried,
    it_was_parked,
    it_was_overdue,
]
