"""Stories of steps that run once an item; with the others they pass through both tables."""

from collections.abc import Callable

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Strategy, Undo
from roundsman.model.json import Json
from tests.support.machine_world import World, plan, step

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=ONCE)
UNFENCED = Compensation(retry=ONCE)
AGAIN = Compensation(fences_late_performs=True, retry=Retry(max_attempts=8))


def lines(count: int) -> Json:
    """An order of so many lines."""
    return {"lines": [{"sku": f"KB-{number}"} for number in range(count)]}


def pick(
    *after: Step | str,
    tolerate: float = 0,
    compensation: Compensation | None = None,
    retry: Retry = ONCE,
    when: str | None = None,
    for_each: str = "input.lines",
) -> Step:
    """The step `pick`, once a line of the order."""
    return step(
        "pick",
        *after,
        for_each=for_each,
        tolerate=tolerate,
        compensation=compensation,
        retry=retry,
        when=when,
    )


def picking(
    count: int = 2,
    *,
    tolerate: float = 0,
    compensation: Compensation | None = None,
    retry: Retry = ONCE,
    on_failure: Strategy | None = None,
) -> World:
    """`pick` for so many lines, then `ship`; started."""
    picked = pick(tolerate=tolerate, compensation=compensation, retry=retry)
    return of(plan(picked, step("ship", picked), on_failure=on_failure or Undo()), count)


def of(made: Plan, count: int) -> World:
    """The plan for an order of so many lines, started."""
    world = World(made, order=lines(count))
    world.start()
    return world


def no_items() -> World:
    return picking(0)


def one_is_left_out(compensation: Compensation | None = None) -> World:
    world = picking(2, tolerate=0.5, compensation=compensation)
    world.succeeds("pick[0]")
    world.is_refused("pick[1]")
    return world


def one_is_left_out_and_undone() -> World:
    world = one_is_left_out(FENCED)
    world.succeeds("pick[1]")
    return world


def its_undo_fails_and_is_made_again() -> World:
    world = one_is_left_out(FENCED)
    world.is_refused("pick[1]")
    world.resubmit()
    world.start()
    world.succeeds("pick[1]")
    return world


def its_undo_is_made_by_hand() -> World:
    world = one_is_left_out(FENCED)
    world.is_refused("pick[1]")
    world.resolve("pick[1]")
    return world


def not_a_list() -> World:
    made = plan(pick(for_each="input"), on_failure=Archive())
    return of(made, 1)


def the_last_item_is_overdue() -> World:
    """Nothing undoes it: it is left out by the timer, and with it the task is complete."""
    made = plan(pick(tolerate=0.5), on_failure=Undo())
    world = of(made, 2)
    world.succeeds("pick[0]")
    world.overdue("pick[1]")
    return world


def ends_while_an_item_is_undone(*, cancelled: bool, retry: bool) -> World:
    """The undo of a left-out item is given back or overdue; then the task ends without undo."""
    made = plan(pick(tolerate=0.5, compensation=AGAIN), step("b"), on_failure=Archive())
    world = of(made, 2)
    world.is_refused("pick[1]")
    world.succeeds("pick[0]")
    if cancelled:
        world.cancel(undo=False)
        world.succeeds("b")
    else:
        world.is_refused("b")
    if retry:
        world.fails("pick[1]")
    else:
        world.overdue("pick[1]")
    return world


def its_undo_is_answered_late(*, retry: bool) -> World:
    world = ends_while_an_item_is_undone(cancelled=True, retry=retry)
    world.succeeds("pick[1]", lock=world.decisions[-1][0].step("pick[1]").locked_by)
    return world


def its_undo_is_made_by_hand_at_the_end(*, cancelled: bool, retry: bool) -> World:
    world = ends_while_an_item_is_undone(cancelled=cancelled, retry=retry)
    world.resolve("pick[1]")
    return world


def cancelled_as_an_undo_falls_due() -> World:
    """No timer has yet let the undo begin, which waits for late performs."""
    world = of(plan(pick(tolerate=0.5, compensation=UNFENCED)), 2)
    world.is_refused("pick[1]")
    world.succeeds("pick[0]")
    world.wait(36).cancel(undo=False)
    return world


FAN_OUT_STORIES: list[Callable[[], World]] = [
    no_items,
    one_is_left_out,
    one_is_left_out_and_undone,
    its_undo_fails_and_is_made_again,
    its_undo_is_made_by_hand,
    not_a_list,
    the_last_item_is_overdue,
    lambda: its_undo_is_answered_late(retry=False),
    lambda: its_undo_is_answered_late(retry=True),
    lambda: its_undo_is_made_by_hand_at_the_end(cancelled=False, retry=False),
    lambda: its_undo_is_made_by_hand_at_the_end(cancelled=False, retry=True),
    lambda: its_undo_is_made_by_hand_at_the_end(cancelled=True, retry=False),
    lambda: its_undo_is_made_by_hand_at_the_end(cancelled=True, retry=True),
    cancelled_as_an_undo_falls_due,
]
