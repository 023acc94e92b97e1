"""When undo begins: never before the last perform that may land, and by whose strategy."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo, Wait
from roundsman.engine.due import due
from roundsman.model.events import AgentView, Decision, InspectAt, Outcome, StartTask
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.steps import stored_step
from tests.support.undone_samples import (
    FENCED,
    ONCE,
    OUTCOMES,
    SKEW,
    UNFENCED,
    of,
    undoing,
    with_outcome,
)

# --- no perform lands after its undo --------------------------------------------------------------


def test_a_fenced_undo_does_not_wait_for_the_requests_of_its_step() -> None:
    world = of(step("a", compensation=FENCED), step("b"))
    world.fails("a")
    assert requests_in(world.is_refused("b")) == ["a"]


LATE_OUTCOMES: list[tuple[Outcome, ProcessState]] = [
    (Outcome.SUCCEEDED, ProcessState.PROCESSED),
    (Outcome.PERMANENT, ProcessState.ERROR),
]


@pytest.mark.parametrize(("outcome", "state"), LATE_OUTCOMES)
def test_an_undo_does_not_wait_until_an_attempt_was_to_begin_that_an_answer_made_needless(
    outcome: Outcome, state: ProcessState
) -> None:
    twice = Retry(max_attempts=2)
    world = begun(step("a", compensation=UNFENCED, retry=twice), on_failure=Archive())
    lock = world.record("a").locked_by
    world.overdue("a")
    for _ in range(6):  # nobody claims the next attempt
        world.wait_until(stored_step(world.record("a")).complete_by).inspect()
    assert (stored_step(world.record("a")).complete_by or 0) >= world.now + 5 * MINUTE
    world.reply("a", outcome, lock=lock, callback=True)
    assert (world.state("a"), stored_step(world.record("a")).complete_by) == (state, None)


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_unfenced_undo_waits_until_no_request_of_its_step_can_act(outcome: str) -> None:
    world = with_outcome(outcome, UNFENCED)
    if outcome == "processed":
        world.is_refused("later")
        assert world.state("a") is ProcessState.PROCESSED
        assert world.record("later").not_before == T0 + 30 * SECOND + SKEW
        return
    at = T0 + 30 * SECOND + SKEW
    assert world.record("a").not_before == at
    world.deliver_owed()
    assert due(world.task, world.now) == at
    assert requests_in(world.start()) == []
    world.wait_until(at - 1)
    assert requests_in(world.start()) == []
    world.wait_until(at)
    assert requests_in(world.start()) == ["a"]


def test_an_unfenced_undo_waits_for_the_latest_request_ever_sent_not_for_the_last() -> None:
    """The first was answered early and may have a copy; the second was given a later time."""
    world = of(step("a", compensation=UNFENCED, retry=Retry(max_attempts=3)))
    world.agents = {"worker/normal": AgentView(lag=5 * SECOND)}
    world.fails("a", retry_after=0)
    world.agents = {}
    world.fails("a", retry_after=0)
    assert stored_step(world.record("a")).complete_by == T0 + 30 * SECOND
    world.fails("a")
    assert world.record("a").not_before == T0 + 35 * SECOND + SKEW


def test_an_unfenced_undo_waits_after_a_transient_reply_that_came_early() -> None:
    world = of(step("a", compensation=UNFENCED))
    world.wait(1).fails("a", retry_after=600_000)
    assert world.record("a").acts_until == T0 + 30 * SECOND
    decision = world.wait(1).ask_undo()
    at = T0 + 30 * SECOND + SKEW
    assert world.record("a").not_before == at
    assert InspectAt(at) in decision.actions
    assert "its undo begins at 2027-01-15T08:00:35Z, when no request can act" in decision.reason


def test_an_unfenced_undo_of_a_requeued_step_still_waits_for_clocks_that_differ() -> None:
    world = of(step("a", compensation=UNFENCED))
    world.overdue("a")
    world.ask_undo()
    assert world.record("a").not_before == T0 + 30 * SECOND + SKEW


def test_an_unfenced_undo_waits_for_the_second_request_if_the_first_succeeded_late() -> None:
    world = of(step("a", compensation=UNFENCED), step("b", complete_within=timedelta(minutes=5)))
    first = world.lock("a")
    world.overdue("a")
    world.start()
    assert stored_step(world.record("a")).complete_by == T0 + 60 * SECOND
    world.succeeds("a", lock=first)
    world.is_refused("b")
    assert world.record("a").not_before == T0 + 60 * SECOND + SKEW


def test_an_unfenced_undo_waits_for_a_request_whose_outcome_a_person_has_reported() -> None:
    world = of(step("a", compensation=UNFENCED))
    world.resolve("a", did=False)
    world.ask_undo()
    assert world.record("a").not_before == T0 + 30 * SECOND + SKEW


def test_an_unfenced_undo_waits_for_a_request_that_was_refused_and_resubmitted() -> None:
    world = begun(step("a", compensation=UNFENCED, on_failure=Archive()))
    world.is_refused("a")
    world.resubmit()
    world.ask_undo()
    assert world.record("a").not_before == T0 + 30 * SECOND + SKEW


def test_an_unfenced_undo_of_a_step_whose_requests_are_long_over_begins_at_once() -> None:
    world = undoing(UNFENCED)
    assert world.record("a").locked_by is not None


# --- strategies -----------------------------------------------------------------------------------


def test_a_wait_comes_before_the_undo_that_is_chosen_for_the_step() -> None:
    a = step("a", compensation=FENCED)
    strategy = Wait(timedelta(minutes=10), times=1, then=Undo())
    b = step("b", a, retry=ONCE, on_failure=strategy)
    world = begun(a, b, on_failure=Archive())
    world.succeeds("a")
    world.fails("b")
    assert world.task_state() is TaskState.RETRY
    world.wait(600).start()
    world.fails("b")
    assert world.task_state() is TaskState.UNDOING


def test_the_tasks_own_time_undoes_by_the_workflows_strategy_whatever_its_steps_say() -> None:
    a = step("a", compensation=FENCED, on_failure=Archive())
    world = begun(a, on_failure=Undo(), complete_within=timedelta(seconds=60))
    world.fails("a", retry_after=59_000)
    world.wait(60).inspect()
    assert world.task_state() is TaskState.UNDOING


def test_the_first_failures_strategy_holds() -> None:
    kept, undone = step("kept", on_failure=Archive()), step("undone", compensation=FENCED)
    world = begun(kept, undone, on_failure=Undo())
    world.is_refused("kept")
    world.is_refused("undone")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("undone") is ProcessState.ERROR


@pytest.mark.parametrize("act", [World.ask_undo, World.cancel])
def test_an_operators_word_overrides_the_plans(act: object) -> None:
    assert callable(act)
    kept, other = step("kept", on_failure=Archive()), step("other", compensation=FENCED)
    world = begun(kept, other)
    world.is_refused("kept")
    act(world)
    assert requests_in(world.succeeds("other")) == ["other"]
    assert world.task_state() is TaskState.UNDOING


def test_before_the_point_of_no_return_a_failure_undoes_and_after_it_archives() -> None:
    paid = step("paid", compensation=FENCED)
    sent = step("sent", paid, compensation=FENCED)
    made = plan(paid, sent, on_failure=Undo(), point_of_no_return=paid)
    before = World(made)
    before.start()
    before.is_refused("paid")
    assert before.task_state() is TaskState.UNDOING
    after = World(made)
    after.start()
    after.succeeds("paid")
    after.is_refused("sent")
    assert after.task_state() is TaskState.ARCHIVED
    late = World(made)
    late.start()
    late.succeeds("paid")
    late.fails("sent", retry_after=7_200 * SECOND)
    late.wait(3_600).inspect()
    assert late.task_state() is TaskState.ARCHIVED


def test_a_person_may_undo_beyond_the_point_of_no_return() -> None:
    paid = step("paid", compensation=FENCED)
    world = begun(paid, step("sent", paid), on_failure=Undo(), point_of_no_return=paid)
    world.succeeds("paid")
    world.is_refused("sent")
    world.ask_undo()
    assert world.state("paid") is ProcessState.UNDOING


# --- the due entry --------------------------------------------------------------------------------


def test_a_supervisor_that_hears_of_nothing_brings_an_undo_to_its_end_by_itself() -> None:
    """Every message is lost but those that the supervisor's own Starts cause."""
    a = step("a", compensation=Compensation(retry=Retry(max_attempts=3)))
    world = of(a, step("b", a, compensation=UNFENCED))
    world.succeeds("a")
    world.is_refused("b")
    looks = 0
    while not world.task.ended:
        looks += 1
        assert looks < 60
        world.wait_until(due(world.task, world.now))
        if StartTask() in world.inspect().actions and looks % 2:
            world.start()
    assert world.task_state() is TaskState.ARCHIVED
    assert {world.state("a"), world.state("b")} == {ProcessState.UNDO_ERROR}


def test_an_undo_whose_start_was_lost_is_started_again_without_counting() -> None:
    world = of(step("a", compensation=FENCED))
    world.fails("a")
    world.ask_undo()
    for _ in range(3):
        decision: Decision = world.wait_until(due(world.task, world.now)).inspect()
        assert decision.actions == (StartTask(),)
        assert decision.reason == "a (undo): was not started in time; started again"
    assert world.record("a").failure_count == 0
