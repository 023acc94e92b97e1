"""Stories of steps that run once an item; with the others they pass through both tables."""

from collections.abc import Callable

from roundsman.plan import Plan
from roundsman.values import Json
from roundsman.workflow import Archive, Compensation, Retry, Step, Strategy, Undo
from tests.unit.machine_world import World, plan, step

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=ONCE)
UNFENCED = Compensation(retry=ONCE)


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


FAN_OUT_STORIES: list[Callable[[], World]] = [
    no_items,
    one_is_left_out,
    one_is_left_out_and_undone,
    its_undo_fails_and_is_made_again,
    its_undo_is_made_by_hand,
    not_a_list,
]
