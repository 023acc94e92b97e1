"""The timer: what is overdue, what was never read, what nobody started, and what is not yet due."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo, Wait
from roundsman.engine.due import START_WITHIN, due
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import AgentView, StartTask, attempt_of
from roundsman.model.priority import Priority
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.steps import stored_step

a = step("a")
b = step("b", a)


def started() -> World:
    return begun(a, b)


def test_nothing_that_is_still_in_time_is_touched() -> None:
    world = started()
    before = world.task
    decision = world.wait(29.999).inspect()
    assert decision.task is before
    assert decision.actions == ()
    assert decision.reason == "nothing is due"


def test_an_overdue_step_below_the_threshold_is_requeued_and_counted() -> None:
    world = started()
    decision = world.wait(42).inspect()
    record = world.record("a")
    assert world.task_state() is TaskState.PENDING
    assert record.process_state is ProcessState.PENDING
    assert (record.locked_by, record.failure_count, record.not_before) == (None, 1, None)
    assert stored_step(record).complete_by == world.now + START_WITHIN
    assert record.error == StepError("Overdue", "no answer in time; 12 s late when seen")
    assert decision.actions == (StartTask(),)
    assert decision.reason == "a: attempt 1 of 3 overdue by 12 s; retried at 2027-01-15T08:00:42Z"
    assert decision.history[0].kind == "requeued"


@pytest.mark.parametrize(
    ("strategy", "end"),
    [
        (Archive(), TaskState.ARCHIVED),
        (Undo(), TaskState.UNDONE),  # nothing has a compensation
        (None, TaskState.ARCHIVED),
    ],
)
def test_an_overdue_step_at_the_threshold_is_given_up(
    strategy: Archive | Undo | None, end: TaskState
) -> None:
    world = begun(step("a", retry=Retry(max_attempts=2), on_failure=strategy))
    world.overdue("a")
    world.start()
    decision = world.overdue("a")
    assert world.state("a") is ProcessState.ERROR
    assert world.record("a").failure_count == 2
    assert world.task_state() is end
    assert decision.reason == "a: attempt 2 of 2 overdue by 0 ms"
    assert decision.actions == ()


def test_an_overdue_step_at_the_threshold_waits_where_its_plan_says_so() -> None:
    strategy = Wait(timedelta(minutes=5), times=1, then=Archive())
    world = begun(step("a", retry=Retry(max_attempts=1), on_failure=strategy))
    decision = world.overdue("a")
    assert world.task_state() is TaskState.RETRY
    assert world.record("a").not_before == world.now + 300_000
    assert (
        decision.reason
        == "a: attempt 1 of 2 overdue by 0 ms; waits; retried at 2027-01-15T08:05:30Z"
    )


def test_a_request_that_its_agent_never_read_is_sent_again_without_counting() -> None:
    world = started()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
    for _ in range(5):
        decision = world.overdue("a")
        assert world.record("a").failure_count == 0
        assert "never read; sent again, no attempt counted" in decision.reason
        world.start()
    assert stored_step(world.record("a")).complete_by == world.now + 30_000
    world.agents = {"worker/normal": AgentView(read_up_to=world.now)}
    world.overdue("a")
    assert world.record("a").failure_count == 1


def test_only_the_mark_of_the_tasks_own_queue_says_that_a_request_was_not_read() -> None:
    world = begun(a, priority=Priority.URGENT)
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
    world.overdue("a")
    assert world.record("a").failure_count == 1


def test_requests_that_are_never_read_do_not_outlive_the_task() -> None:
    world = started()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}
    while world.task.state not in (TaskState.ARCHIVED, TaskState.COMPLETED):
        world.overdue("a")
        world.start()
    assert world.task_state() is TaskState.ARCHIVED
    assert world.now == world.task.complete_by


def test_a_step_that_nobody_started_is_started_again_and_costs_no_attempt() -> None:
    world = started()
    world.overdue("a")
    for _ in range(3):  # the Start was lost each time
        decision = world.overdue("a")
        assert decision.actions == (StartTask(),)
        assert decision.reason == "a: was not started in time; started again"
        assert decision.history == ()
        assert world.record("a").failure_count == 1
    world.start()
    assert attempt_of(world.lock("a")) == 2


def test_a_task_that_nobody_started_is_started_again_without_a_write() -> None:
    world = World(plan(a))
    before = world.task
    decision = world.wait(30).inspect()
    assert decision.task is before
    assert decision.actions == (StartTask(),)
    assert due(world.task, world.now) == world.now + START_WITHIN


def test_a_timer_before_the_next_attempt_is_due_leaves_it_waiting() -> None:
    world = started()
    world.fails("a")
    before = world.task
    assert world.wait(0.499).inspect().task is before
    assert world.wait(0.001).inspect().reason == "a: its next attempt is due"


def test_no_step_should_be_started_by_an_instant_after_the_tasks_end() -> None:
    world = begun(a, complete_within=timedelta(seconds=40))
    world.overdue("a")
    assert stored_step(world.record("a")).complete_by == T0 + 40_000
    waiting = begun(a, complete_within=timedelta(seconds=40))
    waiting.wait(29).fails("a", retry_after=10_000)
    assert stored_step(waiting.record("a")).complete_by == T0 + 40_000


def test_a_task_that_is_not_complete_in_time_is_archived_with_all_that_was_under_way() -> None:
    world = begun(
        a, step("c", complete_within=timedelta(seconds=50)), complete_within=timedelta(minutes=1)
    )
    world.wait(40).inspect()
    world.start()
    decision = world.wait(20).inspect()
    assert world.task_state() is TaskState.ARCHIVED
    assert decision.reason.startswith(
        "the task was not complete by 2027-01-15T08:01:00Z (0 ms ago)"
    )
    assert [row.step for row in decision.history] == [None, "a", "c"]
    assert decision.history[0].kind == "failed"
    assert world.task.ending is not None
    assert world.task.ending.step is None


def test_a_task_that_is_not_complete_in_time_is_undone_where_its_plan_says_so() -> None:
    world = begun(a, on_failure=Undo(), complete_within=timedelta(seconds=30))
    world.overdue("a")
    assert world.task_state() is TaskState.UNDONE
    assert world.owed()[-1] == "undone"
    why = "the task was not complete by 2027-01-15T08:00:30Z (0 ms ago); without compensation: a"
    assert world.task.owed[-1].detail == why


def test_a_task_whose_plan_is_not_stored_is_archived_with_that_reason() -> None:
    world = World(plan(a), stored_plan=False)
    decision = world.start()
    assert world.task_state() is TaskState.ARCHIVED
    assert decision.reason == f"its plan {world.plan.hash[:12]} is not stored"
    assert [row.reason for row in decision.history] == [decision.reason]
    scheduled = World(plan(a), ProcessingOptions(start_at=T0 + 1), stored_plan=False)
    scheduled.inspect()
    assert scheduled.task_state() is TaskState.ARCHIVED


def test_a_task_whose_plan_is_not_stored_waits_for_what_is_under_way() -> None:
    world = started()
    world.stored_plan = False
    world.inspect()
    assert world.task_state() is TaskState.ACTIVE
    before = world.task
    assert world.inspect().task is before
    world.overdue("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.record("a").failure_count == 1


def test_a_timer_looks_at_every_step_in_one_decision() -> None:
    world = begun(step("a"), step("b"), step("c", complete_within=timedelta(minutes=2)))
    world.fails("b")
    world.wait(30).inspect()
    assert world.record("a").failure_count == 1
    assert world.state("b") is ProcessState.PENDING
    assert world.record("b").not_before is None
    assert world.state("c") is ProcessState.PROCESSING
    assert requests_in(world.start()) == ["a", "b"]


def test_a_ready_step_of_a_task_that_is_ending_is_not_made_ready_again() -> None:
    world = begun(step("a", complete_within=timedelta(minutes=10)), step("b"))
    world.fails("b", retry_after=1_000)
    world.wait_until(world.record("b").not_before).inspect()
    before = world.record("b")
    assert before.claim_by == world.now + 30_000
    world.cancel(undo=False)
    world.wait(60).inspect()
    assert world.record("b") == before
