"""The first record of a task."""

from datetime import timedelta

from roundsman.engine.due import START_WITHIN, shard_of
from roundsman.engine.new_task import ProcessingOptions, new_task
from roundsman.model.priority import Priority
from roundsman.model.states import TaskState
from roundsman.model.task import Owed, Task
from tests.support.machine_world import REPLY_TO, T0, plan, step

orders = plan(
    step("a"),
    complete_within=timedelta(hours=2),
    retain_for=timedelta(days=7),
    priority=Priority.URGENT,
)


def born(options: ProcessingOptions | None = None) -> Task:
    return new_task(orders, "ord-1", options or ProcessingOptions(), T0, shards=16)


def test_without_wishes_the_plan_decides() -> None:
    task = born()
    assert (task.task_id, task.workflow, task.plan) == ("ord-1", "story", orders.hash)
    assert (task.state, task.version) == (TaskState.PENDING, 1)
    assert (task.created_at, task.start_at) == (T0, T0)
    assert task.complete_by == T0 + 7_200_000
    assert task.retain_for == 7 * 86_400_000
    assert task.priority == "urgent"
    assert (task.steps, task.owed, task.ending, task.ended_at) == ({}, (), None, None)


def test_a_new_task_is_in_the_open_lane_of_its_shard_and_due_soon() -> None:
    task = born()
    assert task.shard == shard_of("ord-1", 16)
    assert task.lane == f"open#{task.shard}"
    assert task.due_at == T0 + START_WITHIN
    assert task.expires_at is None


def test_wishes_win_over_the_plan_zero_included() -> None:
    task = born(
        ProcessingOptions(
            complete_within=1_000, retain_for=0, priority="normal", tenant="t", correlation_id="c"
        )
    )
    assert task.complete_by == T0 + 1_000
    assert task.retain_for == 0
    assert (task.priority, task.tenant, task.correlation_id) == ("normal", "t", "c")


def test_a_task_for_later_is_scheduled_and_its_time_counts_from_then() -> None:
    task = born(ProcessingOptions(start_at=T0 + 5_000))
    assert task.state is TaskState.SCHEDULED
    assert (task.start_at, task.due_at) == (T0 + 5_000, T0 + 5_000)
    assert task.complete_by == T0 + 5_000 + 7_200_000


def test_a_start_in_the_past_means_now() -> None:
    for start_at in (0, T0 - 1, T0):
        task = born(ProcessingOptions(start_at=start_at))
        assert (task.state, task.start_at) == (TaskState.PENDING, T0)


def test_received_is_owed_to_who_asked_for_statuses() -> None:
    task = born(ProcessingOptions(reply_to=REPLY_TO, start_at=T0 + 3_600_000))
    assert task.owed == (Owed("status", "received", 1, T0, ""),)
    assert task.due_at == T0 + START_WITHIN
