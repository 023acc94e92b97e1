"""A task that ends does not wait for a callback, unless its undo has to wait for the answer."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Archive, Undo
from roundsman.errors import Refused
from roundsman.model.events import Outcome, SendRequest
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import LATE_ANSWER, PERFORM, UNDO, Effect, StepError, StepToAdd
from tests.support.ended_wait_stories import (
    BANK,
    FENCED,
    HOUR,
    ONCE,
    UNFENCED,
    answer,
    archived,
    out_of_time,
    undone,
    waiting,
)
from tests.support.machine_world import World, begun, requests_in, step
from tests.support.steps import stored_step

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


def test_the_timer_ends_the_wait_if_another_step_is_overdue() -> None:
    world = waiting()
    world.overdue("b")
    assert world.state("a") is ProcessState.UNDOING
    assert world.record("a").wait_ended_at == world.now


def test_a_start_after_the_tasks_time_ends_the_wait_and_the_task() -> None:
    assert out_of_time().task_state() is TaskState.UNDONE


def test_the_wait_of_an_unfenced_step_ends_too_if_nothing_is_to_be_undone() -> None:
    world = waiting(UNFENCED, on_failure=Archive())
    world.is_refused("b")
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, ProcessState.ERROR)


def test_the_history_names_the_attempt_whose_wait_was_ended() -> None:
    world = begun(step("a", compensation=FENCED), step("b", retry=ONCE), on_failure=Undo())
    for _ in range(2):
        world.fails("a")
        world.wait(60).start()
    world.waits_for_callback("a", HOUR)
    decision = world.cancel()
    assert [row.attempt for row in decision.history if row.kind == "wait ended"] == [3]


def test_a_step_that_was_done_by_an_outside_system_is_undone_once_no_copy_may_act() -> None:
    world = waiting(UNFENCED)
    until = stored_step(world.record("a")).complete_by
    world.resolve("a", did=True)
    assert (world.state("a"), stored_step(world.record("a")).complete_by) == (
        ProcessState.PROCESSED,
        until,
    )


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


def test_a_step_that_begins_anew_or_is_answered_has_no_ended_wait() -> None:
    world = archived()
    assert world.record("a").wait_ended_at is not None
    answer(world)
    assert world.record("a").wait_ended_at is None
    world = archived()
    world.resubmit()
    assert (world.state("a"), world.record("a").wait_ended_at) == (ProcessState.PENDING, None)


def test_a_yes_whose_result_is_too_large_is_taken_without_it() -> None:
    world = archived()
    world.reply("a", Outcome.SUCCEEDED, lock="nobody", result="x" * 500_000, callback=True)
    record = world.record("a")
    assert (record.process_state, record.result) == (ProcessState.PROCESSED, None)
    assert record.left_out is not None


def test_a_yes_that_adds_a_step_which_cannot_be_added_stands_and_is_not_stored() -> None:
    world = archived()
    then = (StepToAdd("other[a]"),)
    world.reply("a", Outcome.SUCCEEDED, lock="nobody", result="yes", callback=True, then=then)
    assert (world.state("a"), world.record("a").result) == (ProcessState.ERROR, None)
    assert (world.record("a").effect, world.task.added) == (Effect.STANDS, {})


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


def ignored(world: World, *, key: str = "ord-1/a/perform", callback: bool = True) -> None:
    """A reply about the perform of `a` changes nothing, and is only noted."""
    before = world.task
    decision = world.reply(
        "a", Outcome.SUCCEEDED, lock="nobody", key=key, operation=PERFORM, callback=callback
    )
    assert (world.task.steps, world.task.owed) == (before.steps, before.owed)
    assert decision.history == ()


def test_a_late_reply_that_is_no_answer_to_the_wait_is_ignored() -> None:
    for world in (undone(), waiting_for_undo()):
        ignored(world, callback=False)
        ignored(world, key="ord-1/a/perform/2")
        assert world.record("a").wait_ended_at is not None


def test_an_answer_by_the_token_of_an_undo_is_no_answer_to_the_wait() -> None:
    for world in (undone(), waiting_for_undo()):
        before = world.task
        no = StepError("No", "no")
        world.reply("a", Outcome.TRANSIENT, lock="nobody", operation=UNDO, error=no, callback=True)
        assert (world.task.steps, world.task.owed) == (before.steps, before.owed)


def test_a_second_answer_during_the_undo_is_ignored() -> None:
    world = waiting_for_undo()
    answer(world)
    ignored(world)


def test_a_second_answer_has_no_row_in_a_decision_that_changes_something_else() -> None:
    world = waiting_for_undo()
    answer(world)
    world.fails("a")
    decision = answer(world.wait(HOUR))
    assert requests_in(decision) == ["a"], "its undo is due again"
    assert decision.history == ()


def waiting_for_undo() -> World:
    """The wait of `a` is ended, and its undo is under way."""
    world = waiting()
    world.is_refused("b")
    assert world.record("a").under_way
    return world


# --- An undo that is under way is not stopped ----------------------------------------------------


def test_an_undo_that_waits_for_the_answer_cannot_be_stopped() -> None:
    world = waiting(UNFENCED)
    world.is_refused("b")
    with pytest.raises(Refused, match="its undo is under way"):
        world.cancel(undo=False)


def test_a_person_may_ask_for_the_undo_that_waits_for_the_answer() -> None:
    world = waiting(UNFENCED)
    world.is_refused("b")
    world.cancel()
    assert world.task.ending is not None
    assert world.task.ending.how is TaskState.CANCELLED


def test_a_task_that_is_being_archived_may_be_left_as_it_is() -> None:
    world = begun(*(step(name, retry=ONCE) for name in "abc"), on_failure=Archive())
    world.is_refused("a")
    world.cancel(undo=False)
    world.is_refused("b")
    world.succeeds("c")
    assert world.task_state() is TaskState.CANCELLED


def test_a_task_whose_undo_has_failed_may_be_left_as_it_is() -> None:
    world = waiting()
    world.is_refused("b")
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
