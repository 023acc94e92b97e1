"""A Start that nobody answers is asked for in growing intervals, and not again while it waits."""

import pytest

from roundsman.definition.workflow import Compensation, Undo
from roundsman.engine.due import LONG_START_INTERVAL, START_WITHIN, start_interval
from roundsman.engine.machine import SENT_AGAIN_EVERY
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Decision, StartTask
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.scheduler_queues import SchedulerQueues
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_world import T0, World, begun, plan, step
from tests.support.steps import stored_step

a = step("a")
WAITS = "its start waits in the scheduler's queue"


def asks(decision: Decision) -> bool:
    return StartTask() in decision.actions


def look(world: World, at: int, *, commands_wait: bool = True) -> Decision:
    world.now = at
    world.queues = SchedulerQueues(commands_wait=commands_wait)
    return world.inspect()


def ready() -> World:
    """A step whose first attempt was not answered, and that is to be claimed until T0 + 60 s."""
    world = begun(a)
    return world.wait(30)


def test_the_time_for_a_start_is_half_a_minute_and_after_two_minutes_it_is_five() -> None:
    late = [0, 1, 30, 119, 120, 3_600]
    intervals = [30, 30, 30, 30, 300, 300]
    assert [start_interval(each * SECOND) for each in late] == [n * SECOND for n in intervals]
    assert (START_WITHIN, LONG_START_INTERVAL) == (30 * SECOND, 5 * MINUTE)


# --- A step that is ready ------------------------------------------------------------------------


def test_a_start_that_was_never_sent_is_sent_whatever_waits() -> None:
    world = ready()
    decision = look(world, world.now)
    assert (world.state("a"), world.record("a").late_since) == (ProcessState.PENDING, None)
    assert asks(decision)


def test_it_is_looked_at_in_growing_intervals_from_when_it_was_first_seen_late() -> None:
    world = ready()
    look(world, world.now, commands_wait=False)
    intervals = list[int]()
    for _ in range(8):
        at = stored_step(world.record("a")).complete_by
        assert at is not None
        decision = look(world, at, commands_wait=False)
        assert asks(decision), "nothing waits, so it was lost"
        assert decision.reason == "a: was not started in time; started again"
        by = stored_step(world.record("a")).complete_by
        assert by is not None
        intervals.append((by - at) // SECOND)
        assert world.record("a").late_since == T0 + 60 * SECOND
    assert intervals == [30, 30, 30, 30, 300, 300, 300, 300]


def test_it_is_not_sent_again_while_commands_wait() -> None:
    world = ready()
    look(world, world.now)
    decision = look(world, T0 + 60 * SECOND)
    assert not asks(decision)
    assert decision.reason == f"a: was not started in time; {WAITS}"
    assert world.record("a").late_since == T0 + 60 * SECOND


@pytest.mark.parametrize("pass_takes", [0, 4])
def test_it_is_sent_again_each_hour_since_it_may_be_lost_as_well(pass_takes: int) -> None:
    world, at = ready(), T0 + 60 * SECOND
    look(world, world.now)
    sent = list[int]()
    while at < T0 + 190 * MINUTE:
        if asks(look(world, at)):
            sent.append((at - T0 - 60 * SECOND) // MINUTE)
        due = stored_step(world.record("a")).complete_by
        assert due is not None
        at = due + pass_takes * MINUTE
    assert {minutes // 60 for minutes in sent} == {1, 2, 3}
    assert len(sent) <= 6
    assert all(minutes % 60 < 10 for minutes in sent)


def test_a_claim_ends_the_lateness() -> None:
    world = ready()
    look(world, world.now)
    look(world, T0 + 60 * SECOND)
    world.start()
    assert world.record("a").late_since is None


def test_a_start_is_sent_if_one_of_the_steps_was_never_started() -> None:
    world = begun(a, step("b", complete_within=a.complete_within * 2))
    look(world, T0 + 30 * SECOND)
    assert asks(look(world, T0 + 60 * SECOND)), "b is late only now"
    assert world.record("a").late_since is not None
    assert not asks(look(world, T0 + 90 * SECOND)), "both are"


def test_an_undo_is_not_started_again_either() -> None:
    world = begun(step("a", compensation=Compensation()), step("b", "a"), on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    due = world.record("a").not_before
    assert due is not None
    assert asks(look(world, due)), "it is due only now"
    first = stored_step(world.record("a")).complete_by
    assert first is not None
    decision = look(world, first)
    assert world.record("a").late_since == first
    assert not asks(decision)
    assert asks(look(world, first + 30 * SECOND, commands_wait=False))


# --- A task of which nothing has begun ---------------------------------------------------------


def test_the_start_of_a_new_task_counts_as_sent_half_a_minute_after_its_time() -> None:
    assert asks(look(World(plan(a)), T0 + START_WITHIN))
    decision = look(World(plan(a)), T0 + START_WITHIN + 1)
    assert not asks(decision)
    assert decision.reason == WAITS
    assert asks(look(World(plan(a)), T0 + START_WITHIN + 1, commands_wait=False))


@pytest.mark.parametrize("hours", [1, 2])
def test_the_start_of_a_new_task_is_sent_again_each_hour(hours: int) -> None:
    at = T0 + hours * SENT_AGAIN_EVERY
    assert SENT_AGAIN_EVERY == 60 * MINUTE
    assert not asks(look(World(plan(a)), at - 1))
    assert asks(look(World(plan(a)), at))
    assert asks(look(World(plan(a)), at + 2 * LONG_START_INTERVAL - 1))
    assert not asks(look(World(plan(a)), at + 2 * LONG_START_INTERVAL))


def test_the_start_of_a_scheduled_task_was_not_sent_before_its_time() -> None:
    world = World(plan(a), ProcessingOptions(start_at=T0 + 60 * MINUTE))
    assert asks(look(world, T0 + 61 * MINUTE))
    assert world.task_state() is TaskState.PENDING
    assert not asks(look(world, T0 + 62 * MINUTE)), "now it was"


# --- A reminder --------------------------------------------------------------------------------


def test_the_start_for_a_reminder_is_not_sent_again_while_commands_wait() -> None:
    world = begun(a)
    world.waits_for_callback("a", 3_000, remind_every=600)
    at = T0 + 600 * SECOND
    assert asks(look(world, at, commands_wait=False))
    decision = look(world, at + SECOND)
    assert not asks(decision)
    assert decision.reason == f"a: its reminder is due; {WAITS}"


def test_a_reminder_does_not_stand_in_for_a_step_that_was_never_started() -> None:
    world = begun(a, step("b"))
    world.waits_for_callback("a", 3_000, remind_every=30)
    decision = look(world, T0 + 30 * SECOND)
    assert world.state("b") is ProcessState.PENDING
    assert asks(decision)


def test_a_task_of_which_nothing_is_ready_asks_for_no_start() -> None:
    world = begun(a)
    assert not asks(look(world, T0 + SECOND))
    assert not asks(look(world, T0 + SECOND, commands_wait=False))
