"""The contents of an ended task are erased; that it was, and how it ended, stays."""

from dataclasses import fields, replace

import pytest

from roundsman.engine.history import keeps_reason
from roundsman.engine.transitions import (
    ERASED_TASKS,
    MayBecome,
    Refusal,
    Stay,
    TaskEvent,
    task_transition,
)
from roundsman.model.corrections import Change
from roundsman.model.events import CommandSource, Erase
from roundsman.model.instants import DAY, iso
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, Owed, StepError, Task, Termination
from tests.support.erased_stories import ENDED, completed, erased
from tests.support.machine_world import T0, World
from tests.support.operator_stories import refusal
from tests.support.steps import step_record
from tests.unit.engine.test_transitions import events

SECRET = "A. Reader"
FULL_STEP = step_record(
    process_state=ProcessState.UNDONE,
    complete_by=T0 + 1,
    failure_count=2,
    started_at=T0 + 2,
    finished_at=T0 + 3,
    result={"name": SECRET},
    error=StepError("CardDeclined", f"the card of {SECRET} is declined", unexpected=True),
    agent="backup",
    round=2,
    acts_until=T0 + 4,
    outcome_unknown=True,
    heard_at=T0 + 5,
    tried=("worker",),
    effect=Effect.STANDS,
    corrections=1,
)
FULL = Task(
    task_id="ord-1",
    workflow="story",
    plan="p" * 64,
    state=TaskState.UNDONE,
    version=9,
    created_at=T0,
    start_at=T0,
    complete_by=T0 + DAY,
    retain_for=7 * DAY,
    shard=3,
    lane="done#3",
    due_at=T0 + 6,
    steps={"a": FULL_STEP, "a[0]": step_record(process_state=ProcessState.SKIPPED)},
    ending=Termination(
        TaskState.UNDONE, f"declined for {SECRET}", "a", True, StepError("CardDeclined", SECRET)
    ),
    ended_at=T0 + 6,
    expires_at=T0 + 7 * DAY,
    priority="urgent",
    tenant="shop-1",
    reply_to="queue",
    correlation_id="web-7",
    command_ids=("c-0",),
    fan_outs={"a": 1},
    corrections=((Change(("name",), SECRET),),),
    used_rounds={"gone": 1},
    order_expires=True,
    failure="f-1a2b3c4d",
    limit="its key",
    ended_early=f"ended early by a: {SECRET}",
)


def of(task: Task) -> World:
    world = completed()
    world.task, world.now = task, T0 + DAY
    return world


def test_what_comes_from_the_order_is_removed_and_the_rest_stays_as_it_was() -> None:
    world = of(FULL)
    decision = world.apply(Erase(CommandSource("c-1", "ann", "request 17")))
    left = {one.name: getattr(world.task, one.name) for one in fields(Task)}
    step = replace(
        FULL_STEP, result=None, error=StepError("CardDeclined", "(erased)", unexpected=True)
    )
    assert left == {
        **{one.name: getattr(FULL, one.name) for one in fields(Task)},
        "version": 10,
        "steps": {"a": step, "a[0]": FULL.steps["a[0]"]},
        "ending": Termination(
            TaskState.UNDONE, "(erased)", "a", True, StepError("CardDeclined", "(erased)")
        ),
        "corrections": (),
        "limit": None,
        "ended_early": "(erased)",
        "erased_at": T0 + DAY,
        "erased_by": "ann: request 17",
        "command_ids": ("c-0", "c-1"),
    }
    assert SECRET not in repr(world.task)
    assert decision.actions == ()


def test_a_task_that_no_step_has_ended_early_is_not_said_to_be() -> None:
    world = of(replace(FULL, ended_early=None))
    world.apply(Erase(CommandSource("c-1", "ann", "request 17")))
    assert world.task.ended_early is None


def test_the_history_says_who_erased_it_and_why() -> None:
    world = of(FULL)
    (row,) = world.apply(
        Erase(CommandSource("c-1", "ann", "request 17", sender="AIDA:ann"))
    ).history
    assert (row.kind, row.step, row.attempt) == ("erase", None, None)
    assert (row.by, row.command_id, row.sender) == ("ann", "c-1", "AIDA:ann")
    assert row.reason == "erase by ann: request 17"
    assert keeps_reason(row.kind)
    assert not keeps_reason("failed")


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize("stored", [True, False])
def test_a_task_that_has_ended_is_erased_and_keeps_its_state(
    state: TaskState, stored: bool
) -> None:
    world = ENDED[state]()
    world.stored_plan = stored
    before = world.task
    erased(world)
    assert world.task_state() is state
    assert world.task.version == before.version + 1
    assert (world.task.lane, world.task.due_at, world.task.expires_at) == (
        before.lane,
        before.due_at,
        before.expires_at,
    )
    assert {name: one.process_state for name, one in world.task.steps.items()} == {
        name: one.process_state for name, one in before.steps.items()
    }
    assert all(one.result is None for one in world.task.steps.values())


def test_a_task_that_owes_a_status_is_erased_after_it_is_sent() -> None:
    world = completed()
    owes = (Owed("status", "completed", 3, T0, ""), Owed("alert", "task_archived", 3, T0, ""))
    world.task = replace(world.task, owed=owes)
    assert refusal(world, world.erase) == (
        "the task still owes the status completed, the alert task_archived: "
        "erase it after that is sent"
    )
    world.task = replace(world.task, owed=())
    world.erase()
    assert world.task.erased_at == world.now


def test_it_is_erased_on_the_version_that_the_sender_saw() -> None:
    world = completed()
    seen = world.task.version
    late = Erase(CommandSource("c-1", "ann", seen_version=seen - 1))
    assert "the task has changed since it was read" in refusal(world, lambda: world.apply(late))


def test_the_same_command_that_comes_again_changes_nothing() -> None:
    world = completed()
    event = Erase(CommandSource("c-1", "ann"))
    world.apply(event)
    before = world.task
    assert world.apply(event).task is before


def test_another_erasure_says_that_it_was_erased_before_and_changes_nothing_else() -> None:
    world = erased(completed())
    before = world.task
    decision = world.wait(60).apply(Erase(CommandSource("c-2", "bob", "again")))
    assert before.erased_at is not None
    assert [row.reason for row in decision.history] == [
        f"erase by bob: again; it was already erased on {iso(before.erased_at)} by ann: request 17"
    ]
    assert world.task == replace(
        before, version=before.version + 1, command_ids=(*before.command_ids, "c-2")
    )


@pytest.mark.parametrize("state", ENDED)
@pytest.mark.parametrize("event", sorted(set(TaskEvent) - {TaskEvent.ERASE}))
def test_nothing_else_changes_an_erased_task(state: TaskState, event: TaskEvent) -> None:
    world = erased(ENDED[state]())
    before = world.task
    entry = ERASED_TASKS[event]
    if isinstance(entry, Refusal):
        assert refusal(world, lambda: world.apply(events(world)[event])) == (
            "the contents of the order were erased, so the task cannot be changed any more"
        )
        return
    decision = world.apply(events(world)[event])
    assert decision.task is before
    assert entry == Stay("the contents of the order were erased") == Stay(decision.reason)


def test_a_late_success_of_a_failed_step_is_not_recorded_after_the_erasure() -> None:
    world = erased(ENDED[TaskState.CANCELLED]())
    before = world.task
    world.succeeds("b", {"name": SECRET}, lock="an-earlier.1.1")
    assert world.task is before


def test_an_erased_task_has_an_answer_to_every_event() -> None:
    assert set(ERASED_TASKS) == set(TaskEvent)
    assert task_transition(TaskState.COMPLETED, TaskEvent.ERASE, erased=True) == MayBecome(
        frozenset()
    )
