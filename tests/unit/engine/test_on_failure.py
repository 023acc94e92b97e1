"""A task that fails takes no step forward, watches what is under way, and then ends."""

from dataclasses import replace

from roundsman.definition.workflow import Archive, Retry, Undo
from roundsman.engine.due import due
from roundsman.model.events import AgentView
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_checks import ARCHIVED, DONE_LANE, OPEN
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.steps import stored_step

ONCE = Retry(max_attempts=1)


def ending() -> World:
    """A fails for good while B is Processing and C waits for A."""
    a, b = step("a", on_failure=Archive()), step("b")
    world = begun(a, b, step("c", b))
    world.is_refused("a")
    return world


def test_a_failure_beside_a_step_under_way_leaves_the_task_open_and_watched() -> None:
    world = ending()
    assert world.task_state() is TaskState.ACTIVE
    assert world.task.ending is not None
    assert world.task.lane == OPEN
    assert due(world.task, world.now) == stored_step(world.record("b")).complete_by
    assert world.owed() == ["received", "started"]


def test_the_step_under_way_may_still_succeed_but_nothing_follows_it() -> None:
    world = ending()
    decision = world.succeeds("b", "done")
    assert requests_in(decision) == []
    assert world.record("b").result == "done"
    assert world.state("c") is ProcessState.PENDING
    assert world.task_state() is TaskState.ARCHIVED
    assert world.owed()[-2:] == ["task_archived", "failed"]
    assert world.task.owed[-1].detail == "a: failed for good: CardDeclined: insufficient funds"


def test_the_step_under_way_is_not_retried_when_it_fails() -> None:
    for fails in (World.fails, World.is_refused):
        world = ending()
        decision = fails(world, "b")
        assert decision.actions == ()
        assert world.state("b") is ProcessState.ERROR
        assert world.task_state() is TaskState.ARCHIVED


def test_the_step_under_way_is_given_up_when_its_time_is_over() -> None:
    world = ending()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 - 1)}  # read or not
    before = world.task
    assert world.inspect().task is before
    decision = world.overdue("b")
    assert decision.actions == ()
    assert world.state("b") is ProcessState.ERROR
    assert world.record("b").failure_count == 1
    assert world.task_state() is TaskState.ARCHIVED


def test_a_step_that_waited_is_not_tried_again() -> None:
    a, b, c = step("a"), step("b"), step("c")
    world = begun(a, b, c)
    world.fails("b")
    world.is_refused("a")
    assert requests_in(world.wait(60).start()) == []
    before = world.task
    decision = world.wait(-40).inspect()
    assert decision.task is before
    assert decision.actions == ()
    world.succeeds("c")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("b") is ProcessState.PENDING


def test_the_first_failure_holds() -> None:
    a, b = step("a", on_failure=Archive()), step("b", on_failure=Undo(), retry=ONCE)
    world = begun(a, b)
    world.is_refused("a")
    first = world.task.ending
    decision = world.fails("b")
    assert world.task.ending == first
    assert world.task.owed[-1].detail == first.why if first else ""
    assert decision.history[0].step == "b"


def test_a_redelivered_message_sends_its_own_request_even_if_the_task_fails_meanwhile() -> None:
    """Its claim stands, and a request that was never sent would have to be waited for."""
    world = World(plan(step("a"), step("b")))
    message = world.claimant()
    world.start(message)
    world.is_refused("a")
    assert requests_in(world.start(message)) == ["b"]


def test_an_end_is_reported_once() -> None:
    world = ending()
    world.succeeds("b")
    before = world.task
    for decision in (world.start(), world.inspect(), world.succeeds("b"), world.fails("a")):
        assert decision.task is before
        assert decision.actions == ()
    assert world.owed().count("failed") == 1


def test_a_completed_task_leaves_its_open_lane_only_when_nothing_is_owed() -> None:
    world = begun(step("a"))
    world.succeeds("a")
    assert (world.task.state, world.task.lane) == (TaskState.COMPLETED, OPEN)
    world.wait(7).deliver_owed()
    assert world.task.lane == DONE_LANE
    assert world.task.due_at == T0  # listed by when it ended
    assert world.task.expires_at == world.now + world.task.retain_for


def test_an_archived_task_never_expires() -> None:
    world = ending()
    world.succeeds("b")
    world.deliver_owed()
    assert (world.task.lane, world.task.due_at, world.task.expires_at) == (ARCHIVED, T0, None)


def test_a_task_that_owes_nothing_leaves_its_open_lane_by_the_decision_that_ends_it() -> None:
    world = World(plan(step("a")))
    world.deliver_owed()
    world.start()
    world.deliver_owed()
    assert world.task.lane == OPEN
    world.task = replace(world.task, reply_to=None)
    world.succeeds("a")
    assert world.task.lane == DONE_LANE


def test_the_alert_is_owed_even_where_nobody_asked_for_statuses() -> None:
    world = ending()
    world.task = replace(world.task, reply_to=None, owed=())
    world.fails("b")
    assert [(owed.kind, owed.name) for owed in world.task.owed] == [("alert", "task_archived")]


def test_a_late_success_of_a_step_that_is_not_under_way_is_not_taken_any_more() -> None:
    """Whatever it did is compensated, or looked at by a person, as of unknown outcome."""
    world = begun(step("a"), step("b"), step("c"))
    first = world.lock("a")
    world.fails("a", retry_after=60_000)
    world.is_refused("b")
    before = world.task
    decision = world.succeeds("a", lock=first)
    assert decision.task is before
    assert decision.reason == "a: succeeded reply ignored: no attempt is under way"
