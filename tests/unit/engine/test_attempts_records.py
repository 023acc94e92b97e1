"""What an attempt leaves behind: the record, the history and the reason, after each way it ends."""

from dataclasses import replace
from datetime import timedelta
from typing import TypedDict, Unpack

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Undo, Wait
from roundsman.engine.due import START_WITHIN
from roundsman.engine.overdue import MAX_UNCOUNTED_TIMEOUTS
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.engine.requests import request_for
from roundsman.model.events import AgentView, Decision, Outcome
from roundsman.model.instants import DAY, MINUTE, SECOND
from roundsman.model.queue_lag import MARK_INTERVAL, MARK_UNCERTAINTY, PROMPT, ReadMark
from roundsman.model.scheduler_queues import HIDDEN_FOR, QueueView, SchedulerQueues
from roundsman.model.situations import AwaitsCallback
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError
from tests.support.coping_stories import FENCED, ONCE, SLOW, UNFENCED, routed
from tests.support.machine_world import T0, StepOptions, World, plan, step
from tests.support.steps import stored_step

TWICE = Retry(max_attempts=2)
THRICE = Compensation(fences_late_performs=True, retry=Retry(max_attempts=3))
BEFORE = AgentView(read_up_to=T0 - 1)
"""Nothing that was sent at T0 or later was read."""


def started(**options: Unpack[StepOptions]) -> World:
    world = World(plan(step("a", **options), on_failure=Undo()))
    world.start()
    return world


class ViewOptions(TypedDict, total=False):
    lag: int
    reads: int
    read_up_to: int
    read_lock: str
    unread: bool


def seen(world: World, **view: Unpack[ViewOptions]) -> World:
    world.agents = {"worker/normal": AgentView(**view)}
    return world


def rows(decision: Decision) -> list[tuple[str, int | None]]:
    return [(row.kind, row.attempt) for row in decision.history]


# --- where it goes --------------------------------------------------------------------------------


def test_the_first_claim_is_no_reroute_in_the_history() -> None:
    world = routed(first=AgentView(lag=MINUTE, read_up_to=T0), second=AgentView(read_up_to=T0))
    decision = world.decisions[-1][2]
    assert decision.reason.startswith("a: goes to second, because first has a backlog")
    assert decision.history == ()


def test_a_step_that_is_claimed_waits_for_nothing_more() -> None:
    world = started()
    world.fails("a", retry_after=5 * SECOND)
    world.wait(5).start()
    assert world.record("a").under_way
    assert world.record("a").not_before is None


# --- a failure ------------------------------------------------------------------------------------


def test_a_failure_without_an_error_is_unknown() -> None:
    world = started()
    world.reply("a", Outcome.TRANSIENT)
    assert world.record("a").error == StepError("Unknown", "the agent gave no reason")


def test_a_failure_without_a_message_is_named_by_its_type_alone() -> None:
    decision = started().reply("a", Outcome.TRANSIENT, error=StepError("Busy", ""))
    assert decision.history[0].reason.startswith("a: attempt 1 of 3 failed: Busy; retried at")


def test_what_a_refused_undo_says_of_an_effect_is_not_of_its_perform() -> None:
    world = started(compensation=FENCED, retry=ONCE)
    world.fails("a")
    world.start()
    world.is_refused("a", effect=Effect.NONE)
    assert world.state("a") is ProcessState.UNDO_ERROR
    assert world.record("a").effect is None


def test_an_undo_whose_last_attempt_fails_waits_for_nothing() -> None:
    """The step's own strategy is about its performs."""
    waits = Wait(timedelta(minutes=1), times=5, then=Undo())
    world = World(plan(step("a", compensation=FENCED, retry=ONCE, on_failure=waits)))
    world.start()
    world.is_refused("a")
    world.start()
    world.fails("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    assert world.task_state() is TaskState.ARCHIVED


def test_a_settling_undo_whose_last_attempt_fails_begins_no_other() -> None:
    world = routed()
    world.fails("a")
    assert world.record("a").error == StepError("Unavailable", "503")
    world.start()
    world.fails("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    assert world.task_state() is TaskState.ARCHIVED


def test_a_retry_that_would_come_after_the_tasks_time_says_so_and_that_of_an_undo_comes() -> None:
    made = step("a", compensation=THRICE, retry=TWICE)
    world = World(plan(made, complete_within=timedelta(minutes=1), on_failure=Undo()))
    world.start()
    decision = world.fails("a", retry_after=90 * SECOND)
    assert world.record("a").not_before == T0 + 60 * SECOND
    assert (
        "no attempt fits before the task must be complete at 2027-01-15T08:01:00Z"
        in decision.reason
    )
    world.ask_undo()
    world.start()
    decision = world.fails("a", retry_after=90 * SECOND)
    assert world.record("a").not_before == T0 + 90 * SECOND
    assert "retried at 2027-01-15T08:01:30Z" in decision.reason
    assert stored_step(world.record("a")).complete_by == T0 + 90 * SECOND + START_WITHIN


@pytest.mark.parametrize("known", [True, False])
def test_an_undo_that_fails_leaves_known_what_is_known_of_its_perform(known: bool) -> None:
    a = step("a", compensation=THRICE, retry=ONCE)
    world = World(plan(a, step("b", a), on_failure=Undo()))
    world.start()
    if known:
        world.succeeds("a", {"id": 7})
        world.is_refused("b")
    else:
        world.overdue("a")
        world.start()
    world.fails("a", retry_after=1 * SECOND)
    world.wait(1).start()
    request = request_for(world.plan, world.task, "a", None, world.now)
    assert (request.operation, request.attempt) == ("undo", 2)
    assert request.outcome_unknown is not known
    assert request.results == ({"a": {"id": 7}} if known else {})


# --- progress and callbacks -----------------------------------------------------------------------


def test_progress_ends_the_row_of_what_was_excused() -> None:
    world = extended_by_backlog()
    assert world.record("a").uncounted_timeouts == 1
    world.shows_progress("a")
    assert world.record("a").uncounted_timeouts == 0


def test_a_wait_for_a_callback_ends_the_row_of_what_was_excused() -> None:
    world = extended_by_backlog()
    world.waits_for_callback("a", 60)
    assert world.record("a").uncounted_timeouts == 0


def test_a_wait_without_an_end_is_over_at_once() -> None:
    world = started()
    world.wait(3).reply("a", Outcome.WAITING)
    assert stored_step(world.record("a")).complete_by == world.now
    assert world.record("a").waiting


def test_a_callback_that_does_not_come_is_no_backlog_of_the_agents_queue() -> None:
    world = started(retry=ONCE)
    world.waits_for_callback("a", 20)
    assert world.record("a").heard_at == T0
    seen(world, lag=MINUTE, read_up_to=T0 - 1).overdue("a")
    assert (world.state("a"), world.record("a").failure_count) == (ProcessState.ERROR, 1)


def test_a_second_wait_says_that_the_step_waits_already() -> None:
    world = started()
    world.waits_for_callback("a", 60)
    decision = world.waits_for_callback("a", 90)
    assert decision.reason == "a: it already waits for its callback"


# --- overdue --------------------------------------------------------------------------------------


def extended_by_backlog() -> World:
    """A step with heartbeats whose request was read by all signs, and which was waited for once."""
    world = World(plan(SLOW))
    world.start()
    seen(world, lag=20 * SECOND, reads=T0 + MINUTE, read_up_to=T0 + 2 * MINUTE)
    world.wait(10).inspect()
    return world


def test_in_a_backlog_a_step_with_heartbeats_is_waited_for_by_its_heartbeat() -> None:
    record = extended_by_backlog().record("a")
    assert record.heartbeat_by == T0 + (20 + 10) * SECOND
    assert stored_step(record).complete_by == T0 + 10 * MINUTE
    assert record.locked_by is not None


def test_a_step_with_heartbeats_that_nothing_was_heard_of_says_for_how_long() -> None:
    world = World(plan(SLOW))
    world.start()
    world.wait(12).inspect()
    assert world.record("a").error == StepError(
        "Overdue", "no progress for 12 s; 2 s late when seen"
    )


def test_a_backlog_extends_up_to_the_requests_own_end() -> None:
    world = started(compensation=FENCED)
    seen(world, lag=320 * SECOND, reads=T0, read_up_to=T0 + 10 * SECOND).overdue("a")
    record = world.record("a")
    assert stored_step(record).complete_by == T0 + (30 + PATIENCE * 30) * SECOND
    assert record.heartbeat_by is None


@pytest.mark.parametrize(("lag", "extended"), [(MARK_INTERVAL - 1, False), (MARK_INTERVAL, True)])
def test_a_backlog_extends_by_no_less_than_the_interval_of_the_marks(
    lag: int, extended: bool
) -> None:
    world = started(compensation=FENCED)
    seen(world, lag=lag, reads=T0, read_up_to=T0 + 10 * SECOND).overdue("a")
    assert world.record("a").under_way is extended


def test_time_that_was_added_by_a_person_counts_in_a_backlog_too() -> None:
    world = started(compensation=FENCED)
    world.extend(60, "a")
    world.overdue("a")
    world.start()
    begun = world.now
    seen(world, lag=20 * SECOND, reads=begun, read_up_to=begun + 10 * SECOND).overdue("a")
    assert stored_step(world.record("a")).complete_by == begun + (20 + 30 + 60) * SECOND


@pytest.mark.parametrize(("lag", "extended"), [(300, True), (301, False)])
def test_an_unread_request_with_added_time_may_begin_as_late_as_another(
    lag: int, extended: bool
) -> None:
    world = started(compensation=FENCED)
    world.extend(60, "a")
    world.overdue("a")
    world.start()
    seen(world, lag=lag * SECOND, read_up_to=world.now - 1).overdue("a")
    assert world.record("a").under_way is extended


@pytest.mark.parametrize(("lag", "extended"), [(28, True), (300, True), (301, False)])
def test_an_unread_request_is_waited_for_while_it_can_still_begin_in_time(
    lag: int, extended: bool
) -> None:
    world = started(compensation=FENCED)
    seen(world, lag=lag * SECOND, read_up_to=T0 - 1).overdue("a")
    assert world.record("a").under_way is extended
    assert world.record("a").failure_count == 0


@pytest.mark.parametrize(
    ("since", "read"), [(MARK_UNCERTAINTY, False), (MARK_UNCERTAINTY + 1, True)]
)
def test_a_request_was_read_if_later_ones_are_read_by_more_than_the_uncertainty(
    since: int, read: bool
) -> None:
    world = started(compensation=FENCED)
    seen(world, lag=20 * SECOND, reads=T0 + since, read_up_to=T0 + MINUTE).overdue("a")
    assert world.record("a").under_way
    assert world.record("a").uncounted_timeouts == int(read)


def test_what_is_not_known_to_be_read_is_waited_for_without_a_limit() -> None:
    world = started(compensation=FENCED)
    for _ in range(MAX_UNCOUNTED_TIMEOUTS):
        lag = world.now - T0 + 30 * SECOND
        seen(world, lag=lag, reads=T0 + MINUTE, read_up_to=T0 + MINUTE).overdue("a")
    assert world.record("a").uncounted_timeouts == MAX_UNCOUNTED_TIMEOUTS
    seen(world, lag=world.now - T0 + 30 * SECOND, reads=T0, read_up_to=T0 + MINUTE).overdue("a")
    assert world.record("a").under_way


def test_an_unread_attempt_is_requeued_with_an_unknown_outcome_and_in_the_history() -> None:
    world = started(retry=TWICE)
    world.fails("a", retry_after=0)
    world.start()
    assert seen(world, read_up_to=world.now - 1).overdue("a").history[0].kind == "requeued"
    assert rows(world.decisions[-1][2]) == [("requeued", 2)]
    assert world.record("a").outcome_unknown
    assert world.record("a").failure_count == 1


def test_an_unread_first_attempt_may_have_taken_effect_all_the_same() -> None:
    world = started()
    seen(world, read_up_to=T0 - 1).overdue("a")
    assert world.record("a").outcome_unknown


def test_an_attempt_that_was_given_more_time_is_requeued_with_a_row_and_a_new_count() -> None:
    world = World(plan(SLOW))
    world.start()
    world.fails("a", retry_after=0)
    world.start()
    seen(world, lag=20 * SECOND, reads=T0 + MINUTE, read_up_to=T0 + 2 * MINUTE)
    world.wait(10).inspect()
    assert (world.record("a").under_way, world.record("a").uncounted_timeouts) == (True, 1)
    world.extend(60, "a")
    world.agents = {}
    decision = world.wait_until(world.record("a").overdue_at).inspect()
    assert rows(decision) == [("requeued", 2)]
    assert "an operator has added 60 s; sent again, no attempt counted" in decision.reason
    assert world.record("a").uncounted_timeouts == 0


def test_an_undo_that_was_read_begins_the_row_of_what_is_excused_again() -> None:
    world = started(compensation=THRICE, retry=ONCE)
    world.ask_undo()
    world.is_refused("a")
    world.start()
    seen(world, read_up_to=world.now - 1).overdue("a")
    assert (world.record("a").uncounted_timeouts, world.record("a").failure_count) == (1, 0)
    world.start()
    begun = world.now
    lock = world.lock("a")
    seen(world, read_up_to=begun + 10**6, read_lock=lock).overdue("a")
    assert (world.record("a").uncounted_timeouts, world.record("a").failure_count) == (0, 1)


def test_an_undo_that_is_retried_for_a_time_is_excused_three_times_in_all() -> None:
    for_an_hour = Retry(max_attempts=1, keep_trying_for=timedelta(hours=1))
    kept = Compensation(fences_late_performs=True, retry=for_an_hour)
    world = started(compensation=kept, retry=ONCE)
    world.is_refused("a")
    for failures in (0, 0, 0, 1, 2):
        world.wait_until(world.record("a").not_before or 0).start()
        seen(world, read_up_to=world.now - 1).overdue("a")
        assert world.record("a").failure_count == failures
    assert world.record("a").uncounted_timeouts == MAX_UNCOUNTED_TIMEOUTS


def test_a_timeout_that_counts_ends_the_row_of_uncounted_calls() -> None:
    world = started()
    world.gives_back("a", called=True)
    assert world.record("a").uncounted_calls == 1
    world.wait(60).inspect()
    world.start()
    assert world.record("a").uncounted_calls == 1
    world.overdue("a")
    assert (world.record("a").failure_count, world.record("a").uncounted_calls) == (1, 0)


def test_a_ready_step_that_nobody_has_started_is_watched_from_now_on() -> None:
    world = started()
    world.overdue("a")
    first = stored_step(world.record("a")).complete_by
    assert first == world.now + START_WITHIN
    decision = world.wait_until(first).inspect()
    assert "a: was not started in time; started again" in decision.reason
    assert stored_step(world.record("a")).complete_by == world.now + START_WITHIN


def test_a_start_that_waits_in_its_queue_is_not_sent_a_second_time() -> None:
    world = started()
    world.overdue("a")
    world.queues = SchedulerQueues(commands_wait=True)
    decision = world.wait_until(stored_step(world.record("a")).complete_by).inspect()
    assert "a: was not started in time" in decision.reason
    assert "started again" not in decision.reason


@pytest.mark.parametrize(("wait", "due"), [(10, False), (60, True)])
def test_a_retry_is_due_when_its_time_has_come_though_its_agent_is_held(
    wait: int, *, due: bool
) -> None:
    world = started()
    world.fails("a", retry_after=60 * SECOND)
    decision = world.hold("worker", 600).wait(wait).inspect()
    assert ("a: its next attempt is due" in decision.reason) is due
    assert (world.record("a").not_before is None) is due
    assert world.record("a").held_since is None, "only a claim parks it"


def undo_of_a_step_with_heartbeats() -> World:
    """An undo of 30 s has no heartbeat, though its step has one; it is under way."""
    compensation = Compensation(
        complete_within=timedelta(seconds=30), fences_late_performs=True, retry=ONCE
    )
    world = World(plan(replace(SLOW, compensation=compensation), on_failure=Undo()))
    world.start()
    world.is_refused("a")
    assert (world.record("a").under_way, world.record("a").heartbeat_by) == (True, None)
    return world


def test_an_undo_in_a_backlog_is_waited_for_by_its_own_time() -> None:
    world = undo_of_a_step_with_heartbeats()
    seen(world, lag=20 * SECOND, reads=T0, read_up_to=T0 + 10 * SECOND).overdue("a")
    assert stored_step(world.record("a")).complete_by == T0 + (20 + 30) * SECOND


def test_a_perform_in_a_backlog_is_not_waited_for_beyond_its_tasks_complete_by() -> None:
    world = World(plan(SLOW, complete_within=timedelta(minutes=12)))
    world.wait(5 * 60).start()
    seen(world, lag=20 * MINUTE, reads=world.now, read_up_to=world.now + MINUTE)
    world.wait(12).inspect()
    record, now = world.record("a"), world.now
    assert stored_step(record).complete_by == record.heartbeat_by == T0 + 12 * MINUTE
    waits = T0 + 12 * MINUTE - now
    assert world.task.complete_by == T0 + 12 * MINUTE + waits, "for what it waits, it has no less"


def test_an_undo_in_a_backlog_may_be_waited_for_beyond_its_tasks_complete_by() -> None:
    made = step("a", retry=ONCE, compensation=FENCED)
    world = World(plan(made, complete_within=timedelta(seconds=40), on_failure=Undo()))
    world.start()
    begun = world.wait(20).now
    world.is_refused("a")
    seen(world, lag=350 * SECOND, reads=begun, read_up_to=begun + 10 * SECOND).overdue("a")
    assert stored_step(world.record("a")).complete_by == begun + (30 + PATIENCE * 30) * SECOND


def test_an_undo_with_its_own_time_is_not_taken_for_an_extended_one() -> None:
    world = undo_of_a_step_with_heartbeats()
    for counted in (False, True):
        seen(world, unread=True).overdue("a")
        assert (world.state("a") is ProcessState.UNDO_ERROR) is counted
        world.start()


# --- perhaps never sent ---------------------------------------------------------------------------


def brief() -> World:
    within = timedelta(milliseconds=HIDDEN_FOR - 1)
    made = step("a", complete_within=within, retry=ONCE)
    world = World(plan(made))
    world.start()
    return world


@pytest.mark.parametrize(("late", "counted"), [(0, False), (1, True)])
def test_an_attempt_is_excused_until_its_message_would_have_come_again(
    late: int, counted: bool
) -> None:
    world = brief()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 + 10**9, read_lock="another")}
    world.now = T0 + HIDDEN_FOR - 1 + late
    world.inspect()
    assert (world.record("a").failure_count == 1) is counted
    if not counted:
        assert world.record("a").uncounted_timeouts == 1


@pytest.mark.parametrize(("late", "counted"), [(PROMPT, False), (PROMPT + 1, True)])
def test_a_message_that_comes_again_waits_as_long_as_the_scheduler_is_behind(
    late: int, counted: bool
) -> None:
    world = brief()
    world.agents = {"worker/normal": AgentView(read_up_to=T0 + 10**9, read_lock="another")}
    world.now = T0 + HIDDEN_FOR - 1 + late
    behind = QueueView(ReadMark(world.now - PROMPT, world.now))
    world.queues = SchedulerQueues({"worker": behind})
    world.inspect()
    assert (world.record("a").failure_count == 1) is counted


def test_a_queue_that_was_never_read_shows_nothing_of_the_request() -> None:
    world = brief()
    seen(world, unread=True).overdue("a")
    assert (world.record("a").failure_count, world.record("a").uncounted_timeouts) == (0, 1)


def test_an_attempt_that_was_heard_of_was_sent() -> None:
    world = World(plan(SLOW))
    world.start()
    world.wait(5).shows_progress("a")
    seen(world, unread=True)
    world.wait(10).inspect()
    assert world.record("a").failure_count == 1


def test_an_attempt_with_added_time_or_a_heartbeat_is_not_taken_for_an_extended_one() -> None:
    """Only what was waited for in a backlog may have several timeouts without a request."""
    world = World(plan(SLOW))
    world.start()
    seen(world, unread=True)
    world.wait(10).inspect()
    assert world.record("a").uncounted_timeouts == 1
    world.start()
    world.wait(10).inspect()
    assert (world.record("a").failure_count, world.record("a").uncounted_timeouts) == (1, 0)


def test_an_attempt_with_time_added_by_a_person_is_not_taken_for_an_extended_one() -> None:
    world = started(retry=TWICE, compensation=UNFENCED)
    world.extend(20, "a")
    world.overdue("a")
    world.start()
    assert world.record("a").granted == 20 * SECOND
    for counted in (0, 1):
        seen(world, unread=True).overdue("a")
        assert world.record("a").failure_count == counted
        world.start()


def test_a_queue_of_which_no_mark_is_known_excuses_nothing() -> None:
    for world in (started(), started(compensation=FENCED)):
        seen(world, lag=MINUTE).overdue("a")
        assert world.record("a").failure_count == 1


def test_an_extended_attempt_is_excused_once_more_than_it_was_waited_for() -> None:
    world = extended_by_backlog()
    world.agents = {"worker/normal": AgentView(unread=True)}
    world.wait_until(world.record("a").overdue_at).inspect()
    record = world.record("a")
    assert (record.under_way, record.failure_count, record.uncounted_timeouts) == (False, 0, 2)


@pytest.mark.parametrize("effect", [None, Effect.NONE])
def test_a_refusal_that_ends_the_task_leaves_what_it_proves(effect: Effect | None) -> None:
    world = World(plan(step("a"), on_failure=Archive()))
    world.start()
    world.is_refused("a", effect=effect)
    assert world.record("a").effect is effect


def test_no_service_makes_an_undo_wait_for_longer_than_a_year() -> None:
    compensation = Compensation(fences_late_performs=True, retry=Retry(max_attempts=2))
    world = started(compensation=compensation)
    world.is_refused("a")
    world.start()
    world.fails("a", retry_after=366 * DAY)
    assert (world.state("a"), world.record("a").operation) == (ProcessState.UNDOING, "undo")
    assert world.record("a").not_before == T0 + 365 * DAY


def test_time_that_was_added_to_an_attempt_is_known_while_it_waits_for_its_callback() -> None:
    world = started()
    world.extend(60, "a")
    world.waits_for_callback("a", 600)
    situation = world.record("a").situation
    assert isinstance(situation, AwaitsCallback)
    assert situation.extra == 60 * SECOND
