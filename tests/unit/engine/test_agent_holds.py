"""Held: an agent that takes no work costs a step no attempt and its task no time."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo
from roundsman.engine.agent_holds import (
    CHECK_SPREAD,
    CHECKED_EVERY,
    DEFAULT_RETURN_DELAY,
    MAX_UNCOUNTED_CALLS,
    RECHECK_INTERVAL,
    RESUME_SPREAD,
    is_to_be_parked_anew,
)
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.due import START_WITHIN, ParkedFor, due, parked_for
from roundsman.model.events import AgentView, HistoryRow, HoldView, InspectAt, Outcome, StartTask
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.situations import EVERY_ORDER, SEVERAL, Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError, StepRecord
from tests.support.coping_stories import FENCED, TWO, held, held_after_a_step, held_undo
from tests.support.machine_world import T0, World, plan, requests_in, step
from tests.support.steps import stored_step

HALF_THE_RAMP = RESUME_SPREAD // 2  # the jitter of the world is a half


def checked_after(regular: int) -> int:
    """The time in ms until a check that is spread by half of what is possible."""
    return regular + CHECK_SPREAD // 2


def started(**agents: AgentView) -> World:
    world = World(plan(step("a"), complete_within=timedelta(minutes=1)))
    world.agents = {f"{name}/normal": view for name, view in agents.items()}
    world.start()
    return world


def test_nothing_is_claimed_for_an_agent_that_is_held() -> None:
    world = World(plan(step("a")))
    decision = world.hold("worker", 60).start()
    record = world.record("a")
    at = T0 + checked_after(CHECKED_EVERY)
    assert requests_in(decision) == []
    assert decision.actions == (InspectAt(at),)
    assert (record.process_state, record.locked_by) == (ProcessState.PENDING, None)
    assert (record.held_since, record.not_before, record.failure_count) == (T0, at, 0)
    assert stored_step(record).held_for == "worker"
    assert record.error == StepError("Held", "worker is held by ann")
    assert world.task_state() is TaskState.RETRY
    assert decision.reason == (
        "a: held: worker is held by ann; checked again at 2027-01-15T09:30:00Z, no attempt counted"
    )
    assert [(row.kind, row.step) for row in decision.history] == [("held", "a")]
    world.deliver_owed()
    assert due(world.task, world.now) == at


def test_a_hold_of_another_agent_or_one_that_is_over_holds_nothing() -> None:
    world = World(plan(step("a")))
    world.hold("other", 600).hold("worker", 0)
    assert requests_in(world.start()) == ["a"]


def test_a_failure_that_may_be_tried_at_once_counts_though_its_step_is_parked() -> None:
    world = World(plan(step("a")), jitter=0.0)
    world.start()
    world.hold("worker", 60)
    world.reply("a", Outcome.TRANSIENT)
    record = world.record("a")
    assert (record.held_since, record.failure_count) == (T0, 1)


@pytest.mark.parametrize("hours", [1, 30, 240], ids=["an hour", "a day", "ten days"])
def test_an_open_circuit_is_checked_every_hour_or_two_and_later_each_day(
    hours: int,
) -> None:
    world = World(plan(step("a"), complete_within=timedelta(minutes=10)))
    rows = list(world.hold("worker", 30).start().history)
    checks = 0
    while world.now < T0 + hours * 60 * MINUTE:
        at, since = world.record("a").not_before, world.record("a").held_since
        assert at is not None
        assert since == T0
        every = CHECKED_EVERY if world.now - T0 < DAY else DAY
        assert at == world.now + checked_after(every)
        world.wait_until(at).hold("worker", 30)
        before = world.task.version
        decision = world.inspect()
        assert StartTask() not in decision.actions
        assert world.task.version == before + 1, "one write, and no Start"
        rows += decision.history
        checks += 1
    assert (len(rows), world.record("a").failure_count) == (1, 0)
    world.deliver_owed()
    assert checks == {1: 1, 30: 17, 240: 25}[hours]
    assert due(world.task, world.now) == world.record("a").not_before


def test_a_hold_with_a_known_end_is_not_checked_before_it_but_each_day() -> None:
    world = World(plan(step("a")), jitter=0.0)
    world.hold("worker", 5 * 3_600).start()
    assert world.record("a").not_before == T0 + 5 * 60 * MINUTE + RECHECK_INTERVAL
    world = World(plan(step("a")), jitter=0.0)
    world.hold("worker", 10 * 24 * 3_600).start()
    assert world.record("a").not_before == T0 + DAY


def test_a_parked_step_that_another_hold_keeps_now_waits_for_that_one() -> None:
    world = World(plan(step("a")))
    world.hold("worker", 600).start()
    assert stored_step(world.record("a")).held_for == "worker"
    queue = "worker/normal"
    until = world.now + 60 * MINUTE
    world.agents = {queue: replace(world.agents[queue], performs_hold=HoldView(until, "all"))}
    world.wait(20).inspect()
    assert stored_step(world.record("a")).held_for == EVERY_ORDER
    assert world.record("a").held_since == T0
    before = world.task
    assert world.wait(20).inspect().task is before, "nothing is stored for the time alone"


def test_a_record_that_names_no_hold_is_checked_at_its_time_and_names_it_then() -> None:
    world = World(plan(step("a")))
    world.hold("worker", 3_600).start()
    parked = world.record("a").situation
    assert isinstance(parked, Parked)
    old = replace(parked, held_for=None, not_before=T0 + RECHECK_INTERVAL)
    steps = {"a": replace(world.record("a"), situation=old)}
    world.task = replace(world.task, steps=steps)
    world.deliver_owed()
    assert due(world.task, world.now) == T0 + RECHECK_INTERVAL
    assert parked_for(world.task) is None
    world.wait_until(T0 + RECHECK_INTERVAL).inspect()
    assert parked_for(world.task) == ParkedFor("worker", T0)


def test_a_deadline_keeps_its_entry_while_a_step_is_parked() -> None:
    world = World(plan(step("a"), complete_within=timedelta(minutes=10)))
    world.hold("worker", 3_600).start()
    world.deliver_owed()
    assert due(world.task, world.now) == world.record("a").not_before
    world.task = replace(world.task, deadline=T0 + 20 * MINUTE)
    assert due(world.task, world.now) == T0 + 20 * MINUTE


def test_a_task_with_steps_parked_for_two_agents_waits_for_several_since_the_first() -> None:
    world = World(plan(step("a"), step("b", agent="other")))
    world.hold("worker", 600).start()
    assert parked_for(world.task) == ParkedFor("worker", T0)
    world.wait(20).hold("other", 600).gives_back("b")
    assert parked_for(world.task) == ParkedFor(SEVERAL, T0)


def test_started_is_sent_when_the_first_step_is_claimed_and_not_when_it_is_held() -> None:
    world = held()
    world.task = replace(world.task, reply_to="https://queue.example/replies")
    assert world.owed() == []
    world.wait(700).inspect()
    world.start()
    assert world.owed() == ["started"]
    assert [owed.name for owed in world.task.owed].count("started") == 1


def test_what_its_agent_gives_back_waits_uncounted_and_its_last_copy_may_still_act() -> None:
    world = started()
    decision = world.wait(5).gives_back("a")
    record = world.record("a")
    at = world.now + DEFAULT_RETURN_DELAY + HALF_THE_RAMP
    assert (record.process_state, record.locked_by) == (ProcessState.PENDING, None)
    assert (record.failure_count, record.not_before) == (0, at)
    assert record.held_since == world.now
    assert record.acts_until == T0 + 30 * SECOND
    assert not record.outcome_unknown
    assert record.error == StepError("Held", "the breaker of worker is open")
    assert decision.actions == (InspectAt(at),)
    assert "no attempt counted" in decision.reason


@pytest.mark.parametrize(
    ("asked", "waits"),
    [
        (0, 1),
        (90 * SECOND, 90 * SECOND),
        (10**15, RECHECK_INTERVAL),
        (-5, 1),
        (10**30, RECHECK_INTERVAL),
    ],
)
def test_an_agent_says_for_how_long_within_bounds(asked: int, waits: int) -> None:
    world = started()
    world.gives_back("a", retry_after=asked)
    assert world.record("a").not_before == T0 + waits + HALF_THE_RAMP


def test_what_is_given_back_waits_for_the_end_of_a_hold_that_is_known() -> None:
    world = started()
    world.hold("worker", 120).gives_back("a", retry_after=SECOND)
    assert world.record("a").not_before == T0 + checked_after(CHECKED_EVERY)


def test_a_service_that_was_called_before_its_breaker_opened_may_have_done_it() -> None:
    world = started()
    world.gives_back("a", called=True)
    assert world.record("a").outcome_unknown
    assert world.record("a").failure_count == 0


def test_a_late_or_repeated_held_reply_changes_nothing() -> None:
    world = started()
    lock = world.lock("a")
    world.gives_back("a")
    before = world.task
    assert world.gives_back("a", lock=lock).task is before
    world.wait(60).start()
    before = world.task
    assert world.gives_back("a", lock=lock).task is before


def test_holding_counts_nothing_against_attempts_that_failed_before_and_after() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=3))))
    world.start()
    world.fails("a", retry_after=0)
    for _ in range(20):
        world.gives_back("a")
        assert world.record("a").failure_count == 1
        world.wait(60).start()
    world.fails("a", retry_after=0)
    assert world.record("a").failure_count == 2
    world.fails("a")
    assert world.task_state() is TaskState.ARCHIVED


def test_only_the_first_of_many_times_that_a_step_is_given_back_is_recorded() -> None:
    world = started()
    rows: list[HistoryRow] = []
    for _ in range(5):
        rows += world.gives_back("a").history
        world.wait(60).start()
    assert [row.kind for row in rows] == ["held"]
    world.fails("a", retry_after=0)
    assert [row.kind for row in world.gives_back("a").history] == ["held"]


def test_a_step_whose_own_calls_keep_its_circuit_open_counts_an_attempt_some_day() -> None:
    world = started()
    for _ in range(MAX_UNCOUNTED_CALLS):
        world.gives_back("a", called=True)
        world.wait(60).start()
    assert world.record("a").failure_count == 0
    decision = world.gives_back("a", called=True)
    assert (world.record("a").failure_count, world.record("a").uncounted_calls) == (1, 0)
    assert "attempt 1 of 3 failed: Held: the breaker of worker is open" in decision.reason


def test_a_step_that_never_got_to_call_its_service_is_held_for_as_long_as_it_takes() -> None:
    world = started()
    for _ in range(MAX_UNCOUNTED_CALLS + 1):
        world.gives_back("a")
        world.wait(60).start()
    assert world.record("a").failure_count == 0


# --- the task's clock -----------------------------------------------------------------------------


def test_the_tasks_clock_stands_still_while_a_step_is_held() -> None:
    world = World(plan(step("a"), complete_within=timedelta(minutes=1)))
    world.hold("worker", 7_200).start()
    for _ in range(200):
        world.wait(31).inspect()
        world.start()
        assert world.task.ending is None
    world.release("worker").wait(3_600).inspect()
    world.start()
    left = world.task.complete_by - world.now
    assert left == MINUTE
    assert world.lock("a")


@pytest.mark.parametrize("looks", ["inspect", "start"])
def test_a_task_that_nobody_looked_at_for_hours_does_not_fail_of_the_time_it_was_held(
    looks: str,
) -> None:
    world = World(plan(step("a"), complete_within=timedelta(minutes=1)))
    world.hold("worker", 30).start()
    world.wait(9_000)
    world.inspect() if looks == "inspect" else world.start()
    assert world.task.ending is None
    if looks == "start":  # which wakes no parked step, so nothing is stored
        world.inspect()
    assert world.task.complete_by == world.now + MINUTE


def test_two_steps_held_at_once_stop_the_clock_once() -> None:
    world = World(plan(step("a"), step("b"), complete_within=timedelta(minutes=1)))
    world.hold("worker", 100).start()
    world.wait(50)
    world.hold("worker", 100)
    world.wait_until(world.record("a").not_before).inspect()
    world.start()
    assert world.task.credited_until is not None
    assert world.task.complete_by == world.task.credited_until + MINUTE


def test_time_that_was_not_held_counts() -> None:
    world = World(
        plan(step("a", retry=Retry(max_attempts=8)), complete_within=timedelta(minutes=2))
    )
    world.start()
    world.wait(10).gives_back("a")
    wait = DEFAULT_RETURN_DELAY + HALF_THE_RAMP
    world.wait_until(world.record("a").not_before).start()
    assert world.task.complete_by == T0 + 2 * MINUTE + wait
    world.wait(10).gives_back("a")
    world.wait_until(world.record("a").not_before).start()
    assert world.task.complete_by == T0 + 2 * MINUTE + 2 * wait
    world.wait_until(world.task.complete_by).inspect()
    assert world.task.ending is not None


def test_a_task_that_was_too_late_before_it_was_held_has_failed() -> None:
    world = started()
    decision = world.wait(60).gives_back("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.record("a").process_state is ProcessState.PENDING
    assert world.record("a").held_since is None
    assert "returned by its agent and not attempted again" in decision.reason


# --- release --------------------------------------------------------------------------------------


def test_the_end_of_a_hold_is_taken_at_the_next_look_and_before_the_steps_own_time() -> None:
    world = held().release("worker")
    assert world.wait(10).inspect().actions == ()  # a view of the agents may be so old
    decision = world.wait(1).inspect()
    assert decision.actions == (StartTask(),)
    assert decision.reason == "a: its hold is over"
    assert world.record("a").held_since == T0
    assert requests_in(world.start()) == ["a"]
    assert world.record("a").held_since is None


def test_the_end_of_a_hold_is_seen_of_an_agent_whose_queue_was_never_read() -> None:
    world = held()
    world.agents = {"other/normal": AgentView()}
    assert world.wait(11).inspect().actions == (StartTask(),)


def test_a_step_that_was_given_back_is_not_sent_again_on_an_old_view() -> None:
    world = started(worker=AgentView())
    world.gives_back("a", retry_after=60 * SECOND)
    before = world.task
    assert world.wait(10).inspect().task is before
    assert world.wait(1).inspect().actions == (StartTask(),)


def test_without_any_news_of_its_agent_a_step_waits_for_its_time() -> None:
    world = started()
    world.gives_back("a", retry_after=60 * SECOND)
    before = world.task
    assert world.wait(30).inspect().task is before


def test_a_start_alone_wakes_no_held_step() -> None:
    world = held().release("worker")
    before = world.task
    assert world.wait(30).start().task is before


# --- what people ask ------------------------------------------------------------------------------


def test_run_now_asks_at_once_and_an_agent_that_is_held_still_holds_the_step() -> None:
    world = held()
    assert StartTask() in world.wait(1).run_now().actions
    decision = world.start()
    assert requests_in(decision) == []
    assert decision.history == ()
    assert world.record("a").held_since == T0
    assert world.task_state() is TaskState.RETRY
    world.release("worker").run_now()
    assert requests_in(world.start()) == ["a"]


def test_a_held_task_can_be_cancelled_and_undone() -> None:
    world = held()
    world.cancel()
    assert world.task_state() is TaskState.CANCELLED
    other = held()
    other.ask_undo()
    assert other.task_state() is TaskState.UNDONE
    later = held_after_a_step()
    later.cancel()
    assert later.task_state() is TaskState.CANCELLED


def test_the_undo_of_a_held_step_that_was_claimed_waits_for_its_agent_too() -> None:
    world = World(plan(step("a", compensation=FENCED)))
    world.start()
    world.hold("worker", 60).gives_back("a")
    world.ask_undo()
    assert world.record("a").held_since is None
    complete_by = world.task.complete_by
    world.start()
    record = world.record("a")
    assert (record.process_state, record.locked_by) == (ProcessState.UNDOING, None)
    assert record.held_since == world.now
    assert world.task_state() is TaskState.UNDOING
    assert world.task.complete_by == complete_by, "an undo is not stopped by the task's time"
    assert due(world.task, world.now) <= world.now + START_WITHIN
    world.wait(90).inspect()
    world.start()
    assert world.lock("a")


def test_a_held_undo_counts_no_attempt_and_goes_on() -> None:
    world = held_undo()
    assert world.task_state() is TaskState.UNDONE


def test_a_held_undo_may_be_made_by_hand() -> None:
    world = World(plan(step("a", compensation=FENCED)))
    world.start()
    world.hold("worker", 600).gives_back("a")
    world.ask_undo()
    world.start()
    world.resolve("a")
    assert world.task_state() is TaskState.UNDONE


def test_a_held_step_whose_outcome_a_person_knows_goes_on() -> None:
    world = started()
    world.hold("worker", 600).gives_back("a", called=True)
    world.resolve("a", did=False)
    assert not world.record("a").outcome_unknown
    world.start()
    assert world.record("a").held_since == T0
    world.resolve("a")
    assert world.task_state() is TaskState.COMPLETED
    assert world.record("a").held_since is None


def test_a_success_that_comes_while_its_step_is_held_is_taken() -> None:
    world = started()
    lock = world.lock("a")
    world.overdue("a")
    world.hold("worker", 600).start()
    assert world.record("a").held_since == world.now
    world.succeeds("a", lock=lock)
    assert world.task_state() is TaskState.COMPLETED
    assert world.record("a").held_since is None


def test_a_task_that_another_step_fails_and_a_person_resubmits_has_its_time_from_then_on() -> None:
    made = plan(
        step("a"),
        step("b", agent="other", on_failure=Archive()),
        complete_within=timedelta(minutes=10),
    )
    world = World(made)
    world.hold("worker", 300).start()
    world.is_refused("b")
    assert world.task_state() is TaskState.ARCHIVED
    allowed = world.task.complete_by - world.task.start_at
    world.wait(2 * 24 * 3_600).resubmit()
    assert world.task.complete_by == world.now + allowed
    world.wait(1).start()
    assert world.task.complete_by == world.now + allowed, "a was held for that second"
    assert {"a", "b"} == {name for name, r in world.task.steps.items() if r.locked_by}


def test_checks_of_one_hold_do_not_come_all_at_once() -> None:
    found = set()
    for jitter in (0.0, 0.25, 0.999):
        world = World(plan(step("a")), jitter=jitter)
        world.hold("worker", 60).start()
        found.add(world.record("a").not_before)
    assert min(at or 0 for at in found) == T0 + CHECKED_EVERY
    assert max(at or 0 for at in found) < T0 + CHECKED_EVERY + CHECK_SPREAD
    assert len(found) == 3


def test_a_step_with_another_agent_goes_there_at_once_where_nothing_has_happened() -> None:
    world = World(plan(step("a", agents=TWO, compensation=FENCED), on_failure=Undo()))
    world.start()
    decision = world.hold("first", 600).gives_back("a", effect=Effect.NONE)
    assert requests_in(decision) == ["a"]
    assert world.record("a").agent == "second"


# --- what is given back, in the record ------------------------------------------------------------


def excused_once(world: World) -> World:
    """The first attempt of `a` was never read, so that it was not counted."""
    world.agents = {f"{agent}/normal": AgentView(read_up_to=T0 - 1) for agent in ("worker", *TWO)}
    world.overdue("a")
    world.agents = {}
    world.start()
    assert (world.record("a").uncounted_timeouts, world.record("a").outcome_unknown) == (0, True)
    world.task = replace(
        world.task, steps={"a": replace(world.record("a"), uncounted_timeouts=2), **others(world)}
    )
    return world


def others(world: World) -> dict[str, StepRecord]:
    return {name: record for name, record in world.task.steps.items() if name != "a"}


def test_given_back_in_an_ending_task_a_step_keeps_what_is_known_and_proven() -> None:
    world = World(plan(step("a"), step("b"), on_failure=Archive()))
    world.start()
    excused_once(world).is_refused("b")
    world.gives_back("a", effect=Effect.NONE)
    record = world.record("a")
    assert (record.effect, record.outcome_unknown) == (Effect.NONE, True)
    assert record.uncounted_timeouts == 0


def test_given_back_with_proof_a_step_moves_on_and_keeps_what_is_known() -> None:
    world = World(plan(step("a", agents=TWO, compensation=FENCED), on_failure=Undo()))
    world.start()
    excused_once(world)
    decision = world.hold("first", 600).gives_back("a", effect=Effect.NONE)
    assert "a: returned by its agent, which proves that the step had no effect" in decision.reason
    record = world.record("a")
    assert (record.agent, record.under_way) == ("second", True)
    assert (record.outcome_unknown, record.uncounted_timeouts) == (True, 0)


def test_a_step_moves_on_with_proof_and_another_agent_and_waits_without_either() -> None:
    for agents, effect, waits in [
        (TWO, Effect.NONE, False),
        (TWO, None, True),
        (("only",), Effect.NONE, True),
    ]:
        world = World(plan(step("a", agents=agents)))
        world.start()
        world.gives_back("a", effect=effect)
        assert (world.record("a").not_before is not None) is waits, (agents, effect)
        assert (world.record("a").held_since is not None) is waits, (agents, effect)


def test_a_hold_without_a_message_is_named_by_its_type() -> None:
    world = World(plan(step("a")))
    world.start()
    decision = world.reply("a", Outcome.HELD, error=StepError("Busy", ""))
    assert "a: held: Busy; checked again at" in decision.reason


def test_calls_that_were_given_back_are_counted_and_others_are_not() -> None:
    world = World(plan(step("a")))
    world.start()
    for called, counted in [(True, 1), (False, 1), (True, 2)]:
        world.gives_back("a", called=called)
        assert world.record("a").uncounted_calls == counted
        world.wait(60).inspect()
        world.start()


@pytest.mark.parametrize(
    ("calls", "called", "counts"),
    [
        (MAX_UNCOUNTED_CALLS - 1, True, False),
        (MAX_UNCOUNTED_CALLS, False, False),
        (MAX_UNCOUNTED_CALLS, True, True),
    ],
)
def test_so_many_calls_that_were_given_back_are_a_failure(
    calls: int, called: bool, counts: bool
) -> None:
    world = World(plan(step("a")))
    world.start()
    record = replace(world.record("a"), uncounted_calls=calls)
    world.task = replace(world.task, steps={"a": record})
    world.gives_back("a", called=called)
    assert (world.record("a").failure_count == 1) is counts


@pytest.mark.parametrize(("free", "resumes"), [((), False), (("second",), True), (TWO, True)])
def test_a_step_resumes_once_one_of_its_agents_takes_work(
    free: tuple[str, ...], resumes: bool
) -> None:
    world = World(plan(step("a", agents=TWO)))
    world.hold("first", 600).hold("second", 600).start()
    for agent in free:
        world.release(agent)
    world.wait(15).inspect()
    assert (world.record("a").not_before is None) is resumes


def test_a_step_that_waits_for_its_next_attempt_is_not_resumed_by_what_is_known_of_agents() -> None:
    world = World(plan(step("a")))
    world.agents = {"worker/normal": AgentView(read_up_to=T0)}
    world.start()
    world.fails("a", retry_after=60 * SECOND)
    before = world.task
    assert world.wait(30).inspect().task is before


def test_a_step_that_is_parked_keeps_what_is_known_and_counted() -> None:
    world = World(plan(step("a")))
    world.start()
    world.overdue("a")
    known = replace(world.record("a"), uncounted_calls=3, uncounted_timeouts=2, effect=Effect.NONE)
    world.task = replace(world.task, steps={"a": known})
    world.hold("worker", 600).start()
    record = world.record("a")
    assert record.held_since == world.now
    assert (record.outcome_unknown, record.effect) == (True, Effect.NONE)
    assert (record.uncounted_calls, record.uncounted_timeouts) == (3, 0)


def test_an_undo_that_is_parked_says_so_and_gives_its_ending_task_no_time() -> None:
    world = World(plan(step("a", compensation=FENCED), on_failure=Undo()))
    world.start()
    ends_at = world.task.complete_by
    world.is_refused("a")
    decision = world.hold("worker", 600).gives_back("a")
    assert "a (undo): held: the breaker of worker is open; checked again at" in decision.reason
    assert (world.task.complete_by, world.task.credited_until) == (ends_at, None)


@pytest.mark.parametrize("agents", [TWO, ("first",)])
def test_a_step_that_may_have_happened_says_why_it_does_not_go_to_another_agent(
    agents: tuple[str, ...],
) -> None:
    world = World(plan(step("a", agents=agents)))
    world.start()
    decision = world.hold("first", 600).gives_back("a", called=True)
    stays = "; it may have had an effect, so it stays at first until that is known"
    assert (stays in decision.reason) is (agents == TWO)


def test_a_step_with_a_proof_that_is_parked_at_both_agents_is_not_reported_to_stay() -> None:
    world = World(plan(step("a", agents=TWO)))
    world.start()
    decision = world.hold("first", 600).hold("second", 600).gives_back("a", effect=Effect.NONE)
    assert world.record("a").held_since == world.now
    assert "it may have had an effect" not in decision.reason
    assert "which proves that the step had no effect" not in decision.reason


def test_a_hold_is_one_row_of_the_history_until_the_step_has_another_error() -> None:
    world = World(plan(step("a", retry=Retry(max_attempts=9))))
    world.start()
    world.fails("a", retry_after=0)
    world.start()
    decision = world.gives_back("a")
    assert [(row.kind, row.attempt) for row in decision.history] == [("held", 2)]
    world.wait(60).start()
    decision = world.gives_back("a")
    assert decision.history == ()
    assert decision.reason.startswith("a: held: the breaker of worker is open")
    world.wait(60).start()
    world.fails("a", retry_after=0)
    world.start()
    decision = world.gives_back("a")
    assert [(row.kind, row.attempt) for row in decision.history] == [("held", 3)]


def test_a_step_that_is_parked_again_while_it_waits_is_no_new_row() -> None:
    world = World(plan(step("a")))
    world.hold("worker", 3_600).start()
    world.task = replace(world.task, steps={"a": replace(world.record("a"), error=None)})
    world.wait_until(world.record("a").not_before)
    assert world.start().history == ()


def test_with_proof_a_step_moves_on_if_any_of_the_other_agents_takes_work() -> None:
    three = ("first", "second", "third")
    for busy, moves in [((), True), (("second",), True), (("second", "third"), False)]:
        world = World(plan(step("a", agents=three)))
        world.start()
        for agent in ("first", *busy):
            world.hold(agent, 600)
        world.gives_back("a", effect=Effect.NONE)
        assert (world.record("a").agent is not None) is moves


def test_an_undo_is_not_reported_to_stay_where_it_is() -> None:
    world = World(plan(step("a", agents=TWO, compensation=FENCED), on_failure=Undo()))
    world.start()
    world.ask_undo()
    world.is_refused("a")
    decision = world.hold("first", 600).gives_back("a")
    assert "a (undo): held" in decision.reason
    assert "it may have had an effect" not in decision.reason


def test_a_parked_step_says_why_by_the_first_hold_that_has_a_reason() -> None:
    until = T0 + 60 * SECOND
    world = World(plan(step("a", agents=TWO)))
    world.agents = {
        "first/normal": AgentView(agent_hold=HoldView(until)),
        "second/normal": AgentView(agent_hold=HoldView(until, "second is held by bob")),
    }
    world.start()
    assert world.record("a").error == StepError("Held", "second is held by bob")


def test_a_step_that_is_given_back_without_a_reason_is_held_for_the_usual_one() -> None:
    world = World(plan(step("a")))
    world.start()
    world.reply("a", Outcome.HELD)
    assert world.record("a").error == StepError("Held", "its agent accepts no work")


@pytest.mark.parametrize("ending", [True, False])
def test_what_was_called_or_heard_of_before_it_was_given_back_may_have_happened(
    ending: bool,
) -> None:
    a = step("a", heartbeat_within=timedelta(seconds=10), complete_within=timedelta(minutes=1))
    for heard, called in [(False, False), (True, False), (False, True)]:
        world = World(plan(a, step("b"), on_failure=Archive()))
        world.start()
        if heard:
            world.wait(1).shows_progress("a")
        if ending:
            world.is_refused("b")
        world.gives_back("a", called=called)
        assert world.record("a").outcome_unknown is (heard or called)


def test_a_step_that_was_called_and_proven_moves_on_and_is_not_known() -> None:
    world = World(plan(step("a", agents=TWO)))
    world.start()
    world.hold("first", 600).gives_back("a", called=True, effect=Effect.NONE)
    assert (world.record("a").agent, world.record("a").outcome_unknown) == ("second", True)


def test_only_a_proof_that_a_perform_had_no_effect_is_taken_of_what_is_given_back() -> None:
    world = World(plan(step("a")))
    world.start()
    world.gives_back("a", effect=Effect.STANDS)
    assert world.record("a").effect is None

    a = step("a", compensation=FENCED)
    world = World(plan(a, step("b", a), on_failure=Undo()))
    world.start()
    world.succeeds("a")
    world.is_refused("b")
    assert world.record("a").under_way
    world.gives_back("a", called=True, effect=Effect.NONE)
    assert world.state("a") is ProcessState.UNDOING
    assert (world.record("a").effect, world.record("a").outcome_unknown) == (None, False)


# --- by whose hold a step is parked, and until when ----------------------------------------------


@pytest.mark.parametrize(("early", "every"), [(0, DAY), (1, CHECKED_EVERY)])
def test_what_is_parked_for_a_day_is_checked_each_day(early: int, every: int) -> None:
    world = World(plan(step("a")))
    world.hold("worker", 30).start()
    world.wait_until(T0 + DAY - early).hold("worker", 30).inspect()
    assert world.record("a").not_before == world.now + checked_after(every)


def test_a_step_of_two_agents_is_checked_at_the_end_of_the_shorter_hold() -> None:
    world = World(plan(step("a", agents=TWO)), jitter=0.0)
    world.hold("first", 10 * 3_600).hold("second", 5 * 3_600).start()
    assert world.record("a").not_before == T0 + 5 * 60 * MINUTE + RECHECK_INTERVAL


def test_a_step_is_parked_anew_only_while_every_agent_is_held() -> None:
    world = World(plan(step("a", agents=TWO)))
    world.hold("first", 600).hold("second", 600).start()
    wait = world.record("a").situation
    assert isinstance(wait, Parked)

    def anew(wait: Parked) -> bool:
        builder = DecisionBuilder(world.task, world.now, world.plan)
        context = DecisionContext(world.plan, builder, None, world.agents, 0.0)
        return is_to_be_parked_anew(context, world.plan.steps["a"], wait)

    assert not anew(wait)
    assert anew(replace(wait, not_before=world.now))
    world.release("second")
    assert not anew(replace(wait, not_before=world.now))


@pytest.mark.parametrize(
    ("until", "held_for"), [(T0 - 1, SEVERAL), (T0, SEVERAL), (T0 + 1, EVERY_ORDER)]
)
def test_one_hold_on_orders_that_is_in_force_is_what_a_step_waits_for(
    until: int, held_for: str
) -> None:
    world = World(plan(step("a", agents=TWO)))
    world.hold("first", 600).hold("second", 600)
    view = world.agents["second/normal"]
    on_orders = replace(view, performs_hold=HoldView(until, "all are held"))
    world.agents = {**world.agents, "second/normal": on_orders}
    world.start()
    assert stored_step(world.record("a")).held_for == held_for


def test_what_proves_nothing_happened_goes_to_an_agent_that_was_not_tried_and_takes_work() -> None:
    world = World(plan(step("a", agents=("first", "second", "third", "fourth"))))
    world.start()
    world.hold("second", 600).gives_back("a", effect=Effect.NONE)
    assert (world.record("a").agent, world.record("a").tried) == ("third", ("first",))
    world.start()
    world.gives_back("a", effect=Effect.NONE)
    assert (world.record("a").agent, world.record("a").tried) == ("fourth", ("first", "third"))


@pytest.mark.parametrize("until", [T0 - 1, T0])
def test_a_hold_that_is_over_does_not_put_off_what_is_given_back(until: int) -> None:
    world = started(worker=AgentView(agent_hold=HoldView(until, "it was held")))
    world.gives_back("a", retry_after=90 * SECOND)
    assert world.record("a").not_before == T0 + 90 * SECOND + HALF_THE_RAMP


@pytest.mark.parametrize(
    ("hold", "asked", "hours"), [(5 * 3_600, SECOND, 5), (60, 5 * 60 * MINUTE, 5)]
)
def test_what_is_given_back_waits_for_the_later_of_a_hold_and_what_is_asked(
    hold: int, asked: int, hours: int
) -> None:
    world = World(plan(step("a")), jitter=0.0)
    world.start()
    world.hold("worker", hold).gives_back("a", retry_after=asked)
    assert world.record("a").not_before == T0 + hours * 60 * MINUTE + RECHECK_INTERVAL


@pytest.mark.parametrize(("effect", "held_for"), [(Effect.NONE, SEVERAL), (None, "first")])
def test_what_is_given_back_waits_for_other_agents_only_with_a_proof(
    effect: Effect | None, held_for: str
) -> None:
    world = World(plan(step("a", agents=TWO)))
    world.start()
    world.hold("first", 600).hold("second", 600).gives_back("a", effect=effect)
    assert stored_step(world.record("a")).held_for == held_for


def test_a_step_that_is_resolved_during_its_hold_is_not_held_a_second_time() -> None:
    world = World(plan(step("a", compensation=FENCED), on_failure=Undo()))
    world.start()
    world.hold("worker", 3_600)
    assert [row.kind for row in world.gives_back("a", called=True).history] == ["held"]
    world.wait(60).resolve("a", did=False)
    assert world.record("a").error is None
    decision = world.start()
    record = world.record("a")
    assert (record.held_since, record.under_way) == (T0, False)
    assert record.error is not None
    assert decision.history == ()
