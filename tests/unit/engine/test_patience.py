"""How long a step is retried: by default for a time, and for longer after an unexpected error."""

from dataclasses import replace
from datetime import timedelta
from statistics import median

import pytest

from roundsman.definition.plan import RetryPlan
from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo, Wait
from roundsman.engine.retries import retry_delay
from roundsman.model.events import AgentView, Decision, Outcome
from roundsman.model.failure import RETRIED, failure_of
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.retry_window import UNEXPECTED_RETRIED_FOR
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError
from tests.support.machine_world import T0, World, plan, step

KEEP = 15 * MINUTE
BUG = StepError("KeyError", "unexpected error; see the log of the worker agent", unexpected=True)
FENCED = Compensation(fences_late_performs=True)
PATIENT = Retry()
MANY_HOURS = timedelta(hours=12)


def patient(found: Step | None = None, jitter: float = 0.5) -> World:
    made = found or step("a", retry=PATIENT, compensation=FENCED)
    world = World(plan(made, complete_within=MANY_HOURS, on_failure=Undo()), jitter=jitter)
    world.start()
    return world


def breaks(world: World, name: str = "a", error: StepError = BUG) -> Decision:
    """The agent answers with an unexpected error."""
    return world.reply(name, Outcome.TRANSIENT, error=error)


def again(world: World, name: str = "a") -> None:
    """The next attempt is made when its time comes."""
    world.wait_until(world.record(name).not_before).inspect()
    world.start()


def until_given_up(world: World, error: StepError, name: str = "a") -> int:
    """Fail every attempt; return how long after the first failure the last attempt began, in ms."""
    first = world.now
    while True:
        began = world.record(name).started_at
        assert began is not None
        breaks(world, name, error)
        if world.state(name) is not ProcessState.PENDING:
            return began - first
        again(world, name)


UNAVAILABLE = StepError("Unavailable", "503")


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_a_transient_failure_is_retried_for_at_least_a_quarter_of_an_hour(jitter: float) -> None:
    world = patient(jitter=jitter)
    lasted = until_given_up(world, UNAVAILABLE)
    assert KEEP <= lasted <= KEEP + 5 * MINUTE
    assert world.task.ending is not None
    assert world.task.ending.undo


@pytest.mark.parametrize("jitter", [0.0, 0.5, 0.999])
def test_an_unexpected_error_is_retried_for_at_least_an_hour(jitter: float) -> None:
    world = patient(jitter=jitter)
    lasted = until_given_up(world, BUG)
    assert UNEXPECTED_RETRIED_FOR <= lasted <= UNEXPECTED_RETRIED_FOR + 5 * MINUTE


def test_the_documented_numbers_of_attempts_are_those_of_the_default() -> None:
    """`docs/reference/workflow.md` has these figures."""
    found = {}
    for error, name in ((UNAVAILABLE, "transient"), (BUG, "unexpected")):
        counts, times = [], []
        for jitter in (0.0, 0.25, 0.5, 0.75, 0.999):
            world = patient(jitter=jitter)
            times.append(until_given_up(world, error) // MINUTE)
            counts.append(world.decisions[-1][0].step("a").failure_count + 1)
        found[name] = (min(times), median(times), max(times), min(counts), max(counts))
    assert found == {"transient": (16, 17, 18, 12, 15), "unexpected": (61, 62, 64, 21, 33)}


def test_the_wait_of_a_patient_step_is_never_less_than_half_of_the_longest() -> None:
    retry = RetryPlan(3, 1_000, 300_000, (), keep_trying_for=KEEP)
    assert [retry_delay(retry, n, 0.0) for n in (1, 2, 3, 9, 10, 50)] == [
        500,
        1_000,
        2_000,
        128_000,
        150_000,
        150_000,
    ]
    assert retry_delay(retry, 1, 0.999) == 999
    assert retry_delay(retry, 50, 0.5) == 225_000


def test_a_service_that_asks_for_no_wait_does_not_get_a_loop() -> None:
    world = patient()
    world.fails("a", retry_after=0)
    assert world.record("a").not_before == T0 + 750
    other = patient()
    other.fails("a", retry_after=90_000)
    assert other.record("a").not_before == T0 + 90_000


def test_a_number_of_attempts_that_is_given_is_all_that_counts() -> None:
    world = patient(step("a", retry=Retry(max_attempts=3)))
    for _ in range(2):
        breaks(world)
        again(world)
    assert world.record("a").retry_window.until is None
    assert world.record("a").retry_window.unexpected_since is None
    assert world.task.failure is None
    decision = breaks(world)
    assert world.task_state() is TaskState.UNDONE
    assert decision.reason.startswith("a: attempt 3 of 3 failed: KeyError")


def test_given_both_the_step_fails_when_both_are_used_up() -> None:
    short = timedelta(seconds=1)
    world = patient(step("a", retry=Retry(max_attempts=4, keep_trying_for=short)))
    until_given_up(world, UNAVAILABLE)
    assert world.record("a").failure_count == 4
    long = patient(step("a", retry=Retry(max_attempts=1, keep_trying_for=timedelta(minutes=1))))
    assert until_given_up(long, UNAVAILABLE) >= MINUTE


def test_every_failure_says_until_when_the_step_is_retried() -> None:
    world = patient()
    decision = breaks(world)
    assert decision.reason == (
        "a: attempt 1 failed: KeyError: unexpected error; see the log of the worker agent "
        "(an unexpected error); retried at 2027-01-15T08:00:00Z, and until "
        "2027-01-15T09:00:00Z at least"
    )
    short = World(plan(step("a", retry=PATIENT), complete_within=timedelta(minutes=5)))
    short.start()
    assert short.fails("a").reason.endswith(
        "retried at 2027-01-15T08:00:00Z, and until 2027-01-15T08:05:00Z at least"
    )


def test_the_last_failure_before_the_last_attempt_says_only_when_that_is() -> None:
    world = patient()
    world.fails("a")
    world.wait_until(T0 + KEEP - 1).start()
    decision = world.fails("a")
    assert decision.reason.endswith("retried at 2027-01-15T08:15:01Z")
    again(world)
    world.fails("a")
    assert world.task.ending is not None


def test_an_attempt_that_begins_at_the_end_of_the_time_is_the_last() -> None:
    world = patient(step("a", retry=Retry(max_attempts=1, keep_trying_for=timedelta(minutes=1))))
    world.fails("a")
    world.wait_until(T0 + MINUTE - 1).start()
    world.fails("a", retry_after=1)
    assert world.state("a") is ProcessState.PENDING
    again(world)
    assert world.record("a").started_at is not None
    world.fails("a")
    assert world.state("a") is ProcessState.ERROR
    exact = patient(step("a", retry=Retry(max_attempts=1, keep_trying_for=timedelta(minutes=1))))
    exact.fails("a")
    exact.wait_until(T0 + MINUTE).start()
    exact.fails("a")
    assert exact.state("a") is ProcessState.ERROR


# --- what an unexpected error does meanwhile ------------------------------------------------------


def test_an_unexpected_error_alerts_once_while_it_is_retried_and_undoes_nothing() -> None:
    first = step("a", retry=PATIENT, compensation=FENCED)
    world = patient(first)
    breaks(world)
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.how, failure.step, failure.error_type) == (RETRIED, "a", "KeyError")
    assert world.task.failure == failure.group
    assert world.task_state() is TaskState.RETRY
    assert (world.task.failed_at, world.record("a").retry_window.unexpected_since) == (T0, T0)
    owed = world.task.owed[-1]
    assert (owed.kind, owed.name) == ("alert", "unexpected_error")
    assert "retried at" in owed.detail
    again(world)
    assert world.task.failure == failure.group, "also while it is attempted"
    breaks(world)
    again(world)
    breaks(world)
    assert world.owed().count("unexpected_error") == 1
    assert world.record("a").retry_window.unexpected_since == T0


def test_a_repaired_step_leaves_the_group_and_the_task_completes() -> None:
    world = patient()
    breaks(world)
    again(world)
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED
    assert (world.task.failure, world.task.failed_at) == (None, world.task.ended_at)
    record = world.record("a")
    assert (
        record.retry_window.until,
        record.retry_window.unexpected_since,
        record.retry_window.waits,
    ) == (None, None, 0)
    assert "undo" not in " ".join(
        row.kind for _, _, made in world.decisions for row in made.history
    )


def test_a_task_that_goes_on_after_the_repair_is_in_no_group() -> None:
    a = step("a", retry=PATIENT)
    world = World(plan(a, step("b", a, retry=PATIENT), complete_within=MANY_HOURS))
    world.start()
    breaks(world)
    again(world)
    world.succeeds("a")
    assert world.task_state() is TaskState.ACTIVE
    assert (world.task.failure, world.task.failed_at) == (None, None)


def test_another_failure_meanwhile_keeps_the_task_in_its_group() -> None:
    world = patient()
    breaks(world)
    group, until = world.task.failure, world.record("a").retry_window.until
    again(world)
    world.fails("a")
    assert (world.task.failure, world.record("a").retry_window.until) == (group, until)
    again(world)
    world.gives_back("a")
    assert world.task.failure == group
    assert world.owed().count("unexpected_error") == 1


def test_one_failure_is_one_alert_whatever_errors_its_attempts_end_with() -> None:
    world = patient()
    breaks(world)
    group = world.task.failure
    assert group is not None
    for error in ("TypeError", "KeyError", "ValueError"):
        again(world)
        breaks(world, error=replace(BUG, type=error))
        assert world.task.failure == group
    assert world.owed().count("unexpected_error") == 1
    assert world.record("a").retry_window.unexpected_since == T0


def test_the_error_of_another_step_has_an_alert_when_the_first_step_goes_on() -> None:
    world = World(plan(step("a", retry=PATIENT), step("b", retry=PATIENT)))
    world.start()
    breaks(world, "a")
    first = world.task.failure
    world.wait(1)
    breaks(world, "b")
    assert (world.task.failure, world.owed().count("unexpected_error")) == (first, 1)
    world.wait_until(world.record("b").not_before).inspect()
    world.start()
    assert world.record("a").under_way
    world.succeeds("a")
    assert world.task.failure not in (None, first)
    assert world.owed().count("unexpected_error") == 2


def test_the_hour_counts_from_the_first_unexpected_error() -> None:
    world = patient()
    world.fails("a")
    assert world.record("a").retry_window.until == T0 + KEEP
    again(world)
    world.wait(600)
    breaks(world)
    assert world.record("a").retry_window.unexpected_since == world.now
    assert world.record("a").retry_window.until == world.now + UNEXPECTED_RETRIED_FOR


def test_a_longer_patience_of_the_plan_is_not_cut_to_an_hour() -> None:
    world = patient(step("a", retry=Retry(keep_trying_for=timedelta(hours=3))))
    breaks(world)
    assert world.record("a").retry_window.until == T0 + 180 * MINUTE


def test_after_the_hour_the_strategy_decides() -> None:
    undone = patient()
    until_given_up(undone, BUG)
    assert undone.state("a") is ProcessState.UNDOING
    assert undone.task.failure is None, "its undo has not failed"
    kept = patient(step("a", retry=PATIENT, on_failure=Archive()))
    until_given_up(kept, BUG)
    assert kept.task_state() is TaskState.ARCHIVED
    failure = failure_of(kept.task)
    assert failure is not None
    assert failure.how == "archived"
    assert kept.task.failed_at == kept.task.ended_at


def test_the_tasks_own_end_comes_first() -> None:
    world = World(plan(step("a", retry=PATIENT), complete_within=timedelta(minutes=20)))
    world.start()
    while world.task.ending is None:
        breaks(world)
        again(world)
    assert world.now == T0 + 20 * MINUTE
    assert world.task_state() is TaskState.ARCHIVED


def test_what_is_proven_of_an_effect_is_known_after_the_last_attempt_too() -> None:
    world = patient(step("a", retry=Retry(max_attempts=1), on_failure=Archive()))
    error = StepError("ResultNotJson", "the function returned a set", unexpected=True)
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.STANDS)
    assert world.state("a") is ProcessState.PROCESSED
    disproved = patient(step("a", retry=Retry(max_attempts=1), on_failure=Archive()))
    disproved.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE)
    assert disproved.record("a").effect is Effect.NONE


def test_an_undo_is_patient_too_and_archives_after_the_hour() -> None:
    world = patient()
    world.is_refused("a")
    world.start()
    assert world.state("a") is ProcessState.UNDOING
    first = world.now
    while world.state("a") is ProcessState.UNDOING:
        breaks(world)
        if world.state("a") is ProcessState.UNDOING:
            assert world.task.failure is not None
            again(world)
    assert world.now - first >= UNEXPECTED_RETRIED_FOR
    assert world.task_state() is TaskState.ARCHIVED
    assert world.record("a").failure_count >= 8


# --- what does not use up the time ----------------------------------------------------------------


def test_the_time_on_hold_does_not_count() -> None:
    world = patient()
    world.fails("a")
    again(world)
    world.wait(1)
    world.gives_back("a", retry_after=60_000)
    parked = world.now
    assert world.record("a").retry_window.until == T0 + KEEP + SECOND, (
        "nor the attempt that was rejected"
    )
    again(world)
    assert world.record("a").started_at == world.now
    assert world.record("a").retry_window.until == T0 + KEEP + SECOND + world.now - parked
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_a_step_that_is_parked_twice_is_credited_once() -> None:
    world = patient()
    world.fails("a")
    world.hold("worker", 100_000)
    begun = world.now
    again(world)
    parked = world.record("a").held_since
    assert parked is not None
    for _ in range(2):
        world.wait(60).inspect()
        world.start()
    assert world.record("a").retry_window.until == T0 + KEEP
    world.release("worker")
    again(world)
    assert world.record("a").started_at == world.now > begun
    assert world.record("a").retry_window.until == T0 + KEEP + world.now - parked


def test_a_request_that_was_never_read_does_not_count() -> None:
    world = patient()
    world.fails("a")
    again(world)
    sent = world.now
    world.agents = {
        "worker/normal": AgentView(lag=SECOND, reads=sent - MINUTE, read_up_to=sent - 1)
    }
    world.overdue("a")
    assert world.record("a").failure_count == 1
    assert world.record("a").retry_window.until == T0 + KEEP + world.now - sent


def test_added_time_does_not_count() -> None:
    world = patient()
    world.fails("a")
    again(world)
    sent = world.now
    world.extend(60, "a")
    world.overdue("a")
    assert world.record("a").failure_count == 1
    assert world.record("a").retry_window.until == T0 + KEEP + world.now - sent


def test_a_timeout_that_counts_uses_up_the_time() -> None:
    world = patient()
    read = AgentView(read_up_to=T0 + KEEP, reads=T0 + KEEP, read_lock="another")
    world.agents = {"worker/normal": read}
    world.wait(120).inspect()
    first = world.now
    assert world.record("a").failure_count == 1
    assert world.record("a").retry_window.until == first + KEEP
    assert world.record("a").not_before == first + 750, "an attempt that was short waits too"
    again(world)
    world.wait(120).inspect()
    assert world.record("a").retry_window.until == first + KEEP
    assert world.record("a").not_before == world.now + 1_500


def test_a_callback_that_is_waited_for_begins_a_new_series() -> None:
    world = patient()
    breaks(world)
    again(world)
    world.waits_for_callback("a", 3_600)
    assert world.record("a").retry_window.until is None
    assert world.task.failure is None


# --- an agent that reads nothing ------------------------------------------------------------------

OLD_MARK = AgentView(read_up_to=T0 - MINUTE)


def test_an_agent_that_reads_nothing_is_an_unexpected_error_from_the_second_time_on() -> None:
    """That is how an import error of the agent's module shows: its function never begins."""
    world = patient()
    world.agents = {"worker/normal": OLD_MARK}
    world.overdue("a")
    record = world.record("a")
    assert record.error == StepError(
        "Overdue", "the worker agent reads no requests; see its log", unexpected=False
    )
    assert (record.failure_count, world.task.failure) == (0, None)
    world.start()
    world.overdue("a")
    record = world.record("a")
    assert record.error is not None
    assert record.error.unexpected
    assert (record.failure_count, record.retry_window.unexpected_since) == (0, world.now)
    assert world.task.failure is not None
    assert world.owed().count("unexpected_error") == 1
    since = world.now
    world.start()
    breaks(world)
    assert world.record("a").retry_window.until == world.now + UNEXPECTED_RETRIED_FOR
    assert world.record("a").retry_window.unexpected_since == since


def test_an_agent_that_never_read_anything_is_retried_for_an_hour() -> None:
    world = patient()
    world.agents = {"worker/normal": AgentView(unread=True)}
    world.overdue("a")
    assert world.record("a").failure_count == 0, "the request may not have been sent"
    world.start()
    world.overdue("a")
    record = world.record("a")
    assert record.failure_count == 1
    assert record.error is not None
    assert record.error.unexpected
    assert record.retry_window.until == world.now + UNEXPECTED_RETRIED_FOR
    assert record.not_before == world.now + 750


@pytest.mark.parametrize(
    "view",
    [
        AgentView(
            lag=SECOND, reads=T0 - 2 * MINUTE, read_up_to=T0 - MINUTE
        ),  # it reads, far behind
        AgentView(read_up_to=T0 + KEEP, reads=None),  # it may have read the request
    ],
)
def test_an_agent_that_may_read_is_only_late(view: AgentView) -> None:
    world = patient()
    world.agents = {"worker/normal": view}
    for _ in range(3):
        world.overdue("a")
        error = world.record("a").error
        assert error is None or not error.unexpected
        world.wait(10).inspect()
        world.start()
    assert world.task.failure is None


def test_an_agent_that_was_heard_of_is_only_late() -> None:
    world = patient(step("a", retry=PATIENT, heartbeat_within=timedelta(seconds=5)))
    world.agents = {"worker/normal": AgentView(unread=True)}
    for _ in range(3):
        world.shows_progress("a")
        world.wait_until(world.record("a").overdue_at).inspect()
        error = world.record("a").error
        assert error is not None
        assert not error.unexpected
        again(world)


def test_a_step_with_a_number_of_attempts_keeps_its_timeouts() -> None:
    world = patient(step("a", retry=Retry(max_attempts=3)))
    world.agents = {"worker/normal": OLD_MARK}
    world.overdue("a")
    world.start()
    world.overdue("a")
    assert world.record("a").error is None
    assert world.task.failure is None


# --- other strategies -----------------------------------------------------------------------------


def test_a_step_with_another_agent_goes_there_after_its_attempts() -> None:
    world = patient(step("a", agents=("one", "two"), retry=PATIENT, compensation=FENCED))
    for _ in range(2):
        breaks(world)
        again(world)
    breaks(world)
    assert world.state("a") is ProcessState.UNDOING
    world.start()
    world.succeeds("a")
    assert world.record("a").agent == "two"
    assert world.record("a").retry_window.until is None
    lasted = until_given_up(world, BUG)
    assert lasted >= UNEXPECTED_RETRIED_FOR, "the last agent is retried for the whole time"


def test_waits_follow_the_time_and_are_counted() -> None:
    wait = Wait(timedelta(minutes=30), 2, then=Archive())
    world = patient(step("a", retry=PATIENT, on_failure=wait))
    waits = []
    while world.state("a") is ProcessState.PROCESSING:
        decision = world.fails("a")
        if "waits" in [row.kind for row in decision.history]:
            waits.append(world.record("a").retry_window.waits)
        if world.state("a") is ProcessState.PENDING:
            again(world)
    assert waits == [1, 2]
    assert world.now >= T0 + KEEP + 60 * MINUTE
    assert world.task_state() is TaskState.ARCHIVED


def test_a_resubmitted_step_has_its_whole_time_again() -> None:
    world = patient(step("a", retry=PATIENT, on_failure=Archive()))
    until_given_up(world, BUG)
    assert world.record("a").retry_window.until is not None, (
        "so that an exhausted step is recognised"
    )
    world.deliver_owed()
    world.resubmit()
    assert (world.record("a").retry_window.until, world.task.failure) == (None, None)
    world.start()
    breaks(world)
    assert world.record("a").retry_window.until == world.now + UNEXPECTED_RETRIED_FOR


# --- details --------------------------------------------------------------------------------------

MANY_ATTEMPTS = Retry(max_attempts=2)
READ = AgentView(read_up_to=T0 + KEEP, reads=T0 + KEEP, read_lock="another")


def test_a_timeout_that_counts_begins_the_calls_that_are_not_counted_anew() -> None:
    world = patient()
    world.agents = {"worker/normal": READ}
    world.gives_back("a", called=True)
    again(world)
    assert world.record("a").uncounted_calls == 1
    world.wait(120).inspect()
    assert (world.record("a").failure_count, world.record("a").uncounted_calls) == (1, 0)


def test_a_step_of_an_ending_task_does_not_wait_by_its_strategy() -> None:
    wait = Wait(timedelta(minutes=5), 3, then=Undo())
    a = step("a", retry=Retry(max_attempts=1), on_failure=wait)
    world = World(plan(a, step("b", retry=Retry(max_attempts=1)), on_failure=Archive()))
    world.start()
    world.is_refused("b")
    assert world.task.ending is not None
    world.fails("a")
    assert world.state("a") is ProcessState.ERROR
    assert world.task_state() is TaskState.ARCHIVED


def test_an_undo_before_the_next_agent_does_not_wait_by_the_strategy() -> None:
    wait = Wait(timedelta(minutes=5), 3, then=Undo())
    once = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
    a = step("a", agents=("x", "y"), retry=MANY_ATTEMPTS, on_failure=wait, compensation=once)
    world = patient(a)
    world.fails("a")
    again(world)
    world.fails("a")
    world.start()
    assert world.state("a") is ProcessState.UNDOING
    world.fails("a")
    assert world.task_state() is TaskState.ARCHIVED


def test_waits_are_counted_only_where_the_number_of_attempts_does_not_say_them() -> None:
    wait = Wait(timedelta(minutes=5), 3, then=Undo())
    counted = patient(step("a", retry=Retry(max_attempts=1), on_failure=wait))
    counted.fails("a")
    assert (counted.record("a").retry_window.waits, counted.record("a").failure_count) == (0, 1)
    timed = Retry(max_attempts=1, keep_trying_for=timedelta(seconds=1))
    world = patient(step("a", retry=timed, on_failure=wait))
    world.fails("a", retry_after=2_000)
    again(world)
    world.fails("a")
    assert world.record("a").retry_window.waits == 1
    again(world)
    world.succeeds("a")
    assert world.record("a").retry_window.waits == 0


def test_the_end_of_the_task_does_not_end_the_retries_of_an_undo() -> None:
    made = step("a", compensation=Compensation(fences_late_performs=True))
    world = World(plan(made, complete_within=timedelta(minutes=5), on_failure=Undo()))
    world.start()
    world.is_refused("a")
    world.start()
    assert world.fails("a").reason.endswith(
        "retried at 2027-01-15T08:00:00Z, and until 2027-01-15T08:15:00Z at least"
    )


def test_an_attempt_that_is_made_when_the_time_is_over_announces_no_other() -> None:
    assert (
        patient().fails("a", retry_after=KEEP).reason.endswith("; retried at 2027-01-15T08:15:00Z")
    )


def test_only_a_second_silence_in_a_row_is_an_unexpected_error() -> None:
    world = patient()
    world.agents = {"worker/normal": OLD_MARK}
    world.fails("a")
    again(world)
    world.overdue("a")
    record = world.record("a")
    assert record.error is not None
    assert (record.error.type, record.error.unexpected) == ("Overdue", False)
    assert world.task.failure is None


def test_an_unread_request_in_a_backlog_keeps_the_last_error() -> None:
    world = patient()
    world.fails("a")
    again(world)
    sent = world.now
    world.agents = {
        "worker/normal": AgentView(lag=SECOND, reads=sent - MINUTE, read_up_to=sent - 1)
    }
    world.overdue("a")
    assert world.record("a").error == UNAVAILABLE
    assert world.record("a").retry_window.unexpected_since is None


def test_an_attempt_under_way_uses_up_the_time() -> None:
    beating = step("a", retry=PATIENT, heartbeat_within=timedelta(seconds=5))
    world = patient(beating)
    world.fails("a")
    again(world)
    world.wait(3).shows_progress("a")
    assert world.record("a").retry_window.until == T0 + KEEP


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_clock_that_is_behind_does_not_shorten_the_time(seconds: int) -> None:
    world = patient()
    world.fails("a")
    again(world)
    world.wait(seconds).gives_back("a")
    assert world.record("a").retry_window.until == T0 + KEEP


def test_a_late_success_leaves_what_is_known_of_the_retries() -> None:
    world = patient(step("a", retry=PATIENT, on_failure=Archive()))
    until_given_up(world, BUG)
    before = world.record("a")
    assert before.retry_window.until is not None
    assert before.retry_window.unexpected_since is not None
    world.succeeds("a", lock=before.locked_by)
    after = world.record("a")
    assert after.effect is Effect.STANDS
    assert (after.retry_window.until, after.retry_window.unexpected_since) == (
        before.retry_window.until,
        before.retry_window.unexpected_since,
    )


def test_a_resubmitted_task_leaves_the_group_in_which_it_had_ended() -> None:
    a, b = step("a", retry=PATIENT), step("b", retry=Retry(max_attempts=1))
    world = World(plan(a, b, complete_within=MANY_HOURS, on_failure=Archive()))
    world.start()
    breaks(world)
    again(world)
    world.fails("a")
    assert world.record("a").retry_window.unexpected_since is not None, (
        "it is still retried because of it"
    )
    world.is_refused("b")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.task.failure is not None
    world.deliver_owed()
    world.resubmit()
    assert world.task.failure is None


def test_a_step_that_breaks_again_after_a_resubmission_joins_its_group_again() -> None:
    a, b = step("a", retry=PATIENT), step("b", retry=Retry(max_attempts=1))
    world = World(plan(a, b, complete_within=MANY_HOURS, on_failure=Archive()))
    world.start()
    breaks(world)
    joined = world.task.failure
    again(world)
    world.fails("a")
    world.is_refused("b")
    world.deliver_owed()
    world.resubmit()
    assert world.task.failure is None
    again(world)
    breaks(world)
    assert world.task.failure == joined is not None


def test_in_one_instant_a_task_may_join_a_group_end_in_another_and_join_the_first_again() -> None:
    a, b = step("a", retry=PATIENT), step("b", retry=Retry(max_attempts=1))
    world = World(plan(a, b, complete_within=MANY_HOURS, on_failure=Archive()))
    world.start()
    breaks(world)
    joined = world.task.failure
    world.is_refused("b")
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.error_type, failure.group) == ("CardDeclined", world.task.failure)
    world.deliver_owed()
    world.resubmit()
    assert world.task.failure == joined not in (None, failure.group)


def test_an_ended_task_stays_in_its_group_while_one_of_its_failed_undos_is_resolved() -> None:
    once = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
    names = ("a", "b")
    made = [step(name, compensation=once) for name in names]
    last = step("c", *made, retry=Retry(max_attempts=1))
    world = World(plan(*made, last, on_failure=Undo()))
    world.start()
    for name in names:
        world.succeeds(name)
    world.is_refused("c")
    world.start()
    for name in names:
        error = StepError(f"Refused{name.upper()}", "no")
        world.reply(name, Outcome.PERMANENT, error=error)
    assert world.task_state() is TaskState.ARCHIVED
    failure = failure_of(world.task)
    assert failure is not None
    assert (failure.error_type, failure.group) == ("RefusedA", world.task.failure)
    world.wait(24 * 3_600).resolve("a")
    assert (world.task_state(), world.task.failure) == (TaskState.ARCHIVED, failure.group)
