"""Steps that take long: a heartbeat shows that they are alive, a callback answers for them."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.engine.due import due
from roundsman.model.events import AgentView, Claimant, InspectAt, Outcome
from roundsman.model.instants import MINUTE, SECOND, SKEW
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.coping_stories import FENCED, SLOW
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.steps import stored_step

CLAIMANT = Claimant("sched", "nonce")


def slow(**agents: AgentView) -> World:
    """A step of ten minutes that is to be heard of every ten seconds."""
    world = World(plan(SLOW))
    world.agents = {f"{name}/normal": view for name, view in agents.items()}
    world.start(CLAIMANT)
    return world


# --- heartbeats -----------------------------------------------------------------------------------


def test_the_request_says_when_progress_is_due_and_when_all_must_be_done() -> None:
    world = slow(worker=AgentView(lag=5 * SECOND))
    request = world.request("a")
    assert request.heartbeat_by == T0 + 15 * SECOND
    assert request.complete_by == T0 + 10 * MINUTE + 5 * SECOND


def test_no_heartbeat_is_due_after_the_end_of_the_attempt() -> None:
    world = World(plan(SLOW, complete_within=timedelta(minutes=10)))
    world.wait(10 * 60 - 4).start()
    assert world.record("a").heartbeat_by == world.task.complete_by


def test_progress_moves_the_heartbeat_and_not_the_end() -> None:
    world = slow()
    end = stored_step(world.record("a")).complete_by
    decision = world.wait(8).shows_progress("a")
    record = world.record("a")
    assert (record.heartbeat_by, stored_step(record).complete_by) == (T0 + 18 * SECOND, end)
    assert record.heard_at == T0 + 8 * SECOND
    assert record.process_state is ProcessState.PROCESSING
    assert decision.reason == "a: progress; the next is due by 2027-01-15T08:00:18Z"
    assert decision.history == ()
    before = world.task
    assert world.wait(9.9).inspect().task is before
    world.wait_until((end or 0) - 5 * SECOND).shows_progress("a")
    assert world.record("a").heartbeat_by == end


def test_an_attempt_without_progress_is_overdue_long_before_its_end() -> None:
    world = slow()
    world.deliver_owed()
    assert due(world.task, world.now) == T0 + 10 * SECOND
    world.wait(9).shows_progress("a")
    decision = world.wait(20).inspect()
    record = world.record("a")
    assert (record.process_state, record.failure_count) == (ProcessState.PENDING, 1)
    assert record.error == StepError("Overdue", "no progress for 20 s; 10 s late when seen")
    assert record.acts_until == T0 + 10 * MINUTE, "the agent may act until then all the same"
    assert record.heard_at is None
    assert decision.reason == (
        "a: attempt 1 of 3 overdue by 10 s: no progress for 20 s; retried at 2027-01-15T08:00:29Z"
    )


def test_an_unfenced_undo_waits_for_the_hard_end_of_an_attempt_that_went_silent() -> None:
    silent = step(
        "a",
        heartbeat_within=timedelta(seconds=10),
        complete_within=timedelta(minutes=10),
        compensation=Compensation(),
        retry=Retry(max_attempts=1),
    )
    world = begun(silent, on_failure=Undo())
    world.wait(10).inspect()
    assert world.record("a").not_before == T0 + 10 * MINUTE + SKEW


def test_progress_that_comes_late_or_twice_changes_nothing() -> None:
    world = slow()
    lock = world.lock("a")
    world.wait(8).shows_progress("a")
    before = world.task
    assert world.shows_progress("a").task is before
    world.wait(10).inspect()
    world.start()
    before = world.task
    assert world.shows_progress("a", lock=lock).task is before
    assert world.record("a").heartbeat_by == world.now + 10 * SECOND


def test_progress_of_a_clock_that_is_behind_takes_nothing_back() -> None:
    world = slow()
    world.wait(8).shows_progress("a")
    before = world.task
    world.now -= 3 * SECOND
    assert world.shows_progress("a").task is before


def test_progress_of_a_step_without_a_heartbeat_changes_nothing() -> None:
    world = begun(step("a"))
    before = world.task
    decision = world.shows_progress("a")
    assert decision.task is before
    assert decision.reason == "a: progress ignored: it has no heartbeat"


def test_an_undo_has_no_heartbeat() -> None:
    made = step(
        "a",
        heartbeat_within=timedelta(seconds=10),
        complete_within=timedelta(minutes=10),
        compensation=FENCED,
    )
    world = begun(made, on_failure=Undo())
    world.is_refused("a")
    assert world.state("a") is ProcessState.UNDOING
    assert world.record("a").heartbeat_by is None
    before = world.task
    assert world.shows_progress("a").task is before


def test_an_attempt_that_was_heard_of_is_never_taken_for_unread() -> None:
    behind = AgentView(lag=MINUTE, read_up_to=T0 - 1)
    world = slow()
    world.wait(1).shows_progress("a")
    world.agents = {"worker/normal": behind}
    world.wait(11).inspect()
    assert world.record("a").failure_count == 1


def test_more_time_for_a_step_that_shows_no_progress_is_another_attempt_that_has_it() -> None:
    world = slow()
    world.extend(60, "a")
    world.wait(11).inspect()
    assert world.record("a").failure_count == 0
    world.start()
    assert world.record("a").heartbeat_by == world.now + 10 * SECOND
    assert stored_step(world.record("a")).complete_by == world.now + 11 * MINUTE


# --- callbacks ------------------------------------------------------------------------------------


def test_a_step_that_waits_for_its_callback_is_left_alone_until_then() -> None:
    world = slow()
    lock = world.lock("a")
    decision = world.wait(5).waits_for_callback("a", 1_800)
    record = world.record("a")
    until = world.now + 30 * MINUTE
    assert (record.process_state, record.locked_by) == (ProcessState.PROCESSING, lock)
    assert (stored_step(record).complete_by, record.heartbeat_by, record.waiting) == (
        until,
        None,
        True,
    )
    assert decision.actions == (InspectAt(until),)
    assert decision.reason == "a: waits for its callback until 2027-01-15T08:30:05Z"
    world.deliver_owed()
    assert due(world.task, world.now) == until
    before = world.task
    assert world.wait_until(until - 1).inspect().task is before
    world.succeeds("a", "signed", lock=lock)
    assert world.task_state() is TaskState.COMPLETED
    assert not world.record("a").waiting


def test_a_callback_is_waited_for_no_longer_than_the_task_has() -> None:
    world = slow()
    world.waits_for_callback("a", 10**9)
    assert stored_step(world.record("a")).complete_by == world.task.complete_by


def test_a_callback_that_does_not_come_is_a_failure_in_its_own_words() -> None:
    world = slow()
    world.waits_for_callback("a", 60)
    decision = world.wait(63).inspect()
    record = world.record("a")
    assert (record.process_state, record.failure_count) == (ProcessState.PENDING, 1)
    assert record.error == StepError(
        "Overdue", "no callback by 2027-01-15T08:01:00Z; 3 s late when seen"
    )
    assert "attempt 1 of 3 overdue by 3 s: no callback by 2027-01-15T08:01:00Z" in decision.reason
    assert not record.waiting


@pytest.mark.parametrize("outcome", ["transient", "permanent"])
def test_a_callback_may_bring_bad_news(outcome: str) -> None:
    world = slow()
    world.waits_for_callback("a", 600)
    world.fails("a") if outcome == "transient" else world.is_refused("a")
    expected = ProcessState.PENDING if outcome == "transient" else ProcessState.ERROR
    assert world.state("a") is expected
    assert not world.record("a").waiting


def test_what_the_agent_says_after_it_began_to_wait_changes_nothing() -> None:
    """Replies may come in any order: a late sign of progress brings no heartbeat back."""
    world = slow()
    world.waits_for_callback("a", 600)
    before = world.task
    assert world.wait(1).waits_for_callback("a", 900).task is before
    decision = world.shows_progress("a")
    assert decision.task is before
    assert decision.reason == "a: progress ignored: it waits for its callback"


def test_the_request_of_a_step_that_waits_is_not_sent_again() -> None:
    world = slow()
    assert requests_in(world.start(CLAIMANT)) == ["a"]
    world.waits_for_callback("a", 600)
    assert requests_in(world.start(CLAIMANT)) == []


def test_a_waiting_reply_of_an_attempt_that_is_over_changes_nothing() -> None:
    world = slow()
    lock = world.lock("a")
    world.wait(10).inspect()
    world.start()
    before = world.task
    assert world.waits_for_callback("a", 600, lock=lock).task is before


def test_an_undo_that_wants_to_wait_has_failed_for_now() -> None:
    compensation = Compensation(fences_late_performs=True)
    world = begun(step("a", compensation=compensation), on_failure=Undo())
    world.is_refused("a")
    decision = world.waits_for_callback("a", 600)
    assert world.record("a").failure_count == 1
    assert world.record("a").error == StepError("CannotWait", "an undo cannot wait for a callback")
    assert "CannotWait: an undo cannot wait for a callback" in decision.reason


def test_a_person_may_answer_for_a_step_that_waits() -> None:
    world = slow()
    world.waits_for_callback("a", 600)
    world.resolve("a", result={"by": "ann"})
    assert world.task_state() is TaskState.COMPLETED
    assert not world.record("a").waiting


def test_no_perform_can_land_after_the_undo_of_a_step_that_waited() -> None:
    made = step("a", compensation=Compensation(), retry=Retry(max_attempts=1))
    world = begun(made, on_failure=Undo())
    world.waits_for_callback("a", 600)
    world.is_refused("a")
    assert world.record("a").not_before == T0 + 10 * MINUTE + SKEW


def test_nor_where_the_callback_was_to_come_before_the_end_of_the_request() -> None:
    """A copy of the request may come late, and act until then."""
    made = step("a", compensation=Compensation(), retry=Retry(max_attempts=1))
    world = begun(made, on_failure=Undo())
    world.waits_for_callback("a", 5)
    world.overdue("a")
    assert world.record("a").not_before == T0 + 30 * SECOND + SKEW


def test_a_copy_that_is_given_back_ends_no_wait_for_a_callback() -> None:
    world = slow()
    world.waits_for_callback("a", 600)
    before = world.task
    decision = world.reply("a", Outcome.HELD, error=StepError("Held", "busy"))
    assert decision.task is before
    assert decision.reason == "a: held reply ignored: it waits for its callback"


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_the_undo_of_a_step_whose_callback_has_come_waits_for_its_request_alone(
    outcome: Outcome,
) -> None:
    made = step("a", compensation=Compensation(), retry=Retry(max_attempts=1))
    world = begun(made, step("b", made), on_failure=Undo())
    world.waits_for_callback("a", 600)
    world.reply("a", outcome, error=StepError("No", "no"), callback=True)
    if outcome is Outcome.SUCCEEDED:
        world.is_refused("b")
    assert world.record("a").not_before == T0 + 30 * SECOND + SKEW


@pytest.mark.parametrize("outcome", [Outcome.SUCCEEDED, Outcome.PERMANENT])
def test_an_answer_by_the_token_of_an_earlier_attempt_counts_be_it_yes_or_no(
    outcome: Outcome,
) -> None:
    world = begun(step("a", retry=Retry(max_attempts=3)))
    first = world.lock("a")
    world.waits_for_callback("a", 600)
    world.overdue("a")
    world.start()
    world.waits_for_callback("a", 600)
    world.reply("a", outcome, lock=first, error=StepError("No", "no"), callback=True)
    done = outcome is Outcome.SUCCEEDED
    assert world.state("a") is (ProcessState.PROCESSED if done else ProcessState.ERROR)
    assert not world.record("a").waiting


def test_an_agents_own_failure_of_an_earlier_attempt_does_not_count() -> None:
    world = begun(step("a", retry=Retry(max_attempts=3)))
    first = world.lock("a")
    world.overdue("a")
    world.start()
    before = world.task
    assert world.reply("a", Outcome.PERMANENT, lock=first, error=StepError("No", "")).task is before


def test_a_transient_answer_by_an_earlier_token_leaves_the_later_attempt_waiting() -> None:
    world = begun(step("a", retry=Retry(max_attempts=3)))
    first = world.lock("a")
    world.waits_for_callback("a", 600)
    world.overdue("a")
    world.start()
    world.waits_for_callback("a", 600)
    before = world.task
    later = StepError("Later", "")
    decision = world.reply("a", Outcome.TRANSIENT, lock=first, error=later, callback=True)
    assert decision.task is before
