"""What a claim asks of the step's key, and what it and an undo store of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo, Wait
from roundsman.engine.claims import KEY_EXPIRED
from roundsman.model.events import AgentView, Outcome
from roundsman.model.instants import MINUTE, SECOND, second
from roundsman.model.situations import Ready
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import CALL_NOTES_LAST, Effect, StepError
from tests.support.coping_stories import TWO
from tests.support.machine_world import T0, World, plan, requests_in, step
from tests.unit.engine.test_key_lifetime import (
    A_DAY,
    FENCED,
    LAST_TRY,
    TWO_HOURS,
    UNFENCED,
    UNTIL,
    charge,
    tried_once,
)

YEAR = timedelta(days=360)
KNOWN = f"its service knows its key only until {second(UNTIL)}, so no further request fits"


# --- what is stored of the key -------------------------------------------------------------------


def test_the_undo_of_a_perform_of_the_same_instant_keeps_when_its_key_was_used_first() -> None:
    world = World(plan(charge(), complete_within=A_DAY, on_failure=Undo()))
    world.start()
    world.is_refused("a")
    world.start()
    record = world.record("a")
    assert (record.process_state, record.under_way) == (ProcessState.UNDOING, True)
    assert (record.started_at, record.key_since) == (T0, T0)


def test_a_key_that_was_used_first_at_this_instant_needs_no_other_time() -> None:
    world = World(plan(charge(retry=Retry(max_attempts=3)), complete_within=A_DAY), jitter=0)
    world.start()
    world.fails("a")
    world.start()
    record = world.record("a")
    assert (record.failure_count, record.started_at, record.key_since) == (1, T0, None)


def test_the_stored_end_of_a_key_stays_what_it_is() -> None:
    world = tried_once(charge())
    sooner = replace(world.record("a"), key_until=UNTIL - 7 * MINUTE)
    world.task = replace(world.task, steps={"a": sooner})
    world.wait(1).start()
    assert world.record("a").under_way
    assert world.record("a").key_until == UNTIL - 7 * MINUTE


def test_a_key_that_expired_at_another_agent_says_nothing_of_this_one() -> None:
    world = World(plan(charge(agents=TWO, agent=""), complete_within=A_DAY))
    world.start()
    error = StepError("TransientError", "POST answered 503")
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE)
    assert requests_in(world.wait_until(UNTIL).start()) == ["a"]
    record = world.record("a")
    assert (record.agent, record.round) == ("second", 1)
    assert record.key_until == world.now + 2 * 60 * MINUTE


def test_notes_have_to_last_as_long_as_a_copy_of_an_earlier_request_may_act() -> None:
    world = World(plan(step("a", agents=TWO, compensation=FENCED), complete_within=YEAR))
    behind = AgentView(lag=CALL_NOTES_LAST - 30 * SECOND)
    world.agents = {"first/normal": behind, "second/normal": behind}
    world.start()
    world.gives_back("a")
    assert not world.record("a").outcome_unknown
    world.agents = {"first/normal": AgentView(), "second/normal": AgentView()}
    world.wait(600).inspect()
    world.start()
    record = world.record("a")
    assert record.until == world.now + 30 * SECOND, "long before the notes are gone"
    assert record.acts_until == T0 + CALL_NOTES_LAST
    assert record.outcome_unknown


def test_a_step_that_begins_a_new_round_is_claimed_in_its_turn() -> None:
    made = charge(agents=TWO, agent="")
    world = World(plan(made, step("b"), complete_within=A_DAY)).hold("second", 9 * 3_600)
    world.start()
    error = StepError("TransientError", "POST answered 503")
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE)
    world.fails("b")
    decision = world.wait_until(UNTIL).start()
    assert requests_in(decision) == ["a", "b"]
    assert world.record("a").round == 2
    assert "a: had no effect under its key; it begins under a new one" in decision.reason


def test_what_is_given_back_too_late_begins_its_new_round_before_it_is_claimed() -> None:
    world = tried_once(charge()).wait_until(LAST_TRY)
    world.start()
    world.hold("worker", 600).wait(1).gives_back("a", effect=Effect.NONE)
    record = world.record("a")
    assert (record.under_way, record.round, record.effect) == (False, 2, Effect.NONE)
    assert record.outcome_unknown is False


# --- what is not sent ----------------------------------------------------------------------------


def refused_and_held(**options: object) -> World:
    """A world in which the undo waits for the end of a hold."""
    world = World(plan(charge(**options), complete_within=A_DAY, on_failure=Undo()))
    world.start()
    world.hold("worker", 9 * 3_600).is_refused("a")
    assert world.state("a") is ProcessState.UNDOING
    assert not world.record("a").under_way
    return world


@pytest.mark.parametrize("probe", [False, True])
def test_an_undo_is_not_sent_under_a_forgotten_key_though_a_probe_may_outlive_it(
    *, probe: bool
) -> None:
    world = refused_and_held(probe_outlives_key=probe)
    world.release("worker").wait_until(UNTIL - 30 * SECOND + 1).inspect()
    assert requests_in(world.start()) == []
    record = world.record("a")
    assert record.process_state is ProcessState.UNDO_ERROR
    assert record.error == StepError(
        KEY_EXPIRED,
        f"its service finds the effect by its key only until {second(UNTIL)}; look there, undo it "
        "by hand, and resolve the step",
    )


@pytest.mark.parametrize("probe", [False, True])
def test_the_lag_of_the_queue_counts_for_an_undo_too(*, probe: bool) -> None:
    world = refused_and_held(probe_outlives_key=probe)
    world.wait_until(UNTIL - 40 * SECOND)
    world.agents = {"worker/normal": AgentView(lag=10 * SECOND + 1)}
    world.inspect()
    assert requests_in(world.start()) == []
    assert world.state("a") is ProcessState.UNDO_ERROR


def test_the_last_undo_in_time_is_sent() -> None:
    world = refused_and_held()
    world.release("worker").wait_until(UNTIL - 30 * SECOND).inspect()
    assert requests_in(world.start()) == ["a"]
    assert world.record("a").until == UNTIL


def test_nothing_is_too_late_for_the_probe_because_of_the_lag() -> None:
    world = tried_once(charge(probe_outlives_key=True)).wait_until(LAST_TRY)
    world.agents = {"worker/normal": AgentView(lag=10 * SECOND)}
    decision = world.start()
    assert requests_in(decision) == ["a"]
    assert "only probed" not in decision.reason, "its agent finds by its own clock what it may do"


def test_what_is_only_probed_says_so() -> None:
    world = tried_once(charge(probe_outlives_key=True)).wait_until(LAST_TRY + 1)
    decision = world.start()
    assert requests_in(decision) == ["a"]
    assert "a: its service may have forgotten its key: only probed" in decision.reason


def test_a_step_whose_key_runs_out_says_how_it_goes_on_at_its_next_agent() -> None:
    made = charge(agents=TWO, agent="")
    world = tried_once(made, on_failure=Archive()).wait_until(LAST_TRY + 1)
    decision = world.start()
    assert [(row.kind, row.step, row.attempt) for row in decision.history] == [
        ("failed", "a", None),
        ("undo", "a", None),
    ]
    failed, undo = (row.reason for row in decision.history)
    assert failed == f"a: {KNOWN}"
    assert undo.startswith("a: its undo begins")
    assert undo.endswith("; after its undo at first, the step begins at second")
    assert world.record("a").error == StepError(KEY_EXPIRED, KNOWN)


def test_a_step_that_is_too_late_to_be_undone_does_not_go_to_its_next_agent() -> None:
    made = charge(agents=TWO, agent="")
    world = tried_once(made, on_failure=Undo()).wait_until(UNTIL - 30 * SECOND + 1)
    assert requests_in(world.start()) == []
    assert world.task_state() is TaskState.ARCHIVED
    error = world.record("a").error
    assert error is not None
    assert error.message == (
        f"{KNOWN}, and whether it took effect is unknown; look there, and resolve the step"
    )


def test_a_step_that_its_plan_undoes_asks_nobody_to_look() -> None:
    world = tried_once(charge()).wait_until(LAST_TRY + 1)
    decision = world.start()
    message = f"{KNOWN}, and whether it took effect is unknown"
    assert world.task.ending is not None
    assert world.task.ending.error == StepError(KEY_EXPIRED, message)
    assert f"a: not sent again: {message}" in decision.reason


def test_a_step_that_cannot_be_undone_is_not_too_late_for_that() -> None:
    """Its plan decides, and undoes the rest."""
    made = charge(compensation=None)
    first = step("first", compensation=FENCED)
    world = World(
        plan(first, replace(made, after=("first",)), complete_within=A_DAY, on_failure=Undo())
    )
    world.start()
    world.succeeds("first")
    world.fails("a", retry_after=1_000)
    assert requests_in(world.wait_until(UNTIL).start()) == ["first"]
    assert world.task_state() is TaskState.UNDOING
    error = world.record("a").error
    assert error == StepError(KEY_EXPIRED, f"{KNOWN}, and whether it took effect is unknown")


# --- what an undo keeps --------------------------------------------------------------------------


def test_an_undo_keeps_until_when_the_key_of_its_perform_is_known() -> None:
    without = charge(compensation=UNFENCED, key_lifetime=None)
    world = World(plan(without, complete_within=A_DAY, on_failure=Undo()))
    world.start()
    made = replace(without, key_lifetime=TWO_HOURS)
    world.move(plan(made, complete_within=A_DAY, on_failure=Undo()))
    assert world.record("a").key_until is None, "it can be computed"
    world.wait(1).is_refused("a")
    record = world.record("a")
    assert (record.process_state, record.under_way) == (ProcessState.UNDOING, False)
    assert (record.key_since, record.key_until) == (T0, UNTIL)
    assert record.error == StepError("CardDeclined", "insufficient funds")


def undone_at_the_first(*, left_out: bool = False) -> World:
    """A world in which a step was undone because its key ran out, and begins at its next agent."""
    world = tried_once(charge(agents=TWO, agent=""))
    if left_out:
        world.wait(60).start()
        error = StepError("WrongResult", "a list was expected")
        world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.STANDS)
        assert world.record("a").left_out is not None
    world.wait_until(LAST_TRY + 1).start()
    world.succeeds("a")
    record = world.record("a")
    assert (record.agent, record.tried, record.operation) == ("second", ("first",), "perform")
    return world


@pytest.mark.parametrize("left_out", [False, True])
def test_nothing_of_an_undone_effect_is_known_at_the_next_agent(*, left_out: bool) -> None:
    assert undone_at_the_first(left_out=left_out).record("a").left_out is None


def test_the_key_of_one_agent_says_nothing_of_the_undo_at_another() -> None:
    world = undone_at_the_first()
    began = world.now
    world.wait(1).is_refused("a")
    record = world.record("a")
    assert record.operation == "undo"
    assert (record.key_since, record.key_until) == (began, began + 2 * 60 * MINUTE)
    world.succeeds("a")
    record = world.record("a")
    assert (record.operation, record.agent) == ("undo", None)
    assert (record.key_since, record.key_until) == (None, None)


def test_a_step_that_goes_on_under_a_new_key_is_ready_once_a_person_has_undone_it() -> None:
    world = tried_once(charge(), on_failure=Archive()).wait_until(LAST_TRY + 1)
    world.start()
    world.resolve("a", did=False)
    world.hold("worker", 600).start()
    assert world.state("a") is ProcessState.UNDOING
    world.resolve("a")
    record = world.record("a")
    assert (record.operation, record.round) == ("perform", 2)
    assert isinstance(record.situation, Ready)


# --- how long a retry waits ----------------------------------------------------------------------


@pytest.mark.parametrize(("more", "cut"), [(0, False), (1, True)])
def test_a_retry_that_is_due_when_no_request_fits_any_more_is_not_cut(
    more: int, *, cut: bool
) -> None:
    world = World(plan(charge(), complete_within=A_DAY))
    world.start()
    decision = world.fails("a", retry_after=LAST_TRY + 1 - T0 + more)
    assert world.record("a").not_before == LAST_TRY + 1
    at = second(LAST_TRY + 1)
    words = f"no attempt fits after {at}, since its service may forget its key"
    assert (words in decision.reason) is cut
    assert (f"retried at {at}" in decision.reason) is not cut


def test_a_retry_that_the_task_ends_before_its_key_does_says_so() -> None:
    short = charge(retry=Retry(max_attempts=9))
    world = World(plan(short, complete_within=timedelta(hours=1)))
    world.start()
    decision = world.fails("a", retry_after=5 * 60 * MINUTE)
    assert world.record("a").not_before == T0 + 60 * MINUTE
    assert "no attempt fits before the task must be complete" in decision.reason
    assert "forget" not in decision.reason


def test_only_the_waits_of_a_step_that_is_retried_for_a_time_are_counted() -> None:
    def waited(retry: Retry) -> list[int]:
        wait = Wait(timedelta(minutes=1), times=2, then=Archive())
        world = World(plan(step("a", retry=retry, on_failure=wait), complete_within=A_DAY))
        world.start()
        counts = []
        for _ in range(3):
            world.fails("a")
            counts.append(world.record("a").retry_window.waits)
            world.wait(120).start()
        return counts

    assert waited(Retry(max_attempts=2)) == [0, 0, 0]
    patient = Retry(max_attempts=1, keep_trying_for=timedelta(seconds=100))
    assert waited(patient) == [0, 1, 2]
