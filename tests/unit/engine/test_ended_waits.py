"""A task that ends does not wait for a callback, unless its undo has to wait for the answer."""

from dataclasses import replace

import pytest

from roundsman.errors import Refused
from roundsman.model.events import Outcome, SendRequest
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import LATE_ANSWER
from roundsman.model.workflow import Archive
from tests.support.ended_wait_stories import (
    BANK,
    FENCED,
    HOUR,
    UNFENCED,
    answer,
    archived,
    undone,
    waiting,
)
from tests.support.machine_world import requests_in

# --- The end of the wait -----------------------------------------------------------------------


def test_the_undo_of_a_fenced_step_begins_at_once() -> None:
    world = waiting(FENCED, remind_every=60)
    decision = world.is_refused("b")
    assert requests_in(decision) == ["a"]
    assert world.state("a") is ProcessState.UNDOING
    assert [row.reason for row in decision.history if row.kind == "wait ended"] == [
        "a: its wait for a callback is ended"
    ]
    assert world.record("a").remind_at is None


def test_a_step_without_compensation_holds_up_no_undo() -> None:
    world = waiting(None)
    world.is_refused("b")
    assert world.task_state() is TaskState.UNDONE
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("without compensation: a, b")


def test_an_unfenced_undo_waits_for_the_answer_and_says_what_ends_it() -> None:
    world = waiting(UNFENCED)
    decision = world.is_refused("b")
    assert world.state("a") is ProcessState.PROCESSING
    assert decision.reason.endswith(
        "a: may still be performed by an outside system, so it waits for its callback until "
        "2027-01-15T09:00:00Z; if that system will not perform it, resolve it as not done"
    )


def test_a_person_who_knows_that_nobody_performs_it_ends_the_wait_of_an_unfenced_step() -> None:
    world = waiting(UNFENCED)
    world.is_refused("b")
    world.wait(60)  # no copy of the request can act either
    world.resolve("a", did=False)
    assert world.state("a") is ProcessState.UNDOING
    assert requests_in(world.start()) == ["a"]


def test_a_cancelled_task_is_undone_at_once() -> None:
    world = waiting()
    world.succeeds("b")
    world.cancel()
    assert requests_in(world.start()) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.CANCELLED


def test_a_task_that_is_archived_or_stopped_ends_at_once() -> None:
    assert archived().task_state() is TaskState.ARCHIVED
    world = waiting()
    world.succeeds("b")
    world.cancel(undo=False)
    assert (world.task_state(), world.state("a")) == (TaskState.CANCELLED, ProcessState.ERROR)


def test_a_step_that_begins_to_wait_when_its_task_is_ending_does_not_wait() -> None:
    world = waiting(on_failure=Archive())
    world.wait(30)
    world.task = waiting(on_failure=Archive()).task
    lock = world.record("b").locked_by
    world.cancel(undo=False)
    world.waits_for_callback("b", HOUR, lock=lock)
    assert world.task_state() is TaskState.CANCELLED


# --- The answer --------------------------------------------------------------------------------


def test_a_yes_to_an_archived_task_is_stored_so_that_a_resubmitted_one_does_not_ask_again() -> None:
    world = archived()
    decision = answer(world)
    assert world.task_state() is TaskState.ARCHIVED
    assert (world.state("a"), world.record("a").result) == (ProcessState.PROCESSED, "yes")
    assert [row.sender for row in decision.history] == [BANK]
    world.resubmit()
    assert requests_in(world.start()) == ["b"]


def test_a_resubmitted_task_asks_again_if_nobody_has_answered() -> None:
    world = archived()
    world.resubmit()
    assert requests_in(world.start()) == ["a", "b"]


def test_a_yes_whose_result_is_too_large_stands_and_is_not_stored() -> None:
    world = archived()
    world.reply("a", Outcome.SUCCEEDED, lock="nobody", result="x" * 500_000, callback=True)
    assert (world.state("a"), world.record("a").result) == (ProcessState.ERROR, None)


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_an_answer_during_the_undo_is_recorded_and_changes_nothing(outcome: Outcome) -> None:
    world = waiting()
    world.is_refused("b")
    before = world.record("a")
    decision = answer(world, outcome)
    assert world.record("a") == replace(before, wait_ended_at=None)
    assert [(row.kind, row.sender) for row in decision.history] == [("answered", BANK)]
    assert [a for a in decision.actions if isinstance(a, SendRequest)] == []


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_the_first_answer_after_the_undo_is_recorded_and_alerted_and_changes_no_state(
    outcome: Outcome,
) -> None:
    world = undone()
    assert world.task_state() is TaskState.UNDONE
    decision = answer(world, outcome)
    owed = [(o.kind, o.name, o.detail) for o in world.task.owed if o.kind == "alert"]
    assert owed == [("alert", LATE_ANSWER, "a")]
    assert [(row.kind, row.sender) for row in decision.history] == [("answered", BANK)]
    assert (world.task_state(), world.state("a")) == (TaskState.UNDONE, ProcessState.UNDONE)
    before = world.task
    answer(world, outcome)
    assert world.task is before


# --- An undo that is under way is not stopped ----------------------------------------------------


def test_an_undo_that_waits_for_the_answer_cannot_be_stopped() -> None:
    world = waiting(UNFENCED)
    world.is_refused("b")
    with pytest.raises(Refused, match="its undo is under way"):
        world.cancel(undo=False)


def test_a_task_whose_undo_has_failed_may_be_left_as_it_is() -> None:
    world = waiting()
    world.is_refused("b")
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
