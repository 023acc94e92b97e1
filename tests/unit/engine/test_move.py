"""An open task goes on under a newer plan, unless what was sent or has ended would differ."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.errors import Refused
from roundsman.model.events import Outcome
from roundsman.model.instants import SECOND
from roundsman.model.priority import Priority
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, StepError
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.move_stories import parked

A = step("a")
B = step("b", "a")
C = step("c", "b")
C_AFTER_BOTH = step("c", "a", "x")
LONGER = Retry(max_attempts=9)


def at_its_second_step() -> World:
    world = begun(A, B, C)
    world.succeeds("a")
    assert world.state("b") is ProcessState.PROCESSING
    return world


def refused(world: World, under: object) -> str:
    before = world.task
    with pytest.raises(Refused) as problem:
        world.move(under)  # type: ignore[arg-type]  # a plan
    assert world.task is before
    return str(problem.value).partition(": ")[2]


def test_the_attempt_under_way_goes_on_and_what_follows_is_of_the_new_plan() -> None:
    world = at_its_second_step()
    lock = world.lock("b")
    newer = plan(A, replace(B, retry=LONGER), replace(C, agent="other"), step("d", "c"))
    decision = world.move(newer)
    assert requests_in(decision) == []
    assert (world.lock("b"), world.task.plan) == (lock, newer.hash)
    assert requests_in(world.succeeds("b")) == ["c"]
    world.succeeds("c")
    world.succeeds("d")
    assert world.task_state() is TaskState.COMPLETED


def test_the_task_has_as_much_more_time_as_the_new_plan_has() -> None:
    world = at_its_second_step()
    by = world.task.complete_by
    world.move(plan(A, B, C, complete_within=timedelta(hours=3)))
    assert world.task.complete_by == by + 2 * 3600 * SECOND


def test_a_step_that_was_not_sent_may_be_another_or_gone() -> None:
    world = at_its_second_step()
    world.move(plan(A, B, step("z", "b", compensation=Compensation())))
    assert requests_in(world.succeeds("b")) == ["z"]


def test_a_step_that_waits_is_retried_as_the_new_plan_says() -> None:
    world = begun(replace(A, retry=Retry(max_attempts=2)))
    world.fails("a", retry_after=60 * SECOND)
    world.move(plan(replace(A, retry=LONGER)))
    world.wait(61).start()
    world.fails("a", retry_after=60 * SECOND)
    assert world.task_state() is TaskState.RETRY


def test_a_step_that_waits_and_is_gone_or_has_to_wait_for_others_waits_no_more() -> None:
    world = begun(A, step("x"))
    world.succeeds("a")
    world.fails("x", retry_after=60 * SECOND)
    assert refused(world, plan(A)) == "x was sent to its agent, and that plan does not have it"
    new = step("new")
    assert refused(world, plan(A, new, step("x", "new"))) == (
        "x was sent to its agent, but in that plan it comes after other steps"
    )


@pytest.mark.parametrize(
    ("newer", "why"),
    [
        (plan(replace(A, agent="other"), B, C), "a is done, but in that plan its first agent is"),
        (plan(step("b"), C), "a is done, and that plan does not have it"),
        (plan(A, step("c", "a")), "b was sent to its agent, and that plan does not have it"),
        (plan(A, replace(B, reads=("total",)), C), "b was sent to its agent, but in that plan"),
        (
            plan(A, step("new"), replace(B, after=("a", "new")), C),
            "b was sent to its agent, but in that plan it comes after other steps",
        ),
    ],
)
def test_a_step_that_was_sent_or_has_ended_must_be_the_same(newer: object, why: str) -> None:
    assert refused(at_its_second_step(), newer).startswith(why)


def test_a_task_that_has_nothing_left_to_do_is_completed() -> None:
    world = parked()
    assert world.task_state() is TaskState.RETRY
    world.move(plan(A))
    assert world.task_state() is TaskState.COMPLETED


def test_a_task_that_waits_for_its_start_begins_under_the_new_plan() -> None:
    world = World(plan(A), ProcessingOptions(start_at=T0 + 600 * SECOND))
    newer = plan(step("first"), step("second", "first"))
    world.move(newer)
    assert world.task_state() is TaskState.SCHEDULED
    assert requests_in(world.wait(600).start()) == ["first"]


def test_the_same_plan_an_ending_task_and_an_ended_one_are_refused() -> None:
    world = at_its_second_step()
    with pytest.raises(Refused, match="has this plan already"):
        world.move(plan(A, B, C))
    newer = plan(A, B, C, retain_for=timedelta(days=1))
    ending = begun(A, step("x"), on_failure=Archive())
    ending.is_refused("a")
    with pytest.raises(Refused, match="the task is ending"):
        ending.move(newer)
    ending.succeeds("x")
    with pytest.raises(Refused, match="goes on under another plan when it is resubmitted"):
        ending.move(newer)


def test_the_history_names_both_plans() -> None:
    world = at_its_second_step()
    newer = plan(A, B, C, retain_for=timedelta(days=1))
    row = world.move(newer).history[-1]
    assert row.kind == "move"
    assert newer.hash[:12] in row.reason


def test_a_step_that_goes_on_at_its_next_agent_needs_one_in_the_new_plan() -> None:
    a = step(
        "a",
        agents=("worker", "other"),
        compensation=Compensation(fences_late_performs=True),
        next_agent_on=("Full",),
    )
    world = begun(a)
    world.reply("a", Outcome.PERMANENT, error=StepError("Full", "no place is left"))
    assert world.record("a").after_undo is AfterUndo.NEXT_AGENT
    alone = step("a", compensation=Compensation(fences_late_performs=True))
    assert refused(world, plan(alone)) == (
        "a goes on at its next agent after its undo, but in that plan it has none"
    )
    three = replace(a, agents=("worker", "other", "third"))
    world.move(plan(three))
    assert requests_in(world.succeeds("a")) == ["a"]


def test_the_end_of_a_wait_does_not_become_the_end_of_a_request() -> None:
    long = step("a", compensation=Compensation(), complete_within=timedelta(minutes=10))
    two_months = timedelta(days=60)
    world = begun(long, B, complete_within=two_months, on_failure=Undo())
    acts_until = world.record("a").until
    world.waits_for_callback("a", 30 * 24 * 3600)
    world.move(plan(long, B, C, complete_within=two_months, on_failure=Undo()))
    world.wait(3 * 3600).reply("a", Outcome.SUCCEEDED, callback=True)
    assert (world.record("a").acts_until or 0) <= (acts_until or 0)
    assert requests_in(world.is_refused("b")) == ["a"], "its undo does not wait for a month"


def test_a_plan_under_which_its_time_would_be_over_is_refused() -> None:
    world = at_its_second_step()
    by = world.task.perform_by
    world.wait_until(by - 600 * SECOND)
    shorter = plan(A, B, C, complete_within=timedelta(milliseconds=by - T0) / 2)
    with pytest.raises(Refused, match="its time would be over: extend the task first"):
        world.move(shorter)
    world.extend(24 * 3600)
    world.move(shorter)
    assert world.task.ending is None


def test_the_priority_changes_only_if_nothing_is_under_way() -> None:
    urgent = plan(A, B, C, priority=Priority.URGENT)
    world = at_its_second_step()
    world.move(urgent)
    assert world.task.priority == Priority.NORMAL
    waiting = parked()
    waiting.move(plan(A, step("later", "a", agent="slow"), priority=Priority.URGENT))
    assert waiting.task.priority == Priority.URGENT


def test_a_task_that_is_due_to_start_may_be_moved_before_it_is_started() -> None:
    world = World(plan(A), ProcessingOptions(start_at=T0 + 600 * SECOND))
    world.wait(601).move(plan(A, B))
    assert world.task_state() is TaskState.PENDING


FENCED = Compensation(fences_late_performs=True)
TWO = ("worker", "other")


def test_a_request_that_was_sent_ends_by_the_old_plan() -> None:
    world = begun(step("a", compensation=FENCED))
    old_end = world.record("a").until
    assert old_end is not None
    world.move(plan(step("a", agents=TWO, compensation=FENCED)))
    assert world.record("a").acts_until == old_end + PATIENCE * 30 * SECOND


def test_a_step_that_waits_is_claimed_before_the_time_of_the_new_plan_is_over() -> None:
    world = begun(A, B)
    world.fails("a", retry_after=3600 * SECOND)
    world.move(plan(A, B, complete_within=timedelta(minutes=30)))
    assert world.record("a").claim_by == world.task.perform_by < T0 + 3600 * SECOND


def test_a_plan_under_which_its_time_is_over_at_this_instant_is_refused() -> None:
    world = at_its_second_step()
    shorter = plan(A, B, C, complete_within=timedelta(minutes=30))
    world.wait_until(world.task.perform_by - 30 * 60 * SECOND)
    with pytest.raises(Refused, match="its time would be over"):
        world.move(shorter)


def test_a_step_that_left_an_agent_may_not_come_after_others_before_it_is_sent_again() -> None:
    a = step("a", agents=TWO, compensation=FENCED, next_agent_on=("Full",))
    world = begun(a)
    world.reply("a", Outcome.PERMANENT, error=StepError("Full", "no place is left"))
    world.hold("other", 600).succeeds("a")
    assert (world.record("a").started_at, world.record("a").tried) == (None, ("worker",))
    assert refused(world, plan(step("new"), replace(a, after=("new",)))) == (
        "a was sent to its agent, but in that plan it comes after other steps"
    )


def test_a_step_of_a_new_round_that_was_not_sent_may_come_after_others() -> None:
    world = begun(step("a", compensation=FENCED), B, on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    world.succeeds("a")
    world.resubmit(again=True)
    assert world.record("a").round == 2
    world.move(plan(step("new"), step("a", "new", compensation=FENCED), B, on_failure=Undo()))
    assert requests_in(world.start()) == ["new"]


def test_a_step_that_is_done_may_come_after_others_that_are_done() -> None:
    world = begun(A, step("x"), C_AFTER_BOTH)
    world.succeeds("a")
    world.succeeds("x")
    world.move(plan(A, step("x", "a"), C_AFTER_BOTH))
    world.succeeds("c")
    assert world.task_state() is TaskState.COMPLETED
