"""One cause has one name, and two causes have two."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.model.events import Outcome
from roundsman.model.failure import LONGEST_MESSAGE, Failure, failure_of, normalised, shortened
from roundsman.model.instants import SECOND
from roundsman.model.record_limits import SHORT_MESSAGE
from roundsman.model.states import TaskState
from roundsman.model.task import StepError
from tests.support.machine_world import World, begun, plan, step


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("POST answered 402", "POST answered 402"),
        ("POST answered 503 InjectedFault (3 tries)", "POST answered 503 InjectedFault (* tries)"),
        ("no answer in time; 3 s late when seen", "no answer in time; * late when seen"),
        ("no answer in time; 1 h 3 min late when seen", "no answer in time; * late when seen"),
        ("KB-101, KB-102 and KB-7 are sold out", "* and * are sold out"),
        ("KB-1 is sold out", "* is sold out"),
        ("the card 'tok_visa' doesn't exist", "the card * doesn't exist"),
        ("can't be charged, won't be", "can't be charged, won't be"),
        ("charge ch_1a2b at 10:42:07: late.", "charge * at *: late."),
        ("a.reader@example.com: see https://example.com/a?b", "* see *"),
        ("deadbeefcafe is not known", "* is not known"),
        ("limit 100.00 EUR exceeded by 3.50 EUR", "limit * EUR exceeded by * EUR"),
        ("limit 402 exceeded", "limit * exceeded"),
        ("  a\n b\tc", "a b c"),
        ("", ""),
    ],
)
def test_what_differs_from_order_to_order_is_left_out(text: str, expected: str) -> None:
    assert normalised(text) == expected


@pytest.mark.exhaustive
@given(st.text())
def test_normalising_again_changes_nothing_and_the_text_is_short(text: str) -> None:
    once = normalised(text)
    assert len(once) <= LONGEST_MESSAGE
    assert normalised(once) == once


@given(st.integers(0, 10**12), st.integers(0, 10**12))
def test_amounts_and_ids_make_no_new_cause(one: int, another: int) -> None:
    first, second = (f"order o-{n}: {n} of {n} refused" for n in (one, another))
    assert normalised(first) == normalised(second)


def test_each_part_of_the_fingerprint_makes_another_group() -> None:
    failure = Failure("orders", "charge", "archived", "CardDeclined", "no")
    others = [
        replace(failure, workflow="returns"),
        replace(failure, step="ship"),
        replace(failure, how="undone"),
        replace(failure, error_type="Expired"),
        replace(failure, message="never"),
    ]
    groups = {each.group for each in (failure, *others)}
    assert len(groups) == 6
    assert replace(failure).group == failure.group
    assert failure.group.startswith("f-")
    assert len(failure.group) == 10


def refused(strategy: Archive | Undo) -> World:
    """The one step has been refused; its undo is fenced, so that it need not wait."""
    undo = Compensation(fences_late_performs=True)
    world = begun(step("a", on_failure=strategy, compensation=undo))
    world.is_refused("a")
    return world


def test_an_archived_task_is_in_the_group_of_the_step_that_failed() -> None:
    task = refused(Archive()).task
    failure = failure_of(task)
    assert failure is not None
    assert (failure.step, failure.how, failure.error_type) == ("a", "archived", "CardDeclined")
    assert failure.message == "insufficient funds"
    assert task.failure == failure.group


def test_two_orders_of_one_cause_are_in_one_group_whatever_their_ids() -> None:
    groups = set()
    for task_id in ("ord-one", "ord-two", "g", "on"):
        task = refused(Archive()).task
        ending = task.ending
        assert ending is not None
        named = replace(ending, error=StepError("Gone", f"{task_id} is gone"))
        groups.add(failure_of(replace(task, task_id=task_id, ending=named)))
    assert len(groups) == 1


def test_a_task_that_is_undone_is_in_a_group_only_once_it_is_over() -> None:
    world = refused(Undo())
    assert failure_of(world.task) is None
    world.succeeds("a")
    failure = failure_of(world.task)
    assert failure is not None
    assert (world.task_state(), failure.how) == (TaskState.UNDONE, "undone")
    assert (failure.step, failure.error_type) == ("a", "CardDeclined")
    assert world.task.failure == failure.group


def test_a_task_that_a_person_asked_to_undo_or_cancel_has_not_failed() -> None:
    for ask in (World.ask_undo, World.cancel):
        world = refused(Archive())
        ask(world)
        assert failure_of(world.task) is None
        world.succeeds("a")
        assert world.task.ended
        assert world.task.failure is None


def test_a_failed_undo_is_a_group_of_its_own_and_names_what_could_not_be_undone() -> None:
    world = refused(Undo())
    world.is_refused("a")
    failure = failure_of(world.task)
    assert failure is not None
    assert (world.task_state(), failure.how) == (TaskState.ARCHIVED, "undo_failed")
    assert (failure.step, failure.error_type) == ("a", "CardDeclined")


def test_a_task_that_was_not_complete_in_time_has_no_failed_step() -> None:
    world = begun(step("a"), on_failure=Archive())
    world.fails("a", retry_after=world.task.complete_by)
    world.wait_until(world.task.complete_by + 1)
    world.inspect()
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.step, failure.error_type) == ("none", "NotComplete")


def test_a_task_whose_plan_is_not_stored_says_so() -> None:
    world = World(plan(step("a")))
    world.stored_plan = False
    world.start()
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.how, failure.error_type) == ("archived", "PlanNotStored")


def test_a_task_that_goes_on_is_in_no_group() -> None:
    world = refused(Archive())
    world.resubmit()
    assert world.task.failure is None


def test_an_archived_record_of_earlier_code_is_still_in_a_group() -> None:
    task = refused(Archive()).task
    ending = task.ending
    assert ending is not None
    failure = failure_of(replace(task, ending=replace(ending, error=None)))
    assert failure is not None
    assert failure.error_type == "Unknown"


def test_a_short_message_is_kept_as_it_is_and_a_longer_one_without_what_differs() -> None:
    fits = StepError("E", "ord-1 " + "m" * (SHORT_MESSAGE - 6), unexpected=True)
    assert shortened(fits, "ord-1") == fits
    longer = StepError("E" * 200, "order ord-a and 12 parts: " + "m" * SHORT_MESSAGE)
    assert shortened(longer, "ord-a") == StepError(
        "E" * 100, ("order * and * parts: " + "m" * SHORT_MESSAGE)[:SHORT_MESSAGE]
    )
    wide = StepError("E", "\u00fc" * LONGEST_MESSAGE)
    assert shortened(wide, "ord-a").message == "\u00fc" * (SHORT_MESSAGE // 2)


def test_an_open_task_is_in_the_group_of_the_step_that_failed_so_first() -> None:
    """The alert of the group may be sent when a second step has failed in another way."""
    world = begun(step("b"), step("a"), step("last", "a", "b"))
    for name, size in (("b", 40_000), ("a", 50_000)):
        world.now += SECOND
        world.succeeds(name, "y" * size)
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.step, failure.how) == ("b", "awaits_result")
    assert world.task.failure == failure.group


def test_a_task_is_in_the_group_of_the_unexpected_error_that_came_first() -> None:
    keeps = Retry(keep_trying_for=timedelta(minutes=10))
    world = begun(step("b", retry=keeps), step("a", retry=keeps))
    for name, error in (("b", "KeyError"), ("a", "TypeError")):
        world.now += SECOND
        world.reply(name, Outcome.TRANSIENT, error=StepError(error, "unexpected", unexpected=True))
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.step, failure.how) == ("b", "retried")
    assert world.task.failure == failure.group
