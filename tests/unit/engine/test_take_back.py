"""A completed order is taken back: its effects are undone, the last one first."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Compensation, Retry
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Refused
from roundsman.model.events import UndoAsked
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_world import World, plan, requests_in, step

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
UNFENCED = Compensation(retry=Retry(max_attempts=1))
A_DAY = timedelta(days=1)


def completed(*, compensation: Compensation | None = FENCED, point: bool = False) -> World:
    a = step("a", compensation=compensation)
    b = step("b", "a", compensation=compensation)
    end = step("end", "b")
    world = World(plan(a, b, end, retain_for=A_DAY, point_of_no_return=end if point else None))
    world.start()
    for name in ("a", "b", "end"):
        world.succeeds(name)
    assert world.task_state() is TaskState.COMPLETED
    return world


def test_the_effects_are_undone_in_reverse_order_and_what_cannot_be_is_named() -> None:
    world = completed()
    assert requests_in(world.wait(60).ask_undo()) == []
    assert world.task_state() is TaskState.UNDOING
    assert requests_in(world.start()) == ["b"]
    assert requests_in(world.succeeds("b")) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("without compensation: end")


def test_it_does_not_expire_while_it_is_undone_and_is_kept_for_its_retention_after_that() -> None:
    world = completed()
    world.deliver_owed()
    assert world.task.expires_at is not None
    again = world.wait(60).ask_undo().task
    assert (again.expires_at, again.ended_at, again.lane[:5]) == (None, None, "open#")
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    world.deliver_owed()
    assert world.task.expires_at == world.now + A_DAY // timedelta(milliseconds=1)


def test_the_application_is_told_that_it_is_undone_after_it_was_told_that_it_is_completed() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    owed = [(one.name, one.seq) for one in world.task.owed if one.kind == "status"]
    assert [name for name, _ in owed] == ["received", "started", "completed", "undone"]
    assert sorted(seq for _, seq in owed) == [seq for _, seq in owed]


def test_an_undo_that_is_not_fenced_waits_until_no_request_can_act() -> None:
    world = completed(compensation=UNFENCED)
    world.ask_undo()
    assert requests_in(world.start()) == []
    assert world.record("b").not_before is not None
    world.wait_until(world.record("b").not_before or 0).inspect()
    assert requests_in(world.start()) == ["b"]


def test_an_undo_that_fails_needs_a_person() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    assert requests_in(world.is_refused("b")) == ["a"]
    world.succeeds("a")
    assert (world.task_state(), world.state("b")) == (TaskState.ARCHIVED, ProcessState.UNDO_ERROR)


def test_it_can_begin_again_under_new_keys() -> None:
    world = completed()
    world.ask_undo()
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    world.resubmit(again=True)
    world.start()
    assert (world.task_state(), world.record("a").round) == (TaskState.ACTIVE, 2)


def test_a_task_that_is_past_its_point_of_no_return_is_not_taken_back() -> None:
    world = completed(point=True)
    with pytest.raises(Refused, match="completed, past its point of no return, end"):
        world.ask_undo()


def test_a_task_of_which_nothing_can_be_undone_is_not_taken_back() -> None:
    world = completed(compensation=None)
    with pytest.raises(Refused, match="no step that was performed has a compensation"):
        world.ask_undo()


def test_a_point_of_no_return_that_was_skipped_was_not_passed() -> None:
    a = step("a", compensation=FENCED)
    end = step("end", "a", when="input.total > `100`")
    world = World(plan(a, end, point_of_no_return=end), order={"total": 7})
    world.start()
    world.succeeds("a")
    assert world.state("end") is ProcessState.SKIPPED
    world.ask_undo()
    assert world.task_state() is TaskState.UNDOING


def test_the_same_command_takes_it_back_once() -> None:
    world = completed()
    world.ask_undo()
    _, event, _ = world.decisions[-1]
    assert world.decide(event).reason == "ignored: this command was executed before"


def test_a_command_that_names_no_version_takes_no_completed_order_back() -> None:
    world = completed()
    with pytest.raises(Refused, match="names the version that its sender saw"):
        world.apply(UndoAsked(world.asked()))


def test_a_cancelled_task_that_is_undone_at_once_is_kept_from_that_end_on() -> None:
    world = World(plan(step("a"), retain_for=timedelta(days=1)), ProcessingOptions())
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    world.wait(3600).ask_undo()
    assert world.task_state() is TaskState.UNDONE
    assert world.task.expires_at == world.now + world.task.retain_for
