"""A deadline: counted from submission, moved by nothing, and acting once."""

from dataclasses import replace
from datetime import timedelta
from typing import Unpack

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo
from roundsman.engine.due import due
from roundsman.engine.eligibility import decided
from roundsman.engine.new_task import ProcessingOptions
from roundsman.errors import Refused
from roundsman.model.events import AgentView, Extend, InspectAt
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.machine_world import T0, StepOptions, World, begun, plan, requests_in, step
from tests.support.operator_stories import FENCED, HOUR, ONCE, refusal
from tests.support.restored_stories import restored
from tests.support.steps import stored_step

TEN_MINUTES = timedelta(minutes=10)
DEADLINE = T0 + 10 * MINUTE
PASSED = StepError("DeadlinePassed", "the task was not complete by its deadline")


def limited(**options: Unpack[StepOptions]) -> World:
    """One step, with ten minutes from submission, of an hour in which the task may take."""
    return World(plan(step("a", **options), deadline=TEN_MINUTES))


def failed_by_it() -> World:
    """The step waits for its next attempt when the deadline passes, and the task is archived."""
    world = limited()
    world.start()
    world.fails("a")
    world.wait_until(DEADLINE).inspect()
    return world


def test_a_deadline_counts_from_submission_and_not_from_the_start() -> None:
    world = World(
        plan(step("a"), deadline=TEN_MINUTES), ProcessingOptions(start_at=T0 + 5 * MINUTE)
    )
    assert world.task.deadline == DEADLINE
    assert world.task.complete_by == T0 + 65 * MINUTE
    assert World(plan(step("a"))).task.deadline is None


@pytest.mark.parametrize(("deadline", "by"), [(None, 20), (10, 10), (20, 20), (30, 20)])
def test_a_step_is_performed_until_the_earlier_of_the_two_limits(
    deadline: int | None, by: int
) -> None:
    task = replace(limited().task, complete_by=20, deadline=deadline)
    assert task.perform_by == by


def test_a_perform_is_cut_to_the_deadline() -> None:
    world = limited()
    world.wait(9 * 60 + 50).start()
    assert stored_step(world.record("a")).complete_by == DEADLINE
    assert world.request("a").complete_by == DEADLINE


def test_a_request_that_may_wait_long_in_its_queue_ends_at_the_deadline() -> None:
    world = limited(compensation=FENCED, complete_within=timedelta(minutes=5))
    world.start()
    assert stored_step(world.record("a")).complete_by == T0 + 5 * MINUTE
    assert world.request("a").complete_by == DEADLINE


def test_a_queue_that_is_behind_gives_no_time_after_the_deadline() -> None:
    world = limited()
    world.agents = {"worker/normal": AgentView(lag=8 * MINUTE, read_up_to=T0 - 8 * MINUTE)}
    world.start()
    assert stored_step(world.record("a")).complete_by == T0 + 8 * MINUTE + 30 * SECOND
    assert world.record("a").acts_until == DEADLINE


def test_an_attempt_in_a_backlog_is_extended_to_the_deadline_at_most() -> None:
    world = limited(compensation=FENCED, complete_within=timedelta(minutes=5))
    world.start()
    world.agents = {"worker/normal": AgentView(lag=8 * MINUTE, read_up_to=T0)}
    world.overdue("a")
    assert stored_step(world.record("a")).complete_by == DEADLINE


def test_no_copy_of_a_request_acts_after_the_deadline() -> None:
    world = limited(compensation=FENCED, complete_within=timedelta(minutes=5))
    world.start()
    world.fails("a")
    assert world.record("a").acts_until == DEADLINE


def test_a_callback_is_waited_for_until_the_deadline() -> None:
    world = limited()
    world.start()
    decision = world.waits_for_callback("a", HOUR / 2)
    assert stored_step(world.record("a")).complete_by == DEADLINE
    assert InspectAt(DEADLINE) in decision.actions


def test_a_step_does_not_wait_for_its_next_attempt_beyond_the_deadline() -> None:
    world = limited()
    world.start()
    decision = world.fails("a", retry_after=HOUR * SECOND // 2)
    assert world.record("a").not_before == DEADLINE
    assert stored_step(world.record("a")).complete_by == DEADLINE
    assert "no attempt fits before the task must be complete" in decision.reason


def test_a_step_is_retried_for_a_time_until_the_deadline_at_most() -> None:
    world = limited(retry=Retry(keep_trying_for=timedelta(minutes=30)))
    world.start()
    decision = world.fails("a")
    assert decision.reason.endswith("and until 2027-01-15T08:10:00Z at least")


def test_a_supervisor_looks_at_the_task_at_its_deadline() -> None:
    world = limited()
    world.start()
    world.fails("a", retry_after=HOUR * SECOND // 2)
    world.deliver_owed()
    assert due(world.task, world.now) == DEADLINE


def test_at_its_deadline_the_task_fails_with_its_own_reason() -> None:
    world = limited()
    world.start()
    world.fails("a", retry_after=HOUR * SECOND // 2)
    world.wait_until(DEADLINE - 1).inspect()
    assert world.task_state() is TaskState.RETRY
    world.wait_until(DEADLINE + 3 * MINUTE).inspect()
    ending = world.task.ending
    assert ending is not None
    assert ending.why == "the task's deadline was 2027-01-15T08:10:00Z (3 min ago)"
    assert ending.error == PASSED
    assert world.task_state() is TaskState.ARCHIVED


def test_the_limit_that_passes_first_is_the_reason() -> None:
    world = begun(
        step("a"), deadline=TEN_MINUTES, asked=ProcessingOptions(complete_within=5 * MINUTE)
    )
    world.fails("a", retry_after=HOUR * SECOND // 2)
    world.wait_until(DEADLINE).inspect()
    assert world.task.ending is not None
    assert world.task.ending.why == "the task was not complete by 2027-01-15T08:05:00Z (5 min ago)"
    assert world.task.ending.error == StepError("NotComplete", "the task was not complete in time")


@pytest.mark.parametrize(
    ("on_failure", "state"), [(Undo(), TaskState.UNDONE), (Archive(), TaskState.ARCHIVED)]
)
def test_the_workflow_says_what_happens_at_the_deadline(
    on_failure: Undo | Archive, state: TaskState
) -> None:
    world = World(plan(step("a"), deadline=TEN_MINUTES, on_failure=on_failure))
    world.wait_until(DEADLINE).inspect()
    assert world.task_state() is state
    assert world.task.ending is not None
    assert world.task.ending.error == PASSED


def test_a_task_whose_steps_are_all_done_does_not_fail_at_its_deadline() -> None:
    world = limited()
    world.start()
    lock = world.lock("a")
    world.wait_until(DEADLINE).succeeds("a", lock=lock)
    assert world.task_state() is TaskState.COMPLETED


def test_a_hold_moves_the_complete_by_and_not_the_deadline() -> None:
    world = limited()
    world.hold("worker", 2 * HOUR).start()
    world.wait_until(DEADLINE).inspect()
    assert world.task.complete_by > T0 + HOUR * SECOND
    assert world.task.deadline == DEADLINE
    assert world.task_state() is TaskState.ARCHIVED


def test_a_restore_does_not_move_the_deadline() -> None:
    world = limited(retry=ONCE)
    world.start()
    before = world.task.complete_by
    restored(world)
    assert world.task.complete_by > before
    assert world.task.deadline == DEADLINE


def test_a_task_that_is_run_now_keeps_its_deadline() -> None:
    world = World(
        plan(step("a"), deadline=TEN_MINUTES), ProcessingOptions(start_at=T0 + 9 * MINUTE)
    )
    world.wait(60).run_now()
    assert world.task.complete_by == T0 + 61 * MINUTE
    assert world.task.deadline == DEADLINE


# --- extend --------------------------------------------------------------------------------------

WHEN = "its deadline is 2027-01-15T08:10:00.000Z, and nothing moves it"


def short() -> World:
    """A task that must be complete within five minutes, and has a deadline in ten."""
    return World(
        plan(step("a"), deadline=TEN_MINUTES), ProcessingOptions(complete_within=5 * MINUTE)
    )


def test_a_task_is_extended_up_to_its_deadline_and_not_beyond() -> None:
    world = short()
    sentence = refusal(world, lambda: world.extend(5 * 60 + 1))
    assert sentence == f"{WHEN}: at most 5 min can be added"
    world.extend(5 * 60)
    assert world.task.complete_by == DEADLINE
    assert refusal(world, lambda: world.extend(1)) == f"{WHEN}: no time can be added"


def test_a_step_is_extended_up_to_the_deadline_and_not_beyond() -> None:
    world = short()
    world.start()
    world.extend(9 * 60, "a")
    sentence = refusal(world, lambda: world.extend(31, "a"))
    assert sentence == f"{WHEN}: at most 30 s can be added"
    world.extend(30, "a")
    assert world.task.complete_by == DEADLINE


def test_a_step_that_waits_for_its_callback_is_extended_up_to_the_deadline() -> None:
    world = short()
    world.start()
    world.waits_for_callback("a", 60)
    refusal(world, lambda: world.extend(9 * 60 + 1, "a"))
    world.extend(9 * 60, "a")
    assert stored_step(world.record("a")).complete_by == DEADLINE


def test_an_undo_is_extended_beyond_the_deadline() -> None:
    world = begun(step("a", compensation=FENCED), deadline=TEN_MINUTES, on_failure=Undo())
    world.ask_undo()
    world.wait_until(DEADLINE).inspect()
    world.start()
    assert world.state("a") is ProcessState.UNDOING
    world.extend(HOUR, "a")
    assert world.record("a").extra == HOUR * SECOND


# --- after it ------------------------------------------------------------------------------------


def test_a_task_that_is_resubmitted_after_its_deadline_is_free_of_it() -> None:
    world = failed_by_it()
    decision = world.wait(60).resubmit()
    assert world.task.deadline is None
    assert world.task.complete_by == world.now + HOUR * SECOND
    assert "its deadline was 2027-01-15T08:10:00Z and does not count" in decision.reason
    assert requests_in(world.wait(HOUR / 2).start()) == ["a"]
    world.extend(HOUR)
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_a_task_that_is_resubmitted_at_its_deadline_is_free_of_it() -> None:
    world = failed_by_it()
    assert world.now == DEADLINE
    world.resubmit()
    assert world.task.deadline is None


def test_a_task_that_failed_otherwise_keeps_the_deadline_that_is_still_ahead() -> None:
    world = limited(retry=ONCE)
    world.start()
    world.is_refused("a")
    world.wait_until(DEADLINE - 1).resubmit()
    assert world.task.deadline == DEADLINE
    world.wait(1).inspect()
    assert world.task_state() is TaskState.ARCHIVED


def test_a_task_that_failed_otherwise_is_free_of_a_deadline_that_passed_meanwhile() -> None:
    world = limited(retry=ONCE)
    world.start()
    world.is_refused("a")
    world.wait_until(DEADLINE + 1).resubmit()
    assert world.task.deadline is None
    assert requests_in(world.start()) == ["a"]


def test_an_undone_task_that_begins_again_is_free_of_the_deadline_that_undid_it() -> None:
    world = World(plan(step("a"), deadline=TEN_MINUTES, on_failure=Undo()))
    world.wait_until(DEADLINE).inspect()
    world.resubmit(again=True)
    assert world.task.deadline is None


def test_a_task_whose_last_failed_step_is_resolved_is_free_of_a_deadline_that_passed() -> None:
    a = step("a", retry=ONCE)
    world = begun(a, step("b", a), deadline=TEN_MINUTES)
    world.is_refused("a")
    world.wait_until(DEADLINE).resolve("a", did=True)
    assert world.task.deadline is None
    assert requests_in(world.start()) == ["b"]


def test_a_request_that_is_sent_again_after_the_deadline_ends_at_it_still() -> None:
    a = step("a", compensation=FENCED, complete_within=timedelta(minutes=5))
    world = begun(a, step("b"), step("c", a), deadline=TEN_MINUTES)
    world.wait_until(DEADLINE).succeeds("b")
    assert world.task.ending is not None
    request = world.request("a")
    assert request.complete_by == DEADLINE


def test_under_the_newest_plan_a_task_keeps_the_deadline_it_was_submitted_with() -> None:
    world = limited(retry=ONCE)
    world.start()
    world.is_refused("a")
    world.resubmit(under=plan(step("a"), deadline=timedelta(minutes=30)))
    assert world.task.deadline == DEADLINE
    plain = begun(step("a", retry=ONCE))
    plain.is_refused("a")
    plain.resubmit(under=plan(step("a"), deadline=TEN_MINUTES))
    assert plain.task.deadline is None


def test_under_the_newest_plan_a_step_that_waits_is_cut_to_the_deadline() -> None:
    world = World(plan(step("a"), step("b", retry=ONCE), deadline=TEN_MINUTES))
    world.wait(9 * 60 + 40).start()
    world.is_refused("b")
    world.wait(10).gives_back("a")
    assert stored_step(world.record("a")).complete_by == DEADLINE + 20 * SECOND, (
        "nothing performs it"
    )
    world.resubmit(under=plan(step("a"), step("b")))
    assert stored_step(world.record("a")).complete_by == DEADLINE


def test_a_bulk_extension_is_refused_with_the_same_sentence() -> None:
    world = short()
    event = Extend(world.asked(), 5 * 60 + 1)
    with pytest.raises(Refused, match="at most 5 min can be added"):
        decided(world.plan, world.task, event, world.now)
