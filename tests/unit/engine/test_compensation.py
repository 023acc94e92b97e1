"""Undo: what is compensated, in which order, with what in its request, and how it ends."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.engine.due import due
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.model.events import HistoryRow, Outcome, StartTask
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.machine_checks import DONE_LANE
from tests.support.machine_world import World, begun, plan, requests_in, step
from tests.support.steps import stored_step
from tests.support.undone_samples import (
    FENCED,
    OUTCOMES,
    UNFENCED,
    of,
    request,
    undoing,
    with_outcome,
)

# --- order --------------------------------------------------------------------------------------


def test_a_chain_is_undone_from_its_end() -> None:
    a = step("a", compensation=FENCED)
    b = step("b", a, compensation=FENCED)
    c = step("c", b, compensation=FENCED)
    world = of(a, b, c, step("d", c))
    for name in "abc":
        world.succeeds(name)
    assert requests_in(world.is_refused("d")) == ["c"]
    assert world.task_state() is TaskState.UNDOING
    assert world.state("b") is ProcessState.PROCESSED
    assert requests_in(world.succeeds("c")) == ["b"]
    assert requests_in(world.succeeds("b")) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


def test_independent_steps_are_undone_at_once_and_what_they_came_after_waits_for_both() -> None:
    root = step("root", compensation=FENCED)
    left = step("left", root, compensation=FENCED)
    right = step("right", root, compensation=FENCED)
    world = of(root, left, right, step("last", left, right))
    for name in ("root", "left", "right"):
        world.succeeds(name)
    assert requests_in(world.is_refused("last")) == ["left", "right"]
    assert requests_in(world.succeeds("right")) == []
    assert requests_in(world.succeeds("left")) == ["root"]


def test_a_step_without_compensation_does_not_hold_up_what_it_came_after() -> None:
    a = step("a", compensation=FENCED)
    b = step("b", a)
    c = step("c", b, compensation=FENCED)
    world = of(a, b, c, step("d", c))
    for name in "abc":
        world.succeeds(name)
    world.is_refused("d")
    assert requests_in(world.succeeds("c")) == ["a"]


def test_what_came_before_a_step_under_way_is_not_undone_before_it_has_answered() -> None:
    a, b = step("a", compensation=FENCED), step("b")
    late = step("late", a, complete_within=timedelta(minutes=5))
    world = of(a, b, late)
    world.succeeds("a")
    assert requests_in(world.is_refused("b")) == []
    assert world.task_state() is TaskState.ACTIVE
    world.deliver_owed()
    assert due(world.task, world.now) == stored_step(world.record("late")).complete_by
    assert requests_in(world.fails("late")) == ["a"]


# --- what is undone -------------------------------------------------------------------------------


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_step_that_was_ever_claimed_is_compensated_whatever_came_of_it(outcome: str) -> None:
    world = with_outcome(outcome, FENCED)
    if outcome == "processed":  # `later` was claimed by that, and is waited for
        world.is_refused("later")
        world.succeeds("later")
    found = request(world, "a")
    assert found.operation == "undo"
    assert found.outcome_unknown == (outcome != "processed")
    assert found.results == ({"a": "r"} if outcome == "processed" else {})
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert world.state("later") in (ProcessState.PENDING, ProcessState.UNDONE)


def test_a_step_under_way_is_waited_for_until_it_answers_and_its_success_is_then_undone() -> None:
    world = of(step("a", compensation=FENCED), step("b"))
    world.is_refused("b")
    assert world.state("a") is ProcessState.PROCESSING
    decision = world.wait(3).succeeds("a", {"id": 7})
    assert decision.reason.startswith("a: processed; a: its undo begins")
    assert decision.history[0].reason == "a: its undo begins"
    assert request(world, "a").results == {"a": {"id": 7}}
    assert not request(world, "a").outcome_unknown


def test_a_step_under_way_is_waited_for_until_its_time_is_over() -> None:
    world = of(step("a", compensation=FENCED), step("b"))
    world.is_refused("b")
    before = world.task
    assert world.wait(29).inspect().task is before
    assert world.overdue("a").actions == (StartTask(),)
    assert world.state("a") is ProcessState.UNDOING
    assert requests_in(world.start()) == ["a"]
    assert request(world, "a").outcome_unknown


def test_a_step_that_was_skipped_or_never_claimed_is_not_undone() -> None:
    skipped = step("skipped", when="input.no", compensation=FENCED)
    a = step("a", skipped)
    world = begun(skipped, a, step("b", a, compensation=FENCED), on_failure=Undo(), order={})
    decision = world.is_refused("a")
    assert requests_in(decision) == []
    assert world.task_state() is TaskState.UNDONE
    assert world.task.ending is not None
    assert world.task.ending.why.endswith("; without compensation: a")


# --- the request ----------------------------------------------------------------------------------


def test_the_request_of_an_undo_has_its_own_key_and_what_the_compensation_needs() -> None:
    a = step("a", compensation=Compensation(complete_within=timedelta(minutes=4)))
    b = step("b", a, compensation=FENCED)
    world = of(a, b, step("c", b))
    world.succeeds("a", "of a")
    world.succeeds("b", "of b")
    world.is_refused("c")
    found = request(world, "b")
    assert (found.operation, found.attempt) == ("undo", 1)
    assert found.idempotency_key == "ord-1/b/undo"
    assert found.perform_key == "ord-1/b/perform"
    assert found.results == {"a": "of a", "b": "of b"}
    world.wait(60).succeeds("b")
    assert stored_step(world.record("a")).complete_by == world.now + 240 * SECOND
    assert request(world, "a").complete_by == world.now + (1 + PATIENCE) * 240 * SECOND


def test_the_time_of_an_undo_is_not_bounded_by_the_tasks() -> None:
    a = step("a", compensation=FENCED)
    made = plan(a, step("b", a), on_failure=Undo(), complete_within=timedelta(seconds=31))
    world = World(made)
    world.start()
    world.wait(30).succeeds("a")
    world.is_refused("b")
    assert (
        stored_step(world.record("a")).complete_by
        == world.now + 30 * SECOND
        > world.task.complete_by
    )
    assert request(world, "a").complete_by == world.now + (1 + PATIENCE) * 30 * SECOND
    before = world.task
    assert world.wait(15).inspect().task is before  # the task's time passes, and undo goes on
    world.fails("a")
    assert world.state("a") is ProcessState.UNDOING
    world.wait(HOUR := 3_600).start()
    world.wait(1).succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    assert world.now > world.task.complete_by + (HOUR - 60) * SECOND


# --- how an undo ends -----------------------------------------------------------------------------


def test_an_undone_task_says_so_to_its_application_and_is_removed_after_its_retention() -> None:
    world = undoing()
    decision = world.succeeds("a")
    assert decision.reason == "a: undone"
    assert [row.kind for row in decision.history] == ["undone"]
    assert world.owed() == ["received", "started", "undone"]
    world.wait(5).deliver_owed()
    assert world.task.lane == DONE_LANE
    assert world.task.expires_at == world.now + world.task.retain_for


def test_an_undone_task_says_which_steps_nothing_could_undo() -> None:
    world = undoing()
    world.succeeds("a")
    why = "b: failed for good: CardDeclined: insufficient funds; without compensation: b"
    assert world.task.ending is not None
    assert world.task.ending.why == world.task.owed[-1].detail == why


def test_an_undo_has_its_own_attempts_and_backoff() -> None:
    retry = Retry(max_attempts=2, first_delay=timedelta(seconds=8))
    world = undoing(Compensation(fences_late_performs=True, retry=retry))
    decision = world.fails("a")
    assert world.record("a").failure_count == 1
    assert world.record("a").not_before == world.now + 4 * SECOND
    assert decision.reason.startswith("a (undo): attempt 1 of 2 failed: Unavailable: 503")
    assert world.task_state() is TaskState.UNDOING
    world.wait(4).start()
    assert request(world, "a").attempt == 2
    assert request(world, "a").idempotency_key == "ord-1/a/undo"
    world.fails("a")
    assert world.state("a") is ProcessState.UNDO_ERROR


@pytest.mark.parametrize(
    "fail",
    [
        lambda world: world.is_refused("a"),
        lambda world: world.fails("a"),
        lambda world: world.overdue("a"),
        lambda world: world.reply("a", Outcome.TRANSIENT, error=StepError("Never", "x")),
    ],
)
def test_an_undo_that_fails_for_good_is_a_persons_matter(fail: object) -> None:
    assert callable(fail)
    retry = Retry(max_attempts=1, not_on=("Never",))
    world = undoing(Compensation(fences_late_performs=True, retry=retry))
    fail(world)
    assert world.state("a") is ProcessState.UNDO_ERROR
    assert world.task_state() is TaskState.ARCHIVED
    assert world.owed()[-2:] == ["task_archived", "failed"]
    assert "undo failed" in [row.kind for row in history(world)]


def history(world: World) -> list[HistoryRow]:
    return [row for _, _, decision in world.decisions for row in decision.history]


def test_the_other_compensations_go_on_after_one_has_failed() -> None:
    a = step("a", compensation=FENCED)
    b = step("b", a, compensation=FENCED)
    world = of(a, b, step("c", b))
    world.succeeds("a")
    world.succeeds("b")
    world.is_refused("c")
    assert requests_in(world.is_refused("b")) == ["a"]
    assert world.task_state() is TaskState.UNDOING
    world.succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED


def test_a_late_answer_to_the_perform_changes_nothing_while_the_step_is_undone() -> None:
    world = of(step("a", compensation=UNFENCED))
    lock, key = world.lock("a"), "ord-1/a/perform"
    world.fails("a")
    world.ask_undo()
    for outcome in Outcome:
        before = world.task
        decision = world.reply("a", outcome, operation="perform", lock=lock, key=key)
        assert decision.task is before
        assert decision.reason == f"a: {outcome} reply ignored: the step is being undone"
    world.wait(40).start()
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    before = world.task
    assert world.reply("a", Outcome.SUCCEEDED, operation="perform", key=key).task is before


def test_a_success_of_an_earlier_attempt_to_undo_is_taken() -> None:
    world = undoing(Compensation(fences_late_performs=True, retry=Retry(max_attempts=2)))
    first = world.lock("a")
    world.overdue("a")
    world.start()
    world.succeeds("a", lock=first)
    assert world.task_state() is TaskState.UNDONE


def test_a_redelivered_message_sends_the_undo_that_it_claimed_itself() -> None:
    a = step("a", compensation=FENCED)
    world = of(a, step("b", a))
    world.succeeds("a")
    lock, message = world.lock("b"), world.claimant()
    error = StepError("Declined", "")
    world.reply("b", Outcome.PERMANENT, error=error, claimant=message)
    again = world.reply("b", Outcome.PERMANENT, error=error, claimant=message, lock=lock)
    assert requests_in(again) == ["a"]
