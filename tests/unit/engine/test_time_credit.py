"""A task gets back the time in which nobody could attempt it, once, whatever the causes."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Compensation, Undo
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.time_credit import credit, credit_holds
from roundsman.model.events import AgentView, Inspect, Outcome
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.queue_lag import PROMPT
from roundsman.model.scheduler_queues import QueueView, SchedulerQueues
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, Termination
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record, stored_step

a = step("a")
BY = T0 + 60 * MINUTE


def builder(
    credited_until: int | None = None, steps: Mapping[str, StepRecord] | None = None
) -> DecisionBuilder:
    task = World(plan(a)).task
    task = replace(task, credited_until=credited_until, steps=dict(steps or {}))
    return DecisionBuilder(task, T0 + MINUTE)


def given(task: Task) -> tuple[int, int | None]:
    return task.complete_by - BY, task.credited_until


# --- The ledger --------------------------------------------------------------------------------


def test_the_complete_by_moves_by_the_time_that_is_given_back() -> None:
    decision = builder()
    credit(decision, T0 + 10, T0 + 15)
    assert given(decision.task) == (5, T0 + 15)


def test_a_period_of_no_length_changes_nothing() -> None:
    decision = builder()
    before = decision.task
    credit(decision, T0, T0)
    assert decision.task is before


def test_no_time_is_given_back_twice() -> None:
    decision = builder()
    credit(decision, T0 + 10, T0 + 15)
    credit(decision, T0 + 10, T0 + 15)
    assert given(decision.task) == (5, T0 + 15)
    credit(decision, T0 + 12, T0 + 18)
    assert given(decision.task) == (8, T0 + 18)
    credit(decision, T0 + 12, T0 + 17)
    assert given(decision.task) == (8, T0 + 18)
    credit(decision, T0 + 20, T0 + 21)
    assert given(decision.task) == (9, T0 + 21)


def test_a_task_that_is_ending_gets_no_time() -> None:
    decision = builder()
    decision.ending = Termination(TaskState.ARCHIVED, "failed")
    credit(decision, T0, T0 + MINUTE)
    assert given(decision.task) == (0, None)


def test_the_time_of_a_hold_is_given_back_since_the_first_step_was_parked() -> None:
    decision = builder()
    credit_holds(decision)
    assert given(decision.task) == (0, None)
    held = {
        "a": step_record(held_since=T0 + 20, complete_by=T0),
        "b": step_record(held_since=T0 + 10, complete_by=T0),
        "c": StepRecord(),
    }
    decision = builder(steps=held)
    credit_holds(decision)
    assert given(decision.task) == (MINUTE - 10, T0 + MINUTE)


# --- Messages that waited ----------------------------------------------------------------------


def test_the_time_counts_for_which_a_start_has_waited_that_starts_something() -> None:
    world = World(plan(a))
    world.wait(90).start(world.claimant(T0 + 30 * SECOND))
    assert given(world.task) == (60 * SECOND, T0 + 90 * SECOND)
    world.wait(90).start(world.claimant(T0 + 90 * SECOND))
    assert given(world.task) == (60 * SECOND, T0 + 90 * SECOND), "nothing was ready"


@pytest.mark.parametrize("waited", [None, 0, PROMPT])
def test_a_start_that_came_at_once_gives_nothing(waited: int | None) -> None:
    world = World(plan(a)).wait(90)
    world.start(world.claimant(None if waited is None else world.now - waited))
    assert given(world.task) == (0, None)
    more = World(plan(a)).wait(90)
    more.start(more.claimant(more.now - PROMPT - 1))
    assert given(more.task) == (PROMPT + 1, more.now)


def test_a_start_before_a_tasks_time_gives_nothing() -> None:
    world = World(plan(a), ProcessingOptions(start_at=T0 + 60 * MINUTE))
    before = world.task
    world.wait(90).start(world.claimant(T0))
    assert world.task is before


def test_a_task_whose_start_waited_until_after_its_complete_by_is_performed() -> None:
    world = World(plan(a, complete_within=timedelta(seconds=40)))
    world.wait(90).start(world.claimant(T0))
    assert world.state("a") is ProcessState.PROCESSING
    world.wait(20).succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_the_time_counts_for_which_a_reply_has_waited_that_counts() -> None:
    world = World(plan(a, step("b", "a")))
    world.start()
    world.wait(90).succeeds("a", claimant=world.claimant(T0 + 30 * SECOND))
    assert given(world.task) == (60 * SECOND, T0 + 90 * SECOND)


def test_a_failure_that_waited_until_after_the_complete_by_is_tried_again() -> None:
    world = World(plan(a, complete_within=timedelta(seconds=40)))
    world.start()
    world.wait(90).reply("a", Outcome.TRANSIENT, claimant=world.claimant(T0 + 10 * SECOND))
    assert world.task.ending is None
    assert world.record("a").failure_count == 1


def test_a_reply_that_counts_for_nothing_gives_nothing() -> None:
    world = World(plan(a))
    world.start()
    world.wait(90)
    world.reply("a", Outcome.TRANSIENT, lock="another", claimant=world.claimant(T0))
    assert given(world.task) == (0, None)


SHORT = timedelta(seconds=40)


def test_a_message_that_waited_until_after_the_complete_by_does_not_end_the_task() -> None:
    started = World(plan(a, complete_within=SHORT))
    started.start()
    started.wait(90).start(started.claimant(T0 + 10 * SECOND))
    assert started.task.ending is None, "a is at its agent, so nothing is ready"
    ignored = World(plan(a, complete_within=SHORT))
    ignored.start()
    waited = ignored.claimant(T0 + 10 * SECOND)
    ignored.wait(90).reply("a", Outcome.TRANSIENT, lock="another", claimant=waited)
    assert ignored.task.ending is None


def test_replies_that_waited_at_the_same_time_give_it_once() -> None:
    world = World(plan(a, step("b"), step("c", "a", "b")))
    world.start()
    world.wait(60).succeeds("a", claimant=world.claimant(T0 + 10 * SECOND))
    world.wait(30).succeeds("b", claimant=world.claimant(T0 + 20 * SECOND))
    assert given(world.task) == (80 * SECOND, T0 + 90 * SECOND)


def test_a_reply_to_a_task_that_is_ending_gives_nothing() -> None:
    world = World(plan(a, step("b")))
    world.start()
    world.is_refused("b")
    by = world.task.complete_by
    world.wait(90).succeeds("a", claimant=world.claimant(T0))
    assert world.task.complete_by == by


# --- Queues of agents, extensions and holds ----------------------------------------------------


def test_the_time_counts_for_which_a_request_waits_in_its_queue() -> None:
    world = World(plan(step("a", compensation=Compensation(fences_late_performs=True))))
    world.start()
    view = AgentView(lag=40 * SECOND, reads=T0 - 10 * SECOND, read_up_to=T0)
    world.agents = {"worker/normal": view}
    world.overdue("a")
    until, now = stored_step(world.record("a")).complete_by, world.now
    assert until is not None
    assert until > now
    assert given(world.task) == (until - now, until)


def undone_on_its_way(*, lag: int = 0) -> World:
    """A step that is undone to begin at another agent; nobody has claimed its undo yet."""
    made = step("a", agents=("worker", "other"), compensation=Compensation())
    world = World(plan(made))
    world.start()
    while world.state("a") is not ProcessState.UNDOING:
        world.fails("a")
        if world.state("a") is ProcessState.PENDING:
            world.wait_until(world.record("a").not_before or world.now).start()
    world.agents = {"worker/normal": AgentView(lag=lag, read_up_to=T0)}
    assert (world.record("a").locked_by, world.task.ending) == (None, None)
    return world


def test_an_undo_that_is_expected_to_wait_gives_a_task_that_goes_on_nothing() -> None:
    world = undone_on_its_way(lag=MINUTE)
    by = world.task.complete_by
    world.wait(60).start()
    assert world.record("a").locked_by is not None
    assert world.task.complete_by == by


def test_all_causes_give_the_same_time_once() -> None:
    world = World(plan(a, step("b", agent="other"), step("c", agent="third")))
    world.hold("other", 60)
    world.wait(30).start(world.claimant(T0))  # the Start waited for 30 s
    assert given(world.task) == (30 * SECOND, world.now), "and then b is parked"
    world.wait(30)
    world.queues = SchedulerQueues({"worker": QueueView(looked_at=world.now)})
    world.inspect()  # a is late meanwhile
    assert world.record("a").late_since == T0 + 60 * SECOND
    until = T0 + 62 * SECOND
    assert given(world.task) == (until - T0, until), "until a is checked again"
    world.succeeds("c", claimant=world.claimant(T0 + 31 * SECOND))
    assert given(world.task) == (until - T0, until)


# --- A task of which nothing has begun -----------------------------------------------------------


def test_a_task_of_which_nothing_has_begun_does_not_fail_at_its_complete_by() -> None:
    world = World(plan(a)).wait_until(BY)
    world.inspect()
    assert world.task_state() is TaskState.PENDING
    assert given(world.task) == (65 * MINUTE, BY + 5 * MINUTE), "and it has all its time left"
    world.wait_until(BY + 5 * MINUTE)
    world.inspect()
    assert given(world.task) == (65 * MINUTE, BY + 5 * MINUTE), "its new complete-by is far"
    world.start(world.claimant(T0))
    assert world.state("a") is ProcessState.PROCESSING


def test_before_its_complete_by_such_a_task_gets_nothing() -> None:
    world = World(plan(a)).wait_until(BY - 1)
    world.inspect()
    assert given(world.task) == (0, None)


@pytest.mark.parametrize(("late", "interval"), [(40, 30), (120, 300)])
def test_a_short_task_of_which_nothing_has_begun_does_not_fail_before_the_next_look(
    late: int, interval: int
) -> None:
    world = World(plan(a, complete_within=timedelta(seconds=30)))
    world.wait(late).inspect()
    until = T0 + (late + interval) * SECOND
    assert (world.task.credited_until, world.task.complete_by) == (until, until + 30 * SECOND)


def test_a_task_of_which_something_has_begun_fails_at_its_complete_by() -> None:
    world = World(plan(a, step("b", "a"), on_failure=Undo()))
    world.start()
    world.succeeds("a")
    world.wait_until(BY).apply(Inspect())
    assert world.task.ending is not None


# --- A step that nobody starts -------------------------------------------------------------------


def ready() -> World:
    """A step whose first attempt was not answered, and that is to be claimed until T0 + 61 s."""
    world = World(plan(a))
    world.start()
    world.wait(31).inspect()
    assert stored_step(world.record("a")).complete_by == T0 + 61 * SECOND
    return world


def test_a_step_that_is_not_started_in_time_gives_its_task_the_time() -> None:
    world = ready().wait_until(T0 + 70 * SECOND)
    world.inspect()
    assert given(world.task) == (9 * SECOND, T0 + 70 * SECOND)
    world.wait_until(T0 + 100 * SECOND).inspect()
    assert given(world.task) == (39 * SECOND, T0 + 100 * SECOND)
    assert stored_step(world.record("a")).complete_by == T0 + 130 * SECOND


def test_a_task_does_not_fail_between_two_looks_at_a_step_that_is_late() -> None:
    world = ready().wait_until(T0 + 70 * SECOND)
    world.inspect()
    world.task = replace(world.task, complete_by=T0 + 80 * SECOND)
    world.wait_until(T0 + 80 * SECOND).inspect()
    assert world.task.ending is None
    assert world.task.credited_until == T0 + 110 * SECOND


def test_a_task_does_not_fail_before_the_first_look_at_a_step_that_is_late() -> None:
    world = ready()
    world.task = replace(world.task, complete_by=T0 + 80 * SECOND)
    world.wait_until(T0 + 80 * SECOND).inspect()
    assert world.task.ending is None


def test_the_step_that_has_been_late_for_the_longest_says_how_much_time_is_given() -> None:
    world = World(plan(a, step("b")))
    steps = {
        "a": step_record(complete_by=T0 + 200 * SECOND, late_since=T0 + 60 * SECOND),
        "b": step_record(complete_by=T0 + 200 * SECOND),
    }
    world.task = replace(world.task, steps=steps, complete_by=T0 + 240 * SECOND)
    world.wait_until(T0 + 240 * SECOND).inspect()
    assert world.task.credited_until == T0 + 540 * SECOND
    assert world.task.complete_by == T0 + 720 * SECOND


def test_a_step_that_waits_for_another_one_gives_nothing() -> None:
    world = World(plan(a, step("b", "a")))
    world.start()
    steps = {**world.task.steps, "b": step_record(complete_by=T0 + 20 * SECOND)}
    world.task = replace(world.task, steps=steps)
    world.wait(25).inspect()
    assert world.record("b").late_since == world.now
    assert given(world.task) == (0, None)


def test_an_undo_that_is_not_started_in_time_gives_nothing() -> None:
    world = undone_on_its_way()
    by = world.task.complete_by
    world.wait_until(world.record("a").not_before).inspect()
    world.wait_until(stored_step(world.record("a")).complete_by).inspect()
    assert world.record("a").late_since == world.now
    world.wait_until(stored_step(world.record("a")).complete_by).inspect()
    assert world.task.complete_by == by


def test_an_undo_whose_request_waits_in_its_queue_gives_a_task_that_goes_on_nothing() -> None:
    world = undone_on_its_way()
    world.wait_until(world.record("a").not_before).start()
    by, until = world.task.complete_by, stored_step(world.record("a")).complete_by
    assert until is not None
    view = AgentView(lag=40 * SECOND, reads=world.now - 10 * SECOND, read_up_to=world.now)
    world.agents = {"worker/normal": view}
    world.wait_until(until).inspect()
    assert (stored_step(world.record("a")).complete_by or 0) > world.now, "it is extended"
    assert world.task.complete_by == by
