"""Stories of signals, and of answers that do not come, for the tables of transitions."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from roundsman.definition.workflow import Signal
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND
from tests.support.machine_world import T0, World, begun, plan, step

PAID = Signal("paid", within=timedelta(minutes=10))


def comes_before_its_task_begins() -> World:
    world = World(plan(PAID), ProcessingOptions(start_at=T0 + 60 * SECOND))
    world.signal("paid")
    world.wait(60).start()
    return world


def comes_when_its_task_should_begin() -> World:
    world = World(plan(step("a"), PAID), ProcessingOptions(start_at=T0 + 60 * SECOND))
    world.wait(60).signal("paid")
    world.start()
    return world


def ends_the_last_step() -> World:
    world = begun(PAID)
    world.signal("paid")
    return world


def never_comes() -> World:
    world = begun(PAID, step("b", PAID))
    world.wait(600).inspect()
    return world


def comes_while_another_step_is_retried() -> World:
    world = begun(PAID, step("b"))
    world.wait(1).fails("b")
    world.wait_until(world.record("b").not_before).signal("paid")
    return world


def comes_while_another_step_is_performed() -> World:
    world = begun(PAID, step("b"))
    world.signal("paid")
    return world


def given_more_time_and_then_ended_by_a_person() -> World:
    world = begun(PAID, step("b", PAID))
    world.extend(600, "paid")
    world.resolve("paid")
    world.start()
    world.succeeds("b")
    return world


def begun_again_after_a_cancellation() -> World:
    world = begun(PAID)
    world.cancel(undo=False)
    world.resubmit(again=True)
    world.start()
    return world


def never_comes_and_its_task_goes_on_without_it() -> World:
    world = begun(replace(PAID, otherwise=None), step("b", "paid"))
    world.wait(600).inspect()
    world.start()
    return world


def completes_its_task_by_not_coming() -> World:
    world = begun(replace(PAID, otherwise=None))
    world.wait(600).inspect()
    return world


def a_callback_does_not_come_and_its_answer_comes_later() -> World:
    world = begun(step("a", otherwise=7))
    [(_, token)] = world.requests
    world.waits_for_callback("a", 600)
    world.overdue("a")
    world.reply("a", Outcome.SUCCEEDED, lock=token, callback=True)
    return world


def a_job_is_never_done() -> World:
    world = begun(step("a", otherwise=7))
    world.is_not_done("a", 60, 600)
    world.wait(601).start()
    world.is_not_done("a", 60, 600)
    return world


SIGNAL_STORIES: list[Callable[[], World]] = [
    comes_before_its_task_begins,
    comes_when_its_task_should_begin,
    ends_the_last_step,
    never_comes,
    comes_while_another_step_is_retried,
    comes_while_another_step_is_performed,
    given_more_time_and_then_ended_by_a_person,
    begun_again_after_a_cancellation,
    never_comes_and_its_task_goes_on_without_it,
    completes_its_task_by_not_coming,
    a_callback_does_not_come_and_its_answer_comes_later,
    a_job_is_never_done,
]
