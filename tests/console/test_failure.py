"""What failed in an order, on an undone one too: found in its ending, its records and history."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.model.events import Outcome
from roundsman.model.states import TaskState
from roundsman.model.task import StepError, Task, Termination
from roundsman_console.facts.order.failure import (
    OrderFailure,
    failed_attempts,
    failures,
    rows_by_step,
)
from roundsman_console.facts.order.order_facts import OrderFacts
from tests.support.large_orders import FENCED, REFUSED, facts_of, fan_of, history_of, loop_of
from tests.support.machine_world import T0, World, plan, step

DECLINED = StepError("CardDeclined", "insufficient funds")


def found(world: World) -> list[OrderFailure]:
    return failures(facts_of(world))


def undone() -> World:
    """`b` was refused at its second attempt; both steps are undone since."""
    world = World(
        plan(step("a", compensation=FENCED), step("b", "a", compensation=FENCED), on_failure=Undo())
    )
    world.start()
    world.succeeds("a")
    world.now += 1_000
    world.fails("b")
    world.now += 1_000
    world.inspect()
    world.start()
    world.now += 500
    world.is_refused("b")
    for name in ("b", "a"):
        world.start()
        world.now += 100
        world.succeeds(name)
    assert world.task.state is TaskState.UNDONE
    return world


def test_an_undone_order_still_has_its_failure_though_no_record_has_an_error() -> None:
    world = undone()
    assert [one.error for one in world.task.steps.values()] == [None, None]
    [failure] = found(world)
    assert (failure.steps, failure.error) == (("b",), DECLINED)
    assert (failure.undo, failure.tried_again) == (False, False)
    assert (failure.attempts, failure.most, failure.attempts_left) == (2, 3, True)
    assert (failure.first_at, failure.last_at) == (T0 + 1_000, T0 + 2_500)
    assert failure.agents == ("worker",)


def test_an_attempt_that_failed_for_good_is_counted() -> None:
    world = World(plan(step("a")))
    world.start()
    world.is_refused("a")
    record = world.task.step("a")
    assert record.failure_count == 0, "the record does not count it"
    assert failed_attempts(record, rows_by_step(history_of(world))["a"]) == 1
    assert failed_attempts(record, ()) == 0, "without its history it is not known"


def test_the_last_attempt_is_not_counted_twice() -> None:
    world = World(plan(step("a")))
    world.start()
    for place in range(3):
        world.fails("a")
        if place < 2:
            world.now += 60_000
            world.inspect()
            world.start()
    [failure] = found(world)
    assert (failure.attempts, failure.most, failure.attempts_left) == (3, 3, False)


def test_a_step_that_is_tried_again_is_shown_until_it_succeeds() -> None:
    world = World(plan(step("a")))
    world.start()
    world.fails("a")
    [failure] = found(world)
    assert (failure.tried_again, failure.attempts) == (True, 1)
    assert failure.error.type == "Unavailable"
    world.now += 60_000
    world.inspect()
    world.start()
    assert [one.tried_again for one in found(world)] == [True], "also while the next one goes on"
    world.succeeds("a")
    assert found(world) == []


def test_nothing_has_failed_once_the_order_was_resubmitted() -> None:
    world = undone()
    world.resubmit(again=True)
    assert found(world) == []
    world.start()
    world.succeeds("a")
    world.now += 700
    world.is_refused("b")
    [failure] = found(world)
    assert failure.attempts == 1, "those of the first try do not count"
    assert failure.first_at == world.now


def test_a_failed_undo_comes_before_the_failure_that_it_was_for() -> None:
    world = World(plan(step("a", compensation=FENCED), step("b", "a"), on_failure=Undo()))
    world.start()
    world.succeeds("a")
    world.is_refused("b")
    world.start()
    world.is_refused("a")
    assert [(one.undo, one.steps) for one in found(world)] == [(True, ("a",)), (False, ("b",))]


def test_a_step_whose_undo_failed_too_has_both_failures_each_with_its_attempts() -> None:
    retry = Retry(max_attempts=2)
    undo = Compensation(fences_late_performs=True, retry=retry)
    world = World(plan(step("a", compensation=undo), on_failure=Undo()))
    world.start()
    world.is_refused("a")
    for place in range(2):
        world.start()
        world.now += 100
        world.fails("a")
        if place == 0:
            [cause, again] = found(world)
            assert (cause.undo, cause.tried_again, cause.attempts) == (False, False, 1)
            assert (again.undo, again.tried_again, again.attempts) == (True, True, 1)
            assert again.most == 2
        world.now += 60_000
        world.inspect()
    [undo_failed, cause] = found(world)
    assert (undo_failed.undo, undo_failed.attempts) == (True, 2)
    assert undo_failed.error.type == "Unavailable"
    assert (cause.undo, cause.attempts, cause.error) == (False, 1, DECLINED)


def test_of_steps_side_by_side_each_that_was_refused_is_found_after_the_undo() -> None:
    sides = [step(name, compensation=FENCED) for name in ("x", "y", "z")]
    world = World(plan(*sides, on_failure=Undo()))
    world.start()
    world.reply("y", Outcome.PERMANENT, error=DECLINED)
    world.reply("x", Outcome.PERMANENT, error=REFUSED)
    world.succeeds("z")
    for name in ("x", "y", "z"):
        world.start()
        world.succeeds(name)
    assert world.task.state is TaskState.UNDONE
    cause, other = found(world)
    assert (cause.steps, cause.error) == (("y",), DECLINED), "the cause of the undo comes first"
    assert other.steps == ("x",)
    assert other.error.type == ""
    assert other.error.message.startswith("x: failed for good: OutOfStock: ")


def test_items_that_failed_alike_are_one_failure() -> None:
    order = fan_of(10, done=3, failed=4)
    [failure] = failures(order.facts())
    assert failure.steps == ("pick[3]", "pick[4]", "pick[5]", "pick[6]")
    assert failure.error == REFUSED.cut()
    assert failure.first_at is not None
    assert failure.last_at == failure.first_at + 150


def test_a_step_that_waits_for_its_held_agent_has_not_failed() -> None:
    world = World(plan(step("a"))).hold("worker", 60)
    world.start()
    assert world.task.step("a").error is not None
    assert found(world) == []


def test_a_step_that_was_never_sent_has_failed_without_an_attempt() -> None:
    world = World(plan(step("a", for_each="input.lines")), order={"lines": "none"})
    world.start()
    [failure] = found(world)
    assert (failure.steps, failure.attempts, failure.attempts_left) == (("a",), 0, True)


@pytest.mark.parametrize("named", [None, "a"])
def test_an_order_that_failed_as_a_whole_says_so_and_one_that_a_person_ended_does_not(
    named: str | None,
) -> None:
    late = StepError("TooLate", "not complete by its complete-by")
    made = plan(step("a"))
    task: Task = World(made).task
    ended = replace(
        task,
        state=TaskState.ARCHIVED,
        ended_at=T0 + 5,
        ending=Termination(TaskState.ARCHIVED, "too late", named, error=late),
    )
    [failure] = failures(OrderFacts(ended, made, at=T0))
    assert failure.steps == (() if named is None else (named,))
    assert failure.error == late
    cancelled = replace(ended, ending=Termination(TaskState.CANCELLED, "cancelled by ann", named))
    assert failures(OrderFacts(cancelled, made, at=T0)) == []


def test_without_its_history_an_undone_order_has_no_failure() -> None:
    order = loop_of(3, undone=True)
    assert failures(replace(order.facts(), history=())) == []
