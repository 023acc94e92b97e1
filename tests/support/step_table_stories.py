"""Stories that reach what the others leave of the step table: each begins where a step is in one
situation, and then one thing happens to it.

A new entry of the table needs a story here, or in the module of its topic: `test_transitions` names
each entry that no story reaches, with the situation before and the one after.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from itertools import product

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import (
    Archive,
    Compensation,
    Retry,
    Signal,
    Sleep,
    SleepUntil,
    Step,
    Undo,
    Wait,
)
from roundsman.model.corrections import Change
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.states import SituationName as S
from roundsman.model.task import PERFORM, Effect, StepError
from tests.support.machine_world import World, plan, step
from tests.support.restored_stories import restored

Act = Callable[[World], object]

ONCE = Retry(max_attempts=1)
THRICE = Retry(max_attempts=3)
FOR_A_TIME = Retry(keep_trying_for=timedelta(minutes=30), max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=THRICE)
UNFENCED = Compensation(retry=THRICE)
LONG_TRIED = Compensation(fences_late_performs=True, retry=FOR_A_TIME)
PASSING = Compensation(fences_late_performs=True, retry=THRICE, key_lifetime=timedelta(minutes=10))
TWO = ("first", "second")
HOUR = 3_600
ORDER: Json = {"wanted": False, "lines": [], "total": "1.00", "then": "2020-01-01T00:00:00Z"}


def story(begin: Callable[[], World], *acts: Act) -> Callable[[], World]:
    def told() -> World:
        world = begin()
        for act in acts:
            act(world)
        return world

    return told


def started(made: Plan) -> World:
    world = World(made, order=ORDER)
    world.start()
    return world


def placed(world: World, situation: S) -> World:
    assert world.record("a").situation_name is situation, world.record("a").situation
    return world


# --- A step that is performed ------------------------------------------------------------------


def performing(situation: S, a: Step | None = None) -> World:
    """`a` was sent, or may have been, and is in this situation; `b` is beside it."""
    made = plan(a or step("a"), step("b", agent="other", retry=ONCE), on_failure=Archive())
    if situation is S.NOT_BEGUN:  # restored, and its scheduler has not looked yet
        a = replace(a or step("a"), after=("first",))
        made = plan(step("first"), a, on_failure=Archive())
        return placed(restored(World(made, order=ORDER)), situation)
    world = started(made)
    if situation is S.READY:
        world.overdue("a")
    elif situation is S.WAITS:
        world.fails("a", retry_after=600 * SECOND)
    elif situation is S.PARKED:
        world.gives_back("a", retry_after=600 * SECOND, called=True)
    elif situation is S.AWAITS_CALLBACK:
        world.waits_for_callback("a", HOUR)
    elif situation is S.PROCESSED:
        world.succeeds("a")
    elif situation is S.FAILED:
        world.is_refused("a")
    return placed(world, situation)


def succeeds_late(world: World) -> None:
    world.succeeds("a", lock="earlier.1")


def refused_by_callback(world: World) -> None:
    error = StepError("No", "no")
    world.reply("a", Outcome.PERMANENT, lock="earlier.1", error=error, callback=True)


def is_done(world: World) -> None:
    world.resolve("a")


def undone_by_hand(world: World) -> None:
    """A person makes its undo, when nothing else can act any more."""
    world.wait_until(world.record("a").not_before or 0)
    world.resolve("a")


def is_not_done(world: World) -> None:
    world.resolve("a", did=False)


def is_undone(world: World) -> None:
    world.ask_undo()


def begins_again(world: World) -> None:
    world.cancel(undo=False)
    if world.record("b").under_way:
        world.is_refused("b")
    world.resubmit(again=True)


def begins_again_without_it(world: World) -> None:
    world.cancel(undo=False)
    if world.record("b").under_way:
        world.is_refused("b")
    world.resubmit(again=True, under=plan(step("b"), on_failure=Archive()))


PERFORMS: dict[tuple[S, ...], tuple[Act, ...]] = {
    (S.NOT_BEGUN, S.READY, S.WAITS, S.PARKED): (
        succeeds_late,
        refused_by_callback,
        is_done,
        is_not_done,
    ),
    (S.READY, S.WAITS, S.PARKED, S.PROCESSED, S.FAILED): (begins_again, begins_again_without_it),
    (S.NOT_BEGUN,): (lambda w: w.fails("a", lock="earlier.1"),),
    (S.PARKED,): (lambda w: w.fails("a", lock="earlier.1"),),
    (S.AWAITS_CALLBACK,): (
        lambda w: w.fails("a", lock="earlier.1"),
        World.start,
        lambda w: w.succeeds("a"),
        lambda w: w.fails("a"),
        lambda w: w.is_refused("a"),
        is_done,
        is_not_done,
        lambda w: w.extend(60, "a"),
        lambda w: w.overdue("a"),
        restored,
    ),
}


def to_be_undone(situation: S, *, fenced: bool) -> World:
    """A person undoes the task while the step, which has a compensation, is in this situation."""
    a = step("a", compensation=FENCED if fenced else UNFENCED)
    world = performing(situation, a)
    if world.record("b").under_way:
        world.succeeds("b")
    is_undone(world)
    return world


def overdue_with(retry: Retry, *, callback: bool, wait: bool = False) -> World:
    """The attempt, or its wait for a callback, is overdue."""
    on_failure = Wait(timedelta(minutes=5), times=1, then=Archive()) if wait else Archive()
    world = started(plan(step("a", retry=retry, on_failure=on_failure), on_failure=Archive()))
    if callback:
        world.waits_for_callback("a", 600)
    world.overdue("a")
    return world


def given_time_before_it_waits() -> World:
    world = started(plan(step("a")))
    world.extend(60, "a")
    world.waits_for_callback("a", 600)
    world.overdue("a")
    return world


def held_when_due(situation: S) -> World:
    """It is to be attempted, and its agent is on hold."""
    world = performing(situation)
    if situation is not S.READY:
        world.wait_until(world.record("a").not_before)
    world.hold("worker", HOUR).start()
    return world


def returned_as_its_task_ends() -> World:
    world = performing(S.AT_AGENT)
    world.is_refused("b")
    world.gives_back("a")
    return world


def at_both_agents_after_a_wait(*, fenced: bool) -> World:
    """It waits for a callback at its first agent, and goes on at the second one."""
    compensation = FENCED if fenced else UNFENCED
    a = step("a", agents=TWO, retry=ONCE, compensation=compensation)
    world = started(plan(a, on_failure=Undo()))
    world.waits_for_callback("a", 600)
    world.fails("a")
    return world


def corrected(situation: S) -> World:
    """Its task is archived and corrected; it is proven that the step has had no effect."""
    world = performing(S.AT_AGENT)
    if situation is S.WAITS:
        world.reply("a", Outcome.TRANSIENT, effect=Effect.NONE, retry_after=600 * SECOND)
    else:
        world.gives_back("a", retry_after=600 * SECOND, effect=Effect.NONE)
    placed(world, situation)
    world.is_refused("b", effect=Effect.NONE)
    world.correct(Change(("wanted",), value=True))
    return world


def polled(situation: S) -> World:
    """It is polled, and a person gives it more time for that."""
    world = started(plan(step("a", compensation=FENCED), complete_within=timedelta(hours=8)))
    world.is_not_done("a", within=HOUR)
    world.wait(60)
    if situation is S.READY:
        world.inspect()
    elif situation is S.PARKED:
        world.hold("worker", 600).start()
    placed(world, situation).extend(60, "a")
    return world


def ready_by_a_command(a: Step | Sleep | SleepUntil | Signal) -> World:
    """A command has made the step ready before the scheduler looked at it."""
    world = started(plan(step("first"), replace(a, after=("first",)), on_failure=Archive()))
    world.resolve("first")
    assert world.record(a.name).situation_name is S.READY
    return world


def begun_by_the_scheduler(
    a: Step | Sleep | SleepUntil | Signal, *acts: Act
) -> Callable[[], World]:
    return story(partial(ready_by_a_command, a), *acts, World.start)


# --- A step without an agent -------------------------------------------------------------------

NAP = Sleep(name="nap", for_=timedelta(minutes=10))
PAID = Signal("paid", within=timedelta(minutes=10))


def without_agent(a: Sleep | Signal) -> World:
    return started(plan(a, step("b", retry=ONCE), on_failure=Archive()))


def answered_by_mistake(name: str) -> Act:
    def answer(world: World) -> None:
        world.reply(name, Outcome.SUCCEEDED, lock="nobody.1", operation=PERFORM)

    return answer


# --- Undo --------------------------------------------------------------------------------------


def undoing(
    situation: S, compensation: Compensation = FENCED, *, agents: tuple[str, ...] = ("worker",)
) -> World:
    """The undo of `a` is in this situation.

    With two agents, `a` was undone at the first one; it is undone at the second one, and then
    there again. The undo at the first agent had no proof.
    """
    unfenced = situation is S.UNDO_WAITS and compensation is FENCED
    a = step("a", agents=agents, compensation=UNFENCED if unfenced else compensation, retry=ONCE)
    world = started(plan(a, step("b", a, agent="other", retry=ONCE), on_failure=Undo()))
    if len(agents) > 1:
        world.fails("a")
        settled(world)
        world.fails("a")
    else:
        world.succeeds("a")
        world.is_refused("b")
    if situation is S.UNDO_READY:
        world.overdue("a")
    elif situation is S.UNDO_PARKED:
        world.wait_until(world.record("a").not_before or 0).start()
        world.gives_back("a", retry_after=600 * SECOND)
    elif situation is S.UNDO_AT_AGENT:
        world.start()
    elif situation is S.UNDO_FAILED:
        world.start()
        world.is_refused("a")
    return placed(world, situation)


def settled(world: World) -> None:
    """The undo at the first agent is made."""
    if not world.record("a").under_way:
        world.wait_until(world.record("a").not_before or 0).start()
    world.succeeds("a")
    world.start()


def undoing_to_go_on(situation: S) -> World:
    """The undo at the first of two agents, after which the step begins at the second."""
    unfenced = situation is S.UNDO_WAITS
    compensation = UNFENCED if unfenced else FENCED
    a = step("a", agents=TWO, compensation=compensation, retry=ONCE)
    world = started(plan(a, step("b", a), on_failure=Undo(), complete_within=timedelta(hours=1)))
    world.fails("a")
    if situation is S.UNDO_READY:
        world.overdue("a")
    elif situation is S.UNDO_PARKED:
        world.gives_back("a", retry_after=600 * SECOND)
    elif situation is S.UNDO_FAILED:
        world.is_refused("a")
    return placed(world, situation)


def start_when_due(world: World) -> None:
    world.wait_until(world.record("a").not_before or 0).start()


def held_undo(situation: S) -> World:
    world = undoing(situation)
    world.hold("worker", 2 * HOUR)
    start_when_due(world)
    return world


def due_again(world: World) -> None:
    world.wait_until(world.record("a").not_before).inspect()


def past_its_key(world: World) -> None:
    world.wait(HOUR)
    world.start()


def undo_is_overdue() -> World:
    world = undoing(S.UNDO_AT_AGENT, LONG_TRIED)
    world.overdue("a")
    return world


def undo_that_waits_is_overdue_and_then_claimed() -> World:
    world = undoing(S.UNDO_WAITS)
    start_when_due(world)
    return world


def undo_of_a_late_key(situation: S) -> World:
    """The service has forgotten the key of the step when its undo is to be sent."""
    world = undoing(situation, PASSING)
    past_its_key(world)
    return world


def new_key_of_a_late_step() -> World:
    """The service has forgotten the key, under which nothing has happened, at the next attempt."""
    late = step("a", agents=TWO, compensation=PASSING)
    world = World(plan(late, complete_within=timedelta(hours=9))).hold("second", 8 * HOUR)
    world.start()
    error = StepError("Unavailable", "503")
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE, retry_after=HOUR * SECOND)
    world.wait_until(world.record("a").not_before).start()
    assert world.record("a").round == 2
    return world


# --- Another plan ------------------------------------------------------------------------------


def shorter(seconds: int, *steps: Step) -> Act:
    """The task goes on under a plan that gives it so much less than an hour."""

    def moves(world: World) -> None:
        world.move(plan(*steps, complete_within=timedelta(hours=1, seconds=-seconds)))

    return moves


A, TO_TWO = step("a"), step("a", agents=TWO, compensation=FENCED, retry=ONCE)


def late(situation: S) -> World:
    """`a`, which was sent, is to be attempted again near the end of its task's hour."""
    world = World(plan(A, step("b", "a")))
    world.wait(3_500).start()
    if situation is S.WAITS:
        world.fails("a", retry_after=80 * SECOND)
    else:
        world.gives_back("a", retry_after=80 * SECOND)
    return placed(world, situation)


def late_undo(situation: S) -> World:
    """The same for an undo after which its step goes on."""
    world = World(plan(TO_TWO, step("b", "a"), on_failure=Undo()))
    world.wait(3_500).start()
    world.fails("a")
    if situation is S.UNDO_READY:
        world.overdue("a")
    elif situation is S.UNDO_WAITS:
        world.fails("a", retry_after=80 * SECOND)
    elif situation is S.UNDO_PARKED:
        world.gives_back("a", retry_after=80 * SECOND)
    return placed(world, situation)


def has_less_time(situation: S, seconds: int) -> World:
    world = late(situation)
    shorter(seconds, A, step("b", "a"))(world)
    return world


def blocked(situation: S) -> World:
    """What came before it is undone, an undo has failed, and the task gets another plan."""
    first = step("first", compensation=FENCED, retry=ONCE)
    last = step("last", compensation=Compensation(fences_late_performs=True, retry=ONCE))
    waits: Step | Sleep | Signal = step("a", "first")
    if situation is S.ASLEEP:
        waits = Sleep(name="a", for_=timedelta(minutes=30), after=("first",))
    elif situation is S.AWAITS_SIGNAL:
        waits = Signal("a", within=timedelta(minutes=30), after=("first",))
    made = (first, last, waits, step("bad", retry=ONCE))
    world = started(plan(*made, on_failure=Undo()))
    world.succeeds("last")
    world.succeeds("first")
    if situation is S.READY:
        world.overdue("a")
    elif situation is S.WAITS:
        world.fails("a", retry_after=600 * SECOND)
    elif situation is S.PARKED:
        world.gives_back("a", retry_after=600 * SECOND)
    world.is_refused("bad")
    world.succeeds("first")
    world.is_refused("last")
    placed(world, situation)
    world.resubmit(under=plan(*made, step("more", "bad"), on_failure=Undo()))
    return world


def tried_and_parked() -> World:
    """It was undone at its first agent, and its second one is on hold."""
    a = step("a", agents=TWO, compensation=FENCED, retry=ONCE)
    world = started(plan(a, step("b", agent="other", retry=ONCE), on_failure=Archive()))
    world.fails("a")
    world.hold("second", HOUR)
    world.succeeds("a")
    placed(world, S.PARKED)
    world.is_refused("b", effect=Effect.NONE)
    world.correct(Change(("wanted",), value=True))
    return world


def tried_and_blocked() -> World:
    """The same, and two repairs: by a plan with a step before it, and by a correction."""
    a = step("a", "check", agents=TWO, compensation=FENCED, retry=ONCE)
    b = step("b", agent="other", retry=ONCE)
    world = started(plan(step("a", agents=TWO, compensation=FENCED, retry=ONCE), b))
    world.fails("a")
    world.hold("second", HOUR)
    world.succeeds("a")
    world.is_refused("b", effect=Effect.NONE)
    world.resubmit(under=plan(step("check", retry=ONCE), a, b))
    world.start()
    world.is_refused("check", effect=Effect.NONE)
    world.is_refused("b", effect=Effect.NONE)
    world.correct(Change(("wanted",), value=True))
    return world


def undone_while_blocked() -> World:
    """It is proven that the step had no effect at its second agent, a step is put before it, and a
    person undoes the task while a copy of its request may still act."""
    a = step("a", agents=TWO, compensation=UNFENCED, retry=ONCE)
    world = started(plan(a, on_failure=Archive()))
    world.fails("a")
    settled(world)
    world.is_refused("a", effect=Effect.NONE)
    after = replace(a, after=("check",))
    world.resubmit(under=plan(step("check"), after, on_failure=Archive()))
    placed(world, S.NOT_BEGUN)
    is_undone(world)
    return world


def undone_and_begun_again_without_it() -> World:
    world = started(plan(step("a", compensation=FENCED), *BESIDE, on_failure=Undo()))
    world.succeeds("a")
    world.is_refused("b")
    world.succeeds("a")
    world.resubmit(again=True, under=plan(*BESIDE))
    return world


def begun_again_and_moved_without_it() -> World:
    """It was performed before its task began again, and now it is not its turn yet."""
    world = started(plan(*BESIDE, step("a", "b")))
    world.succeeds("b")
    world.cancel(undo=False)
    world.is_refused("a")
    world.resubmit(again=True)
    placed(world, S.NOT_BEGUN)
    world.move(plan(*BESIDE))
    return world


BESIDE = (step("b", agent="other", retry=ONCE),)
IDLE_UNDOS = (S.UNDO_READY, S.UNDO_WAITS, S.UNDO_PARKED)

STEP_TABLE_STORIES: list[Callable[[], World]] = [
    *(
        story(partial(performing, situation), act)
        for situations, acts in PERFORMS.items()
        for situation, act in product(situations, acts)
    ),
    *(
        partial(to_be_undone, situation, fenced=fenced)
        for situation in (S.NOT_BEGUN, S.READY, S.WAITS, S.PARKED, S.PROCESSED)
        for fenced in (True, False)
    ),
    *(
        partial(overdue_with, retry, callback=callback)
        for retry in (ONCE, THRICE, FOR_A_TIME)
        for callback in (True, False)
    ),
    partial(overdue_with, ONCE, callback=True, wait=True),
    given_time_before_it_waits,
    *(partial(held_when_due, situation) for situation in (S.READY, S.WAITS, S.PARKED)),
    returned_as_its_task_ends,
    partial(at_both_agents_after_a_wait, fenced=True),
    partial(at_both_agents_after_a_wait, fenced=False),
    partial(corrected, S.WAITS),
    partial(corrected, S.PARKED),
    *(partial(polled, situation) for situation in (S.READY, S.WAITS, S.PARKED)),
    begun_by_the_scheduler(step("a", when="input.wanted")),
    begun_by_the_scheduler(step("a", when="abs(input.total)")),
    begun_by_the_scheduler(step("a", for_each="input.lines")),
    begun_by_the_scheduler(NAP),
    begun_by_the_scheduler(SleepUntil("input.then", name="until")),
    begun_by_the_scheduler(PAID),
    begun_by_the_scheduler(PAID, lambda w: w.signal("paid")),
    *(
        story(partial(without_agent, one), act)
        for one in (NAP, PAID)
        for act in (
            answered_by_mistake(one.name),
            begins_again,
            begins_again_without_it,
        )
    ),
    *(
        story(partial(undoing, situation), act)
        for situation in IDLE_UNDOS
        for act in (
            succeeds_late,
            refused_by_callback,
            undone_by_hand,
            start_when_due,
            lambda w: w.fails("a", lock="earlier.1"),
        )
    ),
    story(partial(undoing, S.UNDO_PARKED), due_again),
    *(partial(held_undo, situation) for situation in IDLE_UNDOS),
    *(partial(undo_of_a_late_key, situation) for situation in (S.UNDO_READY, S.UNDO_PARKED)),
    new_key_of_a_late_step,
    undo_is_overdue,
    *(
        story(partial(undoing_to_go_on, situation), act)
        for situation in (*IDLE_UNDOS, S.UNDO_AT_AGENT, S.UNDO_FAILED)
        for act in (succeeds_late, undone_by_hand)
    ),
    *(
        story(partial(undoing, situation, agents=TWO), act)
        for situation in (*IDLE_UNDOS, S.UNDO_AT_AGENT, S.UNDO_FAILED)
        for act in (succeeds_late, undone_by_hand)
    ),
    partial(has_less_time, S.WAITS, 20),
    partial(blocked, S.READY),
    partial(blocked, S.WAITS),
    partial(blocked, S.PARKED),
    partial(blocked, S.ASLEEP),
    partial(blocked, S.AWAITS_SIGNAL),
    *(
        story(partial(late_undo, situation), shorter(seconds, TO_TWO, step("b", "a")))
        for situation, seconds in ((S.UNDO_READY, 45), (S.UNDO_WAITS, 30), (S.UNDO_PARKED, 80))
    ),
    tried_and_parked,
    tried_and_blocked,
    undone_while_blocked,
    story(partial(started, plan(step("a", when="input.wanted"), *BESIDE)), begins_again_without_it),
    begun_again_and_moved_without_it,
    undone_and_begun_again_without_it,
]
