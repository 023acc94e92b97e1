"""Stories of undo and of operators; together they pass through every entry of both tables."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial

from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import AgentView
from roundsman.model.instants import SECOND
from tests.support.machine_world import T0, World, begun, plan, step

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=ONCE)
TWICE = Compensation(fences_late_performs=True, retry=Retry(max_attempts=2))
LATER = ProcessingOptions(start_at=T0 + 60 * SECOND)
HOUR = 3_600


def of(*steps: Step, options: ProcessingOptions | None = None) -> World:
    """A started task of these steps that a failure undoes."""
    return begun(*steps, on_failure=Undo(), asked=options or ProcessingOptions())


def branches(*, other: Compensation | None = None, how: Undo | Archive | None = None) -> World:
    """`a` is Processed, `b` is Processing beside it, and `c` has failed."""
    a, b = step("a", compensation=FENCED), step("b", compensation=other)
    world = of(a, b, step("c", on_failure=how or Undo()))
    world.succeeds("a")
    world.is_refused("c")
    return world


def undoing(compensation: Compensation = FENCED) -> World:
    """`a` is Processed and being undone, since `b` was refused."""
    a = step("a", compensation=compensation)
    world = of(a, step("b", a))
    world.succeeds("a")
    world.is_refused("b")
    return world


def undone() -> World:
    world = undoing()
    world.succeeds("a")
    return world


def undo_failed() -> World:
    world = undoing()
    world.is_refused("a")
    return world


def archived(*, compensation: Compensation | None = None) -> World:
    """`a` was refused, and the task waits for a person."""
    world = of(step("a", compensation=compensation, on_failure=Archive()))
    world.is_refused("a")
    return world


def waiting(*, compensation: Compensation | None = None, retry: bool = False) -> World:
    """`a` was tried once and is Pending; with `retry`, until some instant."""
    world = of(step("a", compensation=compensation))
    world.fails("a") if retry else world.overdue("a")
    return world


def too_late(event: str, *, compensation: Compensation | None, retry: bool) -> World:
    """The task's deadline passes, and this event says so."""
    limited = plan(
        step("a", compensation=compensation), on_failure=Undo(), deadline=timedelta(hours=1)
    )
    world = World(limited)
    world.start()
    world.fails("a") if retry else world.overdue("a")
    world.wait(HOUR)
    if event == "start":
        world.start()
    elif event == "inspect":
        world.inspect()
    else:
        world.fails("a", lock="late.1")
    return world


def too_late_to_start(event: str) -> World:
    world = World(plan(step("a"), on_failure=Undo()), LATER)
    world.wait(2 * HOUR)
    world.start() if event == "start" else world.inspect()
    return world


def too_late_beside_a_step() -> World:
    world = of(step("a", compensation=FENCED), step("b", complete_within=timedelta(minutes=15)))
    world.succeeds("a")
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
    while world.now < world.task.complete_by - 900 * SECOND:
        world.overdue("b")
        world.start()
    world.wait_until(world.task.complete_by).start()
    return world


def then(begin: Callable[[], World], *acts: Callable[[World], object]) -> Callable[[], World]:
    """A story that begins so, and goes on with these acts."""

    def story() -> World:
        world = begin()
        for act in acts:
            act(world)
        return world

    return story


def lose_plan(world: World) -> None:
    world.stored_plan = False


def find_plan(world: World) -> None:
    world.stored_plan = True


def cancel_only(world: World) -> None:
    world.cancel(undo=False)


def undo_takes_attempts(world: World) -> None:
    """It fails, waits, is overdue, is never read, is not started in time, and succeeds late."""
    world.fails("a")
    world.fails("a", lock="late.1")
    world.wait(HOUR).inspect()
    world.wait(HOUR).inspect()
    world.start()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
    world.overdue("a")
    world.agents = {}
    world.start()
    world.extend(10, "a")
    world.succeeds("a")
    world.succeeds("a")


def undo_is_overdue(world: World) -> None:
    """And the answer to its first attempt comes while the second is under way."""
    world.overdue("a")
    world.start()
    world.succeeds("a", lock="earlier.1")


def one_of_two_waits(world: World) -> None:
    world.fails("b", retry_after=50 * 60 * SECOND)
    world.is_refused("a")


def two() -> World:
    return of(step("a", on_failure=Archive(), compensation=FENCED), step("b", compensation=FENCED))


def late_and_archived() -> World:
    """Its last success came after its time, and after a person had reported it."""
    made = plan(step("a"), complete_within=timedelta(seconds=30), on_failure=Archive())
    world = World(made)
    world.start()
    world.wait(30).start()
    world.succeeds("a")
    return world


def late_answers(world: World) -> None:
    """The undo of `a` is over, that of `b` is not, and `a` answers again."""
    world.fails("a", lock="late.1")
    world.succeeds("b")


def both_undoing() -> World:
    """Two steps of two attempts each are being undone."""
    both = step("a", compensation=TWICE), step("b", compensation=TWICE)
    world = of(*both, step("c", both[0], both[1]))
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    return world


def without_its_plan() -> World:
    """Both undos wait for another attempt, and the plan is lost."""
    world = both_undoing()
    world.fails("a")
    world.fails("b")
    return world


def skips_and_fails() -> World:
    """One step of each kind that may begin anew: done, skipped, failed, and tried once."""
    made = plan(
        step("done"),
        step("skipped", when="input.no"),
        step("tried"),
        step("bad"),
        on_failure=Undo(),
    )
    world = World(made, order={})
    world.start()
    world.succeeds("done")
    world.overdue("tried")
    world.start()
    world.fails("tried")
    world.is_refused("bad")
    return world


def cancel_with_undo(world: World) -> None:
    world.cancel()


def undo_both(world: World) -> None:
    world.succeeds("a")
    world.start()
    world.resolve("b")


def undo_fails_and_is_made_by_hand(world: World) -> None:
    world.start()
    world.is_refused("a")
    world.resolve("a")


def part_undone() -> World:
    """Two steps side by side are done, and one of them is to be undone."""
    world = of(step("a", compensation=FENCED), step("b", compensation=FENCED))
    world.succeeds("a")
    world.succeeds("b")
    world.ask_undo("a")
    world.start()
    return world


def beside_a_slow_step() -> World:
    """`a` is being undone, and `b` has more time than that takes."""
    slow = step("b", complete_within=timedelta(minutes=15))
    world = of(step("a", compensation=FENCED), slow, step("c"))
    world.succeeds("a")
    world.is_refused("c")
    return world


TOO_LATE: list[Callable[[], World]] = [
    partial(too_late, event, compensation=compensation, retry=retry)
    for event in ("start", "inspect", "reply")
    for compensation in (None, FENCED)
    for retry in (False, True)
]

UNDOS: list[Callable[[], World]] = [
    *TOO_LATE,
    partial(too_late_to_start, "start"),
    partial(too_late_to_start, "inspect"),
    too_late_beside_a_step,
    undone,
    then(undone, World.start, World.inspect, lambda w: w.succeeds("a")),
    then(partial(undoing, TWICE), undo_takes_attempts),
    then(partial(undoing, TWICE), undo_is_overdue),
    then(undo_failed, lambda w: w.succeeds("a", lock="late.1")),
    then(partial(of, step("a", retry=ONCE)), lambda w: w.overdue("a")),
    then(partial(of, step("a", retry=ONCE)), lambda w: w.is_refused("a")),
    then(partial(of, step("a", compensation=FENCED, retry=ONCE)), lambda w: w.overdue("a")),
    then(branches, lambda w: w.succeeds("a"), lambda w: w.succeeds("b")),
    then(
        partial(branches, other=FENCED),
        lambda w: w.fails("b", lock="late.1"),
        lambda w: w.succeeds("a"),
        lambda w: w.succeeds("b"),
        lambda w: w.fails("b", lock="late.1"),
        lambda w: w.succeeds("b"),
        lambda w: w.fails("b", lock="late.1"),
    ),
    then(undoing, World.inspect, lambda w: w.overdue("a")),
    then(both_undoing, lambda w: w.succeeds("a"), late_answers),
    then(both_undoing, lambda w: w.is_refused("a"), late_answers),
    then(part_undone, lambda w: w.succeeds("a")),
    then(part_undone, lambda w: w.resolve("a")),
    then(beside_a_slow_step, lambda w: w.overdue("a")),
    then(beside_a_slow_step, lose_plan, lambda w: w.until_overdue("a").start()),
    then(undoing, lose_plan, lambda w: w.until_overdue("a").start()),
]


def under_a_plan_with_another_step_before(world: World) -> None:
    check = step("check")
    world.resubmit(under=plan(check, step("a", check, compensation=FENCED), on_failure=Undo()))
    world.start()
    world.succeeds("a")


RESUBMISSIONS: list[Callable[[], World]] = [
    then(archived, World.resubmit),
    then(
        partial(archived, compensation=FENCED),
        under_a_plan_with_another_step_before,
    ),
    then(archived, lambda w: w.wait(HOUR).resolve("a", did=False, fresh_key=True)),
    then(two, one_of_two_waits, World.resubmit),
    then(late_and_archived, World.resubmit),
    then(undo_failed, World.resubmit),
    then(
        partial(branches, other=None),
        lambda w: w.succeeds("a"),
        lose_plan,
        lambda w: w.until_overdue("b").start(),
        find_plan,
        World.resubmit,
    ),
    then(undone, lambda w: w.resubmit(again=True)),
    then(archived, World.cancel, lambda w: w.resubmit(again=True)),
    then(skips_and_fails, lambda w: w.resubmit(again=True)),
]

ENDS: list[Callable[[], World]] = [
    then(waiting, World.ask_undo),
    then(partial(waiting, compensation=FENCED), World.ask_undo),
    then(partial(waiting, retry=True), World.ask_undo),
    then(partial(waiting, compensation=FENCED, retry=True), World.ask_undo),
    then(two, lambda w: w.succeeds("a"), World.ask_undo),
    then(partial(of, step("a", compensation=FENCED)), lambda w: w.succeeds("a"), World.ask_undo),
    then(archived, World.ask_undo),
    then(partial(archived, compensation=FENCED), World.ask_undo),
    then(archived, cancel_only, World.ask_undo),
    then(partial(archived, compensation=FENCED), cancel_only, World.ask_undo),
    then(partial(World, plan(step("a")), LATER), World.cancel),
    then(waiting, World.cancel),
    then(partial(waiting, compensation=FENCED), World.cancel),
    then(partial(waiting, retry=True), World.cancel),
    then(partial(waiting, compensation=FENCED, retry=True), World.cancel),
    then(two, lambda w: w.succeeds("a"), World.cancel, lambda w: w.succeeds("a")),
    then(archived, World.cancel),
    then(partial(archived, compensation=FENCED), World.cancel, lambda w: w.succeeds("a")),
    then(partial(of, step("a")), cancel_only, lambda w: w.succeeds("a")),
    then(partial(of, step("a")), cancel_only, lambda w: w.overdue("a")),
    then(partial(of, step("a")), cancel_only, lose_plan, lambda w: w.until_overdue("a").start()),
    then(archived, cancel_only, World.start, World.inspect, lambda w: w.fails("a")),
]

RESOLUTIONS: list[Callable[[], World]] = [
    then(waiting, lambda w: w.resolve("a")),
    then(waiting, lambda w: w.resolve("a", did=False)),
    then(partial(of, step("a")), lambda w: w.resolve("a")),
    then(partial(of, step("a")), lambda w: w.resolve("a", did=False)),
    then(two, lambda w: w.fails("b"), lambda w: w.resolve("a", did=False)),
    then(beside_a_slow_step, lambda w: w.resolve("a"), lambda w: w.resolve("b")),
    then(partial(branches, how=Archive()), lambda w: w.resolve("b")),
    then(partial(of, step("a")), World.cancel, lambda w: w.resolve("a")),
    then(two, World.cancel, lambda w: w.resolve("a")),
    then(partial(waiting, retry=True), lambda w: w.resolve("a")),
    then(partial(waiting, retry=True), lambda w: w.resolve("a", did=False)),
    then(undoing, lambda w: w.resolve("a")),
    then(
        partial(branches, other=FENCED),
        lambda w: w.succeeds("b"),
        lambda w: w.is_refused("a"),
        lambda w: w.resolve("b"),
    ),
    then(two, lambda w: w.succeeds("a"), cancel_with_undo, lambda w: w.resolve("b"), undo_both),
    then(archived, lambda w: w.resolve("a")),
    then(archived, lambda w: w.resolve("a", did=False)),
    then(two, one_of_two_waits, lambda w: w.resolve("a", did=False)),
    then(undo_failed, lambda w: w.resolve("a")),
    then(partial(archived, compensation=FENCED), World.cancel, undo_fails_and_is_made_by_hand),
    then(
        without_its_plan,
        lose_plan,
        World.start,
        find_plan,
        lambda w: w.resolve("a"),
    ),
]

TIMES: list[Callable[[], World]] = [
    then(partial(World, plan(step("a")), LATER), lambda w: w.extend(9), World.run_now),
    then(partial(World, plan(step("a")), LATER), lambda w: w.wait(60).extend(9)),
    then(partial(waiting, retry=True), World.run_now),
    then(partial(waiting, retry=True), lambda w: w.wait(9).extend(9)),
    then(waiting, lambda w: w.extend(9)),
    then(partial(of, step("a")), lambda w: w.extend(9, "a")),
    then(partial(undoing, TWICE), lambda w: w.extend(9, "a")),
]

UNDO_STORIES = [*UNDOS, *RESUBMISSIONS, *ENDS, *RESOLUTIONS, *TIMES]
