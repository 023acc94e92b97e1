"""Stories of closing steps and of early ends; with the others they pass both tables."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Strategy, Undo
from tests.support.fan_out_stories import FENCED, ONCE
from tests.support.machine_world import World, begun, plan, step

LATER = Retry(max_attempts=3, first_delay=timedelta(minutes=50), max_delay=timedelta(minutes=50))
TELL = step("tell", agent="mail", retry=ONCE)
QUIETLY = step("tell", agent="mail", retry=ONCE, when="input.loud")
UNDO, ARCHIVE = Undo(), Archive()


def closed(
    *steps: Step, on_failure: Strategy = ARCHIVE, by: Step = TELL, held: bool = False
) -> World:
    """A task of these steps, by default `a`, with `by` as its closing step at each end; begun."""
    world = begun(
        *(steps or (step("a", compensation=FENCED, retry=ONCE),)),
        on_failure=on_failure,
        when_undone=(by,),
        when_failed=(by,),
        when_cancelled=(by,),
    )
    return world.hold("mail", 3_600) if held else world


def over(world: World) -> World:
    """The time of its closing steps is over."""
    assert world.task.closing is not None
    world.wait_until(world.task.closing.by).inspect()
    return world


def undone_while_its_mail_is_on_hold() -> World:
    world = closed(on_failure=UNDO, held=True)
    world.is_refused("a")
    world.succeeds("a")
    return over(world)


def archived_while_its_mail_is_on_hold() -> World:
    world = closed(held=True)
    world.is_refused("a")
    return over(world)


def cancelled_while_its_mail_is_on_hold(*, started: bool = False) -> World:
    world = closed(held=True)
    world.cancel()
    world.succeeds("a")
    world.succeeds("a")
    if started:  # by a Start that is late
        assert world.task.closing is not None
        world.wait_until(world.task.closing.by).start()
        return world
    return over(world)


def cancelled_and_its_mail_is_not_read() -> World:
    world = closed(step("a", retry=ONCE), by=replace(TELL, retry=Retry(max_attempts=2)))
    world.cancel()
    world.succeeds("a")
    world.overdue("tell")
    return over(world)


def its_last_undo_is_overdue() -> World:
    world = closed(on_failure=UNDO)
    world.is_refused("a")
    world.overdue("a")
    world.start()
    world.succeeds("tell")
    world.resolve("a")
    world.start()
    world.succeeds("tell")
    return world


def a_person_says_that_its_last_undo_has_happened() -> World:
    world = closed(on_failure=UNDO)
    world.is_refused("a")
    world.resolve("a")
    world.start()
    world.succeeds("tell")
    return world


def waits_for_a_callback(*, undo: bool = False, by: Step = TELL) -> World:
    """It waits for a callback as it is cancelled, or as its undo is asked for; nothing of it is to
    be undone."""
    world = closed(step("a"), by=by)
    world.waits_for_callback("a", 600)
    if undo:
        world.ask_undo()
    else:
        world.cancel(undo=False)
    world.start()
    return world


def waits_for_its_next_attempt() -> World:
    world = closed(step("a", retry=LATER))
    world.fails("a")
    world.ask_undo()
    world.start()
    world.succeeds("tell")
    return world


def archived(undo: bool = False) -> World:
    world = closed(step("a", retry=ONCE))
    world.is_refused("a")
    world.succeeds("tell")
    if undo:
        world.ask_undo()
    else:
        world.cancel()
    world.start()
    world.succeeds("tell")
    return world


def cancelled_and_then_undone() -> World:
    world = archived()
    world.ask_undo()
    world.start()
    world.succeeds("tell")
    return world


def cancelled_quietly_between_two_steps() -> World:
    a = step("a", retry=ONCE)
    world = World(
        plan(a, step("b", a, agent="other"), when_cancelled=(QUIETLY,)), order={"loud": False}
    )
    world.start()
    world.hold("other", 3_600)
    world.succeeds("a")
    world.cancel()
    world.start()
    return world


def its_time_is_over_before_its_next_attempt() -> World:
    world = closed(step("a", retry=LATER))
    world.wait(1_800).fails("a")
    world.wait_until(world.task.complete_by).inspect()
    world.start()
    world.succeeds("tell")
    return world


def its_undo_fits_no_more_and_its_mail_is_on_hold() -> World:
    """The Start comes when the service may have forgotten the key that the undo would name."""
    forgets = Compensation(fences_late_performs=True, key_lifetime=timedelta(minutes=10))
    a = step("a", agent="other", compensation=forgets)
    b = step("b", a, agent="slow")
    world = begun(a, b, on_failure=Undo(), when_failed=(step("tell", agent="mail"),))
    world.hold("slow", 3_600)
    world.hold("mail", 3_600)
    world.succeeds("a")
    world.cancel()
    world.wait(1_200).start()
    return world


def ends_early() -> World:
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", a))
    world.ends("a")
    return world


def ends_early_with_an_undo() -> World:
    a = step("a", compensation=FENCED)
    world = begun(a, step("b", a))
    world.ends("a", undo=True)
    world.succeeds("a")
    return world


CLOSING_STORIES: list[Callable[[], World]] = [
    undone_while_its_mail_is_on_hold,
    archived_while_its_mail_is_on_hold,
    cancelled_while_its_mail_is_on_hold,
    lambda: cancelled_while_its_mail_is_on_hold(started=True),
    cancelled_and_its_mail_is_not_read,
    its_last_undo_is_overdue,
    a_person_says_that_its_last_undo_has_happened,
    waits_for_a_callback,
    lambda: waits_for_a_callback(undo=True),
    waits_for_its_next_attempt,
    archived,
    lambda: archived(undo=True),
    cancelled_and_then_undone,
    cancelled_quietly_between_two_steps,
    its_time_is_over_before_its_next_attempt,
    its_undo_fits_no_more_and_its_mail_is_on_hold,
    ends_early,
    ends_early_with_an_undo,
]
