"""Failing attempts: backoff, what is never retried, exhaustion, and what the strategy says."""

from datetime import timedelta

import pytest

from roundsman.definition.plan import RetryPlan
from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Strategy, Undo, Wait
from roundsman.engine.retries import retry_delay
from roundsman.model.events import InspectAt, Outcome, StartTask, attempt_of
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.machine_world import T0, World, plan, requests_in, step

PATIENT = Retry(max_attempts=5, first_delay=timedelta(seconds=2), not_on=("CardDeclined",))


def started(found: Step | None = None, jitter: float = 0.5) -> World:
    world = World(plan(found or step("a", retry=PATIENT)), jitter=jitter)
    world.start()
    return world


@pytest.mark.parametrize(
    ("failures", "jitter", "expected"),
    [
        (1, 0.0, 0),
        (1, 0.999, 1_998),
        (2, 0.999, 3_996),
        (3, 0.5, 4_000),
        (8, 0.999, 255_744),
        (9, 0.999, 299_700),  # the cap of 300 s, not 512 s
        (1_000_000, 0.999, 299_700),
    ],
)
def test_the_wait_doubles_to_its_cap_and_is_drawn_from_the_whole_range(
    failures: int, jitter: float, expected: int
) -> None:
    assert retry_delay(RetryPlan(5, 2_000, 300_000, ()), failures, jitter) == expected


def test_a_transient_failure_waits_and_is_tried_again() -> None:
    world = started()
    decision = world.fails("a")
    record = world.record("a")
    assert world.task_state() is TaskState.RETRY
    assert record.process_state is ProcessState.PENDING
    assert (record.locked_by, record.failure_count) == (None, 1)
    assert record.not_before == T0 + 1_000
    assert record.error == StepError("Unavailable", "503")
    assert decision.actions == (InspectAt(T0 + 1_000),)
    assert (
        decision.reason
        == "a: attempt 1 of 5 failed: Unavailable: 503; retried at 2027-01-15T08:00:01Z"
    )
    row = decision.history[0]
    assert (row.kind, row.step, row.attempt, row.at) == ("failed", "a", 1, T0)
    assert world.start().task is decision.task  # not before its time
    timer = world.wait(1).inspect()
    assert timer.actions == (StartTask(),)
    assert timer.task.state is TaskState.PENDING
    assert requests_in(world.start()) == ["a"]
    assert attempt_of(world.lock("a")) == 2


def test_with_no_jitter_at_all_the_next_attempt_is_claimed_at_once() -> None:
    world = started(jitter=0.0)
    decision = world.fails("a")
    assert requests_in(decision) == ["a"]
    assert world.task_state() is TaskState.ACTIVE
    assert world.record("a").failure_count == 1


def test_with_the_most_jitter_the_wait_is_nearly_the_whole_range() -> None:
    world = started(jitter=0.999)
    world.fails("a")
    assert world.record("a").not_before == T0 + 1_998


def test_the_wait_that_a_remote_service_asked_for_is_kept() -> None:
    world = started()
    decision = world.fails("a", retry_after=90_000)
    assert world.record("a").not_before == T0 + 90_000
    assert decision.actions == (InspectAt(T0 + 90_000),)
    assert requests_in(started().fails("a", retry_after=0)) == ["a"]


@pytest.mark.parametrize("asked", [3_600_000, 10**15, 10**30])
def test_a_wait_beyond_the_tasks_end_is_cut_to_it(asked: int) -> None:
    world = started()
    decision = world.fails("a", retry_after=asked)
    assert world.record("a").not_before == world.task.complete_by
    if asked > 3_600_000:
        assert (
            "no attempt fits before the task must be complete at 2027-01-15T09:00:00Z"
            in decision.reason
        )
    world.wait_until(world.task.complete_by).inspect()
    assert world.task_state() is TaskState.ARCHIVED


def test_an_error_that_the_plan_never_retries_is_for_good_whatever_the_agent_says() -> None:
    world = started()
    error = StepError("CardDeclined", "funds")
    decision = world.reply("a", Outcome.TRANSIENT, error=error)
    assert world.state("a") is ProcessState.ERROR
    assert world.task_state() is TaskState.ARCHIVED
    assert decision.reason == "a: failed for good: CardDeclined: funds"


def test_the_longest_type_that_a_plan_may_name_is_found_in_its_list() -> None:
    longest = "E" * 100
    world = started(step("a", retry=Retry(not_on=(longest,))))
    world.reply("a", Outcome.TRANSIENT, error=StepError(longest, "x" * 5_000))
    assert world.task_state() is TaskState.ARCHIVED


def test_a_permanent_failure_is_not_retried_and_counts_no_failure() -> None:
    world = started()
    decision = world.is_refused("a")
    record = world.record("a")
    assert (record.process_state, record.failure_count) == (ProcessState.ERROR, 0)
    assert (record.locked_by, record.finished_at) == (None, T0)
    assert world.task_state() is TaskState.ARCHIVED
    assert decision.history[0].attempt == 1
    assert decision.actions == ()


def test_an_agent_that_gives_no_reason_is_quoted_as_that() -> None:
    world = started()
    decision = world.reply("a", Outcome.PERMANENT)
    assert "Unknown: the agent gave no reason" in decision.reason


def test_the_last_attempt_archives_the_task() -> None:
    world = started(step("a", retry=Retry(max_attempts=3)))
    for _ in range(2):
        world.fails("a")
        world.wait(10).start()
    decision = world.fails("a")
    assert world.state("a") is ProcessState.ERROR
    assert world.record("a").failure_count == 3
    assert world.task_state() is TaskState.ARCHIVED
    assert decision.reason == "a: attempt 3 of 3 failed: Unavailable: 503"
    assert world.owed() == ["received", "started", "task_archived", "failed"]
    assert world.task.owed[-1].detail == decision.reason


@pytest.mark.parametrize(
    ("strategy", "end"),
    [
        (Undo(), TaskState.UNDONE),
        (Archive(), TaskState.ARCHIVED),
        (Wait(timedelta(seconds=9), 1), TaskState.UNDONE),
        (Wait(timedelta(seconds=9), 1, then=Archive()), TaskState.ARCHIVED),
    ],
)
def test_a_permanent_failure_ends_as_the_step_says(strategy: Strategy, end: TaskState) -> None:
    world = started(step("a", on_failure=strategy))
    decision = world.is_refused("a")
    assert world.task_state() is end
    assert decision.reason == "a: failed for good: CardDeclined: insufficient funds"
    assert world.task.ending is not None
    assert world.task.ending.step == "a"


def test_after_the_point_of_no_return_nothing_is_undone() -> None:
    paid = step("paid", compensation=Compensation())
    sent = step("sent", paid, on_failure=Undo())
    world = World(plan(paid, sent, on_failure=Undo(), point_of_no_return=paid))
    world.start()
    world.succeeds("paid")
    world.is_refused("sent")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("paid") is ProcessState.PROCESSED
    before = World(plan(paid, sent, on_failure=Undo(), point_of_no_return=paid))
    before.start()
    before.is_refused("paid")
    assert before.task_state() is TaskState.UNDOING


def test_a_wait_tries_once_more_each_time_and_then_does_what_comes_after_it() -> None:
    strategy = Wait(timedelta(minutes=10), times=2, then=Undo())
    world = started(step("a", retry=Retry(max_attempts=2), on_failure=strategy))
    world.fails("a")
    world.wait(10).start()
    for attempt in (2, 3):
        decision = world.fails("a")
        assert world.task_state() is TaskState.RETRY
        assert world.record("a").not_before == world.now + 600_000
        assert f"a: attempt {attempt} of 4 failed" in decision.reason
        assert decision.history[0].kind == "waits"
        before = world.task
        assert world.wait(599).start().task is before
        world.wait(1).start()
    decision = world.fails("a")
    assert world.task_state() is TaskState.UNDONE
    assert decision.reason == "a: attempt 4 of 4 failed: Unavailable: 503"


def test_a_transient_failure_after_the_tasks_time_is_not_retried() -> None:
    world = World(plan(step("a"), step("c"), complete_within=timedelta(seconds=60)))
    world.start()
    decision = world.wait(61).fails("a")
    assert world.state("a") is ProcessState.ERROR
    assert decision.actions == ()
    assert "retried" not in decision.reason
    assert world.task.ending is not None
    assert "the task was not complete by 2027-01-15T08:01:00Z (1 s ago)" in world.task.ending.why


def test_a_success_after_the_tasks_time_completes_it_where_it_is_the_last() -> None:
    world = World(plan(step("a"), complete_within=timedelta(seconds=60)))
    world.start()
    world.wait(61).succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_a_success_after_the_tasks_time_starts_nothing_more() -> None:
    a = step("a")
    world = World(plan(a, step("b", a), complete_within=timedelta(seconds=60), on_failure=Undo()))
    world.start()
    decision = world.wait(61).succeeds("a")
    assert requests_in(decision) == []
    assert world.task_state() is TaskState.UNDONE
