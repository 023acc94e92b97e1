"""Starting: what is claimed, by whom, until when, and what a repeated message does."""

from dataclasses import replace
from datetime import timedelta

from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import AgentView, Claimant, StartTask
from roundsman.model.instants import SECOND
from roundsman.model.priority import Priority
from roundsman.model.states import ProcessState, TaskState
from tests.support.machine_world import (
    REPLY_TO,
    T0,
    World,
    begun,
    plan,
    requests_in,
    step,
    workflow,
)
from tests.support.steps import stored_step

a = step("a", complete_within=timedelta(seconds=20))
b = step("b", a)


def test_a_start_claims_what_is_ready_for_this_message_alone() -> None:
    world = World(plan(a, b))
    decision = world.start(Claimant("inst-7", "c0ffee"))
    record = world.record("a")
    assert world.task_state() is TaskState.ACTIVE
    assert record.process_state is ProcessState.PROCESSING
    assert record.locked_by == "inst-7-c0ffee.1.2"
    assert stored_step(record).complete_by == T0 + 20 * SECOND
    assert record.started_at == T0
    assert requests_in(decision) == ["a"]
    assert world.state("b") is ProcessState.PENDING
    assert decision.reason == "a: attempt 1 of 3 claimed"


def test_a_claim_waits_for_its_agents_backlog_on_the_queue_of_the_tasks_priority() -> None:
    lags = {"worker/normal": AgentView(lag=7_000), "worker/urgent": AgentView(lag=90_000)}
    normal = World(plan(a), agents=lags)
    normal.start()
    assert stored_step(normal.record("a")).complete_by == T0 + 27_000
    urgent = World(plan(a, priority=Priority.URGENT), agents=lags)
    urgent.start()
    assert stored_step(urgent.record("a")).complete_by == T0 + 110_000


def test_no_claim_lasts_longer_than_its_task() -> None:
    world = World(plan(a), agents={"worker/normal": AgentView(lag=10**12)})
    world.start()
    assert stored_step(world.record("a")).complete_by == world.task.complete_by


def test_a_second_start_finds_nothing_to_do() -> None:
    world = begun(a, b)
    before = world.task
    decision = world.start()
    assert decision.task is before
    assert decision.actions == ()
    assert decision.reason == "nothing is due"


def test_a_redelivered_start_sends_its_own_request_again_and_stores_nothing() -> None:
    world = World(plan(a, b))
    message = world.claimant()
    world.start(message)
    before = world.task
    elsewhere = replace(message, instance="another-instance")
    decision = world.start(elsewhere)
    assert decision.task is before
    assert requests_in(decision) == ["a"]
    assert decision.reason == "a: its request is sent again"


def test_a_nonce_that_ends_like_another_is_another() -> None:
    assert not Claimant("i", "bc").made("i-abc.1")
    assert not Claimant("i", "abc").made(None)
    assert not Claimant("i", "").made("i-abc.1")
    assert Claimant("x", "abc").made("i-2-abc.12")


def test_a_scheduled_task_is_not_started_before_its_time() -> None:
    world = World(plan(a), ProcessingOptions(start_at=T0 + 60_000))
    assert world.task_state() is TaskState.SCHEDULED
    before = world.task
    assert world.start().task is before
    assert world.inspect().task is before
    assert world.inspect().reason == "starts at 2027-01-15T08:01:00Z"
    world.wait(60)
    decision = world.inspect()
    assert decision.task.state is TaskState.PENDING
    assert decision.actions == (StartTask(),)
    world.start()
    assert world.task_state() is TaskState.ACTIVE


def test_complete_by_counts_from_the_time_of_start() -> None:
    world = World(
        plan(a, complete_within=timedelta(seconds=90)), ProcessingOptions(start_at=T0 + 60_000)
    )
    assert world.task.complete_by == T0 + 150_000


def test_a_clock_that_runs_behind_does_not_schedule_a_started_task_again() -> None:
    """The submission's or another scheduler's clock may be ahead of this one's."""
    world = World(plan(a, b))
    world.now = T0 - 250
    world.start()
    assert world.task_state() is TaskState.ACTIVE
    world.now = T0 - 500
    world.succeeds("a")
    world.inspect()
    assert world.task_state() is TaskState.ACTIVE
    started = World(plan(a), ProcessingOptions(start_at=T0 + 1_000))
    started.wait(1).inspect()
    started.now -= 100
    assert started.inspect().task.state is TaskState.PENDING
    started.start()
    assert started.task_state() is TaskState.ACTIVE


def test_started_is_owed_once_and_only_to_who_asked() -> None:
    world = World(plan(a, b))
    assert world.owed() == ["received"]
    world.start()
    assert world.owed() == ["received", "started"]
    world.fails("a")
    world.wait(5).start()
    world.succeeds("a")
    assert world.owed() == ["received", "started"]
    silent = begun(a, asked=ProcessingOptions())
    assert silent.owed() == []


def test_a_task_whose_every_step_is_skipped_completes_at_its_start() -> None:
    world = begun(step("a", when="input"), step("b", "a", when="input"))
    assert world.task_state() is TaskState.COMPLETED
    assert world.owed() == ["received", "started", "completed"]


def test_a_start_after_the_tasks_time_ends_it_without_a_claim() -> None:
    world = World(plan(a, complete_within=timedelta(seconds=60)))
    decision = world.wait(60).start()
    assert world.task_state() is TaskState.ARCHIVED
    assert requests_in(decision) == []
    assert "the task was not complete by 2027-01-15T08:01:00Z (0 ms ago)" in decision.reason
    assert world.owed() == ["received", "task_archived", "failed"]


def test_a_claim_of_one_step_of_many_is_one_request_each() -> None:
    many = [step(f"s{number}") for number in range(20)]
    world = World(plan(*many))
    decision = world.start()
    assert requests_in(decision) == [found.name for found in many]
    assert len({world.lock(found.name) for found in many}) == 1  # the message's own
    assert world.task.version == 2


def test_the_definition_order_is_the_order_of_claims() -> None:
    world = World(plan(*workflow(step("z"), step("a"), step("m")).steps))
    assert requests_in(world.start()) == ["z", "a", "m"]


def test_the_order_is_never_read_where_no_step_has_a_condition() -> None:
    world = begun(a, b, asked=ProcessingOptions(reply_to=REPLY_TO), order=None)
    world.succeeds("a")
    world.succeeds("b")
    assert world.task_state() is TaskState.COMPLETED
