"""What the test kit judges of a step whose result was left out, when its attempt or task ends."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Retry, Undo
from roundsman.model.events import Decision, Outcome, Replied
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepToAdd, Task
from roundsman.wire.messages import Reply
from roundsman_testing import Invariant
from roundsman_testing.invariants.attempts import Attempts
from tests.support.left_out_stories import NOT_JSON
from tests.support.machine_world import World, begun, step
from tests.support.steps import changed_step

WRONG = StepToAdd("other[a]")


def broken_by(
    world: World, act: Callable[[], Decision], alter: Callable[[Task], Task] = lambda task: task
) -> set[Invariant]:
    """What the rules of attempts find in this decision of the world, once it is altered."""
    attempts, before = Attempts(), world.task
    after = act().task
    for _, event, _ in world.decisions:
        if isinstance(event, Replied):
            attempts.replied(reply_of(before.task_id, event, world.now))
    found = attempts.of_change(world.plan, before, alter(after), world.now)
    return {one.invariant for one in found}


def reply_of(task_id: str, event: Replied, now: int) -> Reply:
    return Reply(
        task_id=task_id,
        step=event.step,
        operation=event.operation,
        lock=event.lock,
        idempotency_key=event.key,
        outcome=event.outcome,
        agent="worker",
        finished_at=now,
        error=event.error,
        effect=event.effect,
        then=event.then,
    )


def at_its_last_attempt() -> World:
    """No other attempt ends before the service may forget its key."""
    a = step("a", key_lifetime=timedelta(minutes=5))
    world = begun(a, step("b", "a"), on_failure=Undo())
    world.fails("a", retry_after=240 * SECOND)
    world.wait_until(world.record("a").not_before).start()
    return world.wait(28)


def with_other_steps_left_out(task: Task) -> Task:
    record = task.step("a")
    assert record.left_out is not None
    left_out = replace(record.left_out, lacks_steps=False)
    return replace(task, steps={**task.steps, "a": changed_step(record, left_out=left_out)})


def test_the_last_attempt_counts_as_failed_whose_steps_cannot_be_added() -> None:
    world = at_its_last_attempt()
    assert broken_by(world, lambda: world.adds("a", WRONG)) == set()
    assert world.state("a") is ProcessState.PROCESSED


def test_a_success_that_lacks_no_steps_does_not_count_as_failed() -> None:
    world = at_its_last_attempt()
    assert Invariant.COUNTED in broken_by(
        world, lambda: world.adds("a", WRONG), with_other_steps_left_out
    )


def retried_for_its_result() -> World:
    """The last attempt of `a` is under way at the deadline; an earlier one has taken effect."""
    a = step("a", retry=Retry(max_attempts=2))
    world = begun(a, on_failure=Undo(), deadline=timedelta(hours=1))
    world.reply("a", Outcome.TRANSIENT, error=NOT_JSON, effect=Effect.STANDS)
    world.wait_until(world.record("a").not_before).start()
    world.wait_until(world.task.deadline)
    return world


def to_be_undone(task: Task) -> Task:
    assert task.ending is not None
    return replace(task, ending=replace(task.ending, undo=True, how=TaskState.UNDONE))


def without_a_mark(task: Task) -> Task:
    steps = {name: changed_step(one, left_out=None) for name, one in task.steps.items()}
    return replace(task, steps=steps)


def test_a_task_is_archived_whose_step_is_done_without_its_result_at_the_deadline() -> None:
    world = retried_for_its_result()
    assert broken_by(world, world.inspect) == set()
    assert world.task_state() is TaskState.ARCHIVED
    assert (world.state("a"), world.record("a").lacks_result) == (ProcessState.PROCESSED, False)


@pytest.mark.parametrize("alter", [to_be_undone, without_a_mark])
def test_it_is_not_undone_and_no_other_task_is_archived(alter: Callable[[Task], Task]) -> None:
    world = retried_for_its_result()
    assert Invariant.AS_PLANNED in broken_by(world, world.inspect, alter)
