"""A step that is polled: when it is polled again, what ends that, and what a person may do."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo, Wait
from roundsman.engine.due import due
from roundsman.engine.requests import request_for
from roundsman.errors import Refused
from roundsman.model.events import Claimant, Decision, InspectAt, Outcome, Reconcile
from roundsman.model.instants import SECOND, second
from roundsman.model.polling import Polling
from roundsman.model.situations import Parked, Ready, WaitsUntil
from roundsman.model.states import ProcessState, SituationName, TaskState
from roundsman.model.task import StepError, StepRecord, idempotency_key
from tests.support.machine_world import T0, World, plan, requests_in, step
from tests.support.steps import changed_step

MINUTE, HOUR = 60, 3_600
FENCED = Compensation(fences_late_performs=True)
POLLED = step("a", compensation=FENCED, retry=Retry(max_attempts=2))
CLAIMANT = Claimant("sched", "nonce")


def story(asked: Step = POLLED, **more: object) -> World:
    """A started task of one step, which is at its agent."""
    made = plan(asked, **{"complete_within": timedelta(days=2), "on_failure": Undo(), **more})  # type: ignore[arg-type]  # a test's own shorthand
    world = World(made)
    world.start()
    return world


def polled(asked: Step = POLLED, **more: object) -> World:
    """The same, once its agent has replied that the job is not done: again in 60 s, for 600 s."""
    world = story(asked, **more)
    world.is_not_done("a")
    world.deliver_owed()
    return world


def polled_again(world: World, again_in: float = 60, within: float = 600) -> Decision:
    """The next poll, when it is due."""
    world.wait_until(world.record("a").not_before).inspect()
    world.start()
    return world.is_not_done("a", again_in, within)


def of_polls(record: StepRecord) -> tuple[int, int | None, int | None]:
    found = record.polling
    return NONE if found is None else (found.count, found.since, found.until)


def poll_until(record: StepRecord) -> int | None:
    return of_polls(record)[2]


NONE = (0, None, None)


def rows(decision: Decision) -> list[tuple[str, str | None, int | None, str]]:
    return [(row.kind, row.step, row.attempt, row.reason) for row in decision.history]


def kinds(world: World) -> list[str]:
    return [row.kind for _, _, decision in world.decisions for row in decision.history]


# --- the wait -------------------------------------------------------------------------------------


def test_the_first_poll_begins_the_wait_and_is_a_row_of_the_history() -> None:
    world = story()
    before = world.record("a")
    decision = world.is_not_done("a")
    record, again, until = world.record("a"), T0 + 60 * SECOND, T0 + 600 * SECOND
    assert record.situation == WaitsUntil(not_before=again, claim_by=again + 30 * SECOND)
    assert record.situation_name is SituationName.WAITS
    assert of_polls(record) == (1, T0, until)
    assert (record.failure_count, record.error, record.outcome_unknown) == (0, None, False)
    assert (record.round, record.started_at) == (1, before.started_at)
    assert decision.actions == (InspectAt(again),)
    why = f"a: not yet; polled again at {second(again)}, and until {second(until)} at most"
    assert rows(decision) == [("polled", "a", None, why)]
    assert world.task_state() is TaskState.RETRY
    world.deliver_owed()
    assert due(world.task, world.now) == again


def test_nothing_is_due_before_its_time() -> None:
    world = polled()
    before = world.task
    assert world.wait(59.999).inspect().actions == ()
    assert world.start().actions == ()
    assert world.task is before


def test_the_next_poll_is_the_same_request_under_the_same_key() -> None:
    world = story()
    first = request_for(world.plan, world.task, "a", None, world.now)
    world.is_not_done("a")
    world.wait(60).inspect()
    assert world.record("a").situation_name is SituationName.READY
    assert requests_in(world.start(CLAIMANT)) == ["a"]
    asked = request_for(world.plan, world.task, "a", None, world.now)
    assert (asked.idempotency_key, asked.attempt) == (first.idempotency_key, 1)
    assert asked.outcome_unknown is False
    assert asked.lock != first.lock
    assert of_polls(world.record("a")) == (1, T0, T0 + 600 * SECOND)


def test_a_hundred_polls_are_one_row_and_move_no_time() -> None:
    world = story(complete_within=timedelta(days=30))
    ends_by = world.task.complete_by
    world.is_not_done("a", within=10_000)
    for _ in range(99):
        polled_again(world, within=10_000)
    assert of_polls(world.record("a")) == (100, T0, T0 + 10_000 * SECOND)
    assert kinds(world) == ["polled"]
    assert world.task.complete_by == ends_by
    assert world.record("a").failure_count == 0


def test_later_polls_say_how_often_and_since_when() -> None:
    world = polled()
    decision = polled_again(world, 90)
    at = T0 + 150 * SECOND
    assert decision.reason == f"a: not yet; polled 2 times in 60 s; polled again at {second(at)}"
    assert decision.history == ()
    assert of_polls(world.record("a")) == (2, T0, T0 + 600 * SECOND)
    assert world.record("a").not_before == at


def test_the_first_reply_under_the_key_says_for_how_long() -> None:
    world = polled()
    polled_again(world, within=HOUR)
    assert poll_until(world.record("a")) == T0 + 600 * SECOND
    polled_again(world, within=90)
    assert poll_until(world.record("a")) == T0 + 600 * SECOND


def test_no_interval_is_shorter_than_a_second() -> None:
    world = story()
    world.is_not_done("a", again_in=0, within=0)
    assert world.record("a").not_before == T0 + SECOND
    assert poll_until(world.record("a")) == T0 + SECOND


def test_a_reply_without_its_times_is_polled_again_after_a_second() -> None:
    world = story()
    world.reply("a", Outcome.POLLING)
    assert world.record("a").not_before == T0 + SECOND
    assert poll_until(world.record("a")) == T0 + SECOND


def test_it_does_not_wait_beyond_the_end_of_its_polling() -> None:
    world = polled()
    polled_again(world, again_in=570, within=HOUR)
    assert world.record("a").not_before == T0 + 600 * SECOND


def test_it_does_not_wait_beyond_the_end_of_its_task_which_does_not_move() -> None:
    world = story(complete_within=timedelta(minutes=1))
    decision = world.is_not_done("a", again_in=120, within=HOUR)
    ends_by = T0 + MINUTE * SECOND
    assert world.record("a").situation == WaitsUntil(not_before=ends_by, claim_by=ends_by)
    assert decision.actions == (InspectAt(ends_by),)
    assert world.task.complete_by == ends_by
    world.wait(60).inspect()
    assert world.state("a") is ProcessState.UNDOING
    assert of_polls(world.record("a")) == NONE


def test_a_poll_ends_a_series_of_failures() -> None:
    world = story(replace(POLLED, retry=Retry(max_attempts=2, keep_trying_for=timedelta(hours=1))))
    error = StepError("KeyError", "unexpected", unexpected=True)
    world.reply("a", Outcome.TRANSIENT, error=error)
    world.wait_until(world.record("a").not_before).inspect()
    world.start()
    assert world.record("a").failure_count == 1
    assert world.record("a").outcome_unknown
    world.is_not_done("a")
    record = world.record("a")
    assert (record.failure_count, record.error, record.outcome_unknown) == (0, None, False)
    assert (record.retry_window.until, record.retry_window.unexpected_since) == (None, None)


def test_a_failure_between_two_polls_counts_and_keeps_the_time() -> None:
    world = polled()
    world.wait(60).inspect()
    world.start()
    world.fails("a")
    assert world.record("a").failure_count == 1
    assert of_polls(world.record("a")) == (1, T0, T0 + 600 * SECOND)


def test_a_lost_reply_leads_to_the_same_poll_again() -> None:
    world = polled()
    world.wait(60).inspect()
    world.start()
    key = idempotency_key("ord-1", "a", "perform", world.record("a"))
    world.overdue("a")
    world.start()
    record = world.record("a")
    assert (record.failure_count, of_polls(record)) == (1, (1, T0, T0 + 600 * SECOND))
    assert idempotency_key("ord-1", "a", "perform", record) == key
    world.is_not_done("a")
    assert world.record("a").failure_count == 0
    assert of_polls(world.record("a"))[0] == 2


def test_a_repeated_or_late_reply_changes_nothing() -> None:
    world = story()
    lock = world.lock("a")
    world.is_not_done("a")
    before = world.task
    again = world.is_not_done("a", lock=lock)
    assert world.task is before
    assert again.reason == "a: polling reply ignored: no attempt is under way"
    world.wait(60).start()
    world.is_not_done("a", lock=lock)
    assert of_polls(world.record("a"))[0] == 1


def test_time_outs_in_a_row_end_with_a_poll() -> None:
    world = story()
    record = replace(world.record("a"), uncounted_timeouts=2, uncounted_calls=3)
    world.task = replace(world.task, steps={"a": record})
    world.is_not_done("a")
    assert world.record("a").uncounted_timeouts == 0
    assert world.record("a").uncounted_calls == 0


def test_an_unfenced_request_may_act_while_the_step_waits() -> None:
    world = story(replace(POLLED, compensation=Compensation()))
    until = world.record("a").until
    world.is_not_done("a", again_in=5)
    assert world.record("a").acts_until == until


def test_a_step_that_waits_for_its_callback_is_not_polled() -> None:
    world = story()
    world.waits_for_callback("a", 600)
    before = world.task
    decision = world.is_not_done("a")
    assert world.task is before
    assert decision.reason == "a: polling reply ignored: it waits for its callback"


def test_after_polls_a_step_may_wait_for_a_callback() -> None:
    world = polled()
    world.wait(60).start()
    world.waits_for_callback("a", 600)
    assert world.record("a").waiting
    assert of_polls(world.record("a")) == NONE


# --- its end --------------------------------------------------------------------------------------


def test_a_success_ends_it_with_a_row() -> None:
    world = polled()
    polled_again(world)
    world.wait_until(world.record("a").not_before).start()
    decision = world.succeeds("a", {"file": "b"})
    assert rows(decision) == [
        ("polled", "a", None, "a: polled 3 times in 2 min; processed"),
    ]
    assert of_polls(world.record("a")) == NONE
    assert world.task_state() is TaskState.COMPLETED


def test_a_step_that_was_not_polled_gets_no_row() -> None:
    world = story()
    assert world.succeeds("a").history == ()


def test_when_its_time_is_over_it_has_failed_and_is_undone() -> None:
    world = polled()
    polled_again(world, again_in=540)
    world.wait_until(T0 + 600 * SECOND).start()
    decision = world.is_not_done("a")
    why = "a: not done within 10 min of its first poll; polled 3 times in 10 min"
    assert rows(decision)[0] == ("failed", "a", 1, why)
    assert world.task.ending is not None
    assert (world.task.ending.why, world.task.ending.undo) == (why, True)
    error = StepError("Overdue", "not done within 10 min of its first poll")
    assert world.task.ending.error == error
    record = world.record("a")
    assert (record.process_state, record.error) == (ProcessState.UNDOING, error)
    assert record.outcome_unknown
    assert of_polls(record) == NONE


def test_a_time_that_is_not_over_is_not_over() -> None:
    world = polled()
    polled_again(world, again_in=HOUR, within=HOUR)
    world.now = T0 + 600 * SECOND - 1
    world.run_now()
    world.start()
    world.is_not_done("a")
    assert world.record("a").situation_name is SituationName.WAITS
    assert world.record("a").not_before == T0 + 600 * SECOND


def test_an_archived_step_has_an_unknown_effect_and_one_more_failure() -> None:
    world = polled(on_failure=Archive())
    world.wait(600).start()
    world.is_not_done("a")
    record = world.record("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert (record.process_state, record.failure_count) == (ProcessState.ERROR, 1)
    assert (record.outcome_unknown, record.effect) == (True, None)
    assert of_polls(record) == NONE


def test_it_does_not_wait_on_by_its_strategy() -> None:
    world = polled(replace(POLLED, on_failure=Wait(timedelta(minutes=5), times=3, then=Undo())))
    world.wait(600).start()
    world.is_not_done("a")
    assert world.state("a") is ProcessState.UNDOING


def test_a_step_of_several_agents_is_undone_and_begins_at_the_next_one() -> None:
    several = replace(POLLED, agent="", agents=("worker", "backup"))
    world = polled(several)
    world.wait(600).start()
    assert world.record("a").agent is None
    decision = world.is_not_done("a")
    assert world.task.ending is None
    assert world.state("a") is ProcessState.UNDOING
    assert rows(decision)[0][0] == "failed"
    world.start()
    world.succeeds("a")
    world.start()
    assert world.record("a").agent == "backup"
    assert of_polls(world.record("a")) == NONE


def test_a_refusal_ends_it() -> None:
    world = polled(on_failure=Archive())
    world.wait(60).start()
    world.is_refused("a")
    assert world.state("a") is ProcessState.ERROR
    assert of_polls(world.record("a")) == NONE


def test_the_last_failure_ends_it() -> None:
    world = polled(replace(POLLED, retry=Retry(max_attempts=1)), on_failure=Archive())
    world.wait(60).start()
    world.fails("a")
    assert world.state("a") is ProcessState.ERROR
    assert of_polls(world.record("a")) == NONE


def test_a_resubmitted_step_is_polled_for_its_whole_time_again() -> None:
    world = polled(on_failure=Archive())
    world.wait(600).start()
    world.is_not_done("a")
    world.wait(HOUR).resubmit()
    world.start()
    world.is_not_done("a", within=300)
    assert of_polls(world.record("a")) == (1, world.now, world.now + 300 * SECOND)


def test_an_undo_that_is_not_done_yet_has_failed() -> None:
    world = polled()
    world.cancel()
    world.start()
    assert world.record("a").situation_name is SituationName.UNDO_AT_AGENT
    world.is_not_done("a")
    record = world.record("a")
    assert record.error == StepError("CannotWait", "an undo cannot be polled")
    assert (record.failure_count, record.situation_name) == (1, SituationName.UNDO_WAITS)
    assert of_polls(record) == NONE


# --- a task that ends -----------------------------------------------------------------------------


def test_a_cancelled_task_is_undone_at_once_and_says_how_often_it_was_polled() -> None:
    world = polled()
    decision = world.wait(30).cancel()
    assert world.record("a").situation_name is SituationName.UNDO_READY
    assert ("undo", "a", None, "a: its undo begins; polled once in 30 s") in rows(decision)
    assert of_polls(world.record("a")) == NONE


def test_an_undo_of_a_step_that_is_not_polled_says_nothing_of_it() -> None:
    world = story()
    world.succeeds("a")
    decision = world.ask_undo()
    assert ("undo", "a", None, "a: its undo begins") in rows(decision)


def test_a_task_that_is_cancelled_without_undo_is_over() -> None:
    world = polled()
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    assert world.wait(60).inspect().actions == ()


def test_a_step_whose_task_ends_at_a_poll_is_not_polled_again() -> None:
    world = story()
    world.cancel()
    decision = world.is_not_done("a")
    assert ("undo", "a", None, "a: its undo begins; polled once in 0 ms") in rows(decision)
    assert world.record("a").situation_name is SituationName.UNDO_AT_AGENT


def test_a_step_that_waits_in_an_archived_task_is_polled_for_its_whole_time_again() -> None:
    a, b = POLLED, step("b", retry=Retry(max_attempts=1))
    made = plan(a, b, complete_within=timedelta(days=2), on_failure=Archive())
    world = World(made)
    world.start()
    world.is_not_done("a")
    world.fails("b")
    assert world.task_state() is TaskState.ARCHIVED
    assert of_polls(world.record("a")) == (1, T0, T0 + 600 * SECOND)
    world.wait(HOUR).resubmit()
    assert of_polls(world.record("a")) == NONE
    assert requests_in(world.start()) == ["a", "b"]


# --- holds, restores and persons ------------------------------------------------------------------


def test_a_hold_moves_the_end_of_the_polling() -> None:
    world = polled()
    world.hold("worker", HOUR)
    world.wait(60).start()
    assert isinstance(world.record("a").situation, Parked)
    world.release("worker").wait(120)
    world.inspect()
    world.start()
    record = world.record("a")
    assert record.situation_name is SituationName.AT_AGENT
    assert poll_until(record) == T0 + (600 + 120) * SECOND
    assert of_polls(record)[0] == 1


def test_a_poll_that_is_given_back_is_not_counted_and_its_time_does_not_count() -> None:
    world = polled()
    world.wait(60).start()
    world.wait(10)
    world.gives_back("a")
    record = world.record("a")
    assert poll_until(record) == T0 + (600 + 10) * SECOND
    assert (of_polls(record)[0], record.failure_count) == (1, 0)


def test_a_person_ends_the_wait() -> None:
    world = polled()
    world.wait(5).run_now()
    assert isinstance(world.record("a").situation, Ready)
    assert requests_in(world.start()) == ["a"]
    assert of_polls(world.record("a")) == (1, T0, T0 + 600 * SECOND)


@pytest.mark.parametrize("at_its_agent", [False, True])
def test_more_time_for_the_step_is_more_time_of_polling(*, at_its_agent: bool) -> None:
    world = polled()
    if at_its_agent:
        world.wait(60).start()
    before, ends_by = world.record("a"), world.task.complete_by
    decision = world.extend(300, "a")
    assert world.record("a") == changed_step(before, poll_until=T0 + 900 * SECOND)
    assert world.task.complete_by == ends_by
    assert f"a: 5 min added; it is polled until {second(T0 + 900 * SECOND)}" in decision.reason


def test_the_task_has_the_time_that_is_added_too() -> None:
    world = story(complete_within=timedelta(minutes=12))
    world.is_not_done("a")
    world.extend(300, "a")
    assert world.task.complete_by == T0 + 900 * SECOND
    world.extend(300)
    world.extend(1, "a")
    assert world.task.complete_by == T0 + 1_200 * SECOND


def test_a_deadline_limits_the_time_that_can_be_added() -> None:
    world = story(deadline=timedelta(minutes=12))
    world.is_not_done("a")
    with pytest.raises(Refused, match="at most 2 min can be added"):
        world.extend(121, "a")
    world.extend(120, "a")
    assert poll_until(world.record("a")) == T0 + 720 * SECOND


def test_a_step_that_waits_for_another_attempt_has_nothing_to_extend() -> None:
    world = story()
    world.fails("a")
    with pytest.raises(Refused, match="a has no attempt in progress: there is nothing to extend"):
        world.extend(60, "a")


def test_a_person_states_that_it_happened_or_did_not() -> None:
    for did, state in ((True, ProcessState.PROCESSED), (False, ProcessState.PENDING)):
        world = polled()
        world.resolve("a", did=did, result={"file": "b"} if did else None)
        assert world.state("a") is state
        assert of_polls(world.record("a")) == NONE


def test_a_fresh_key_begins_the_polling_anew() -> None:
    a, b = replace(POLLED, compensation=None), step("b", retry=Retry(max_attempts=1))
    world = World(plan(a, b, complete_within=timedelta(days=2), on_failure=Archive()))
    world.start()
    world.is_not_done("a")
    world.wait(HOUR).resolve("a", did=False, fresh_key=True)
    assert world.record("a").round == 2
    assert of_polls(world.record("a")) == NONE


def test_it_moves_to_a_plan_in_which_the_step_is_the_same() -> None:
    world = polled()
    other = plan(POLLED, step("b", POLLED), complete_within=timedelta(days=2), on_failure=Undo())
    before = world.record("a")
    world.move(other)
    assert of_polls(world.record("a")) == of_polls(before)
    assert world.record("a").not_before == before.not_before


def test_a_restored_wait_has_as_much_time_left_as_it_had() -> None:
    world = polled()
    world.wait(HOUR)
    world.apply(Reconcile(world.asked(), T0 + 10 * SECOND))
    record = world.record("a")
    assert poll_until(record) == T0 + (600 + HOUR - 10) * SECOND
    assert (of_polls(record)[0], record.outcome_unknown, record.retry_window.until) == (
        1,
        True,
        None,
    )
    assert requests_in(world.start()) == ["a"]


def test_a_restored_poll_under_way_is_made_again() -> None:
    world = polled()
    world.wait(60).start()
    world.wait(HOUR)
    world.apply(Reconcile(world.asked(), T0 + 65 * SECOND))
    record = world.record("a")
    assert record.situation_name is SituationName.READY
    assert poll_until(record) == T0 + (600 + HOUR) * SECOND


# --- words ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("polls", "words"),
    [
        (1, "polled once in 12 min"),
        (7, "polled 7 times in 12 min"),
        (1_000, "polled 1,000 times in 12 min"),
    ],
)
def test_how_often_in_words(polls: int, words: str) -> None:
    polling = Polling(count=polls, since=T0, until=T0)
    assert polling.words(T0 + 720 * SECOND) == words
    assert polling.words(T0 - 5) == words.replace("12 min", "0 ms")
