"""A step with several agents: which one it goes to, and when it may leave one for another."""

from datetime import timedelta

import pytest

from roundsman.alerts.samples import Sample
from roundsman.definition.workflow import Archive, Compensation, Retry, Undo, Wait
from roundsman.engine.due import ParkedFor, parked_for
from roundsman.engine.requests import agent_of
from roundsman.engine.routing import MAX_LAG_DIFFERENCE, notes_may_be_gone
from roundsman.model.events import AgentView, HoldView, Inspect, Outcome
from roundsman.model.instants import MINUTE, SECOND, SKEW
from roundsman.model.situations import SEVERAL
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import (
    CALL_NOTES_LAST,
    AfterUndo,
    Effect,
    StepError,
    StepRecord,
    idempotency_key,
)
from tests.support.coping_stories import FENCED, TWO, routed, undone_at_both
from tests.support.machine_world import T0, World, begun, plan, requests_in, step
from tests.support.steps import step_record, stored_step

THREE = ("first", "second", "third")
HELD = AgentView(agent_hold=HoldView(T0 + 10 * MINUTE, "first is held by ann"))


def at(world: World, name: str = "a") -> str:
    return agent_of(world.plan, world.task, name)


def lagging(seconds: float) -> AgentView:
    return AgentView(lag=round(seconds * SECOND), read_up_to=T0)


# --- which agent ----------------------------------------------------------------------------------


def test_the_first_agent_is_asked_where_nothing_speaks_against_it() -> None:
    world = routed()
    assert at(world) == "first"
    assert world.record("a").agent is None
    assert world.record("a").tried == ()


def test_an_agent_that_is_held_is_passed_over() -> None:
    world = routed(first=HELD)
    assert at(world) == "second"
    assert world.record("a").agent == "second"
    assert world.record("a").tried == (), "it was never at the first"
    assert idempotency_key("ord-1", "a", "perform", world.record("a")) == "ord-1/a/perform/second"
    reason = world.decisions[-1][2].reason
    assert reason.startswith("a: goes to second, because first is on hold")


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [(0, 0, "first"), (10, 0, "first"), (10.001, 0, "second"), (40, 30, "first"), (0, 60, "first")],
)
def test_an_agent_that_is_further_behind_than_the_others_is_passed_over(
    first: float, second: float, expected: str
) -> None:
    world = routed(first=lagging(first), second=lagging(second))
    assert at(world) == expected
    assert MAX_LAG_DIFFERENCE == 10 * SECOND


def test_the_request_has_the_backlog_of_the_agent_it_goes_to() -> None:
    world = routed(first=lagging(120), second=lagging(20))
    assert stored_step(world.record("a")).complete_by == T0 + 50 * SECOND


def test_a_step_whose_agents_are_all_held_waits_for_the_one_that_is_free_first() -> None:
    world = routed(first=HELD, second=AgentView(agent_hold=HoldView(T0 + 60 * SECOND)))
    assert requests_in(world.decisions[-1][2]) == []
    assert parked_for(world.task) == ParkedFor(SEVERAL, T0)
    world.wait(65).inspect()
    world.start()
    assert at(world) == "second"


def test_an_agent_that_is_held_is_no_measure_of_who_is_behind() -> None:
    assert at(routed(first=lagging(30), second=HELD)) == "first"


# --- leaving an agent -----------------------------------------------------------------------------


def test_what_was_given_back_with_proof_that_nothing_happened_moves_on_at_once() -> None:
    world = routed(attempts=3)
    decision = world.hold("first", 600).gives_back("a", effect=Effect.NONE)
    assert (at(world), world.record("a").tried) == ("second", ("first",))
    assert [(row.kind, row.reason) for row in decision.history] == [
        ("rerouted", "a: goes to second, because first is on hold")
    ]


def test_what_was_given_back_without_proof_stays_since_a_copy_may_have_been_taken() -> None:
    world = routed(attempts=3)
    world.hold("first", 3_600).gives_back("a")
    for _ in range(8):
        world.wait(400).run_now()
        world.start()
    assert at(world) == "first"
    assert world.state("a") is ProcessState.PENDING


def fails_without_effect(world: World) -> str:
    """The step's attempt fails, with a proof that nothing happened; returns the reason."""
    error = StepError("TransientError", "POST answered 503")
    return world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE).reason


def test_a_failure_with_proof_that_nothing_happened_moves_on_when_the_next_attempt_is_due() -> None:
    world = routed(attempts=3)
    assert "; it had no effect at first, so it may go on at another agent" in fails_without_effect(
        world
    )
    assert (at(world), world.record("a").outcome_unknown) == ("first", False)
    decision = world.wait(60).start()
    assert (at(world), world.record("a").tried) == ("second", ("first",))
    assert [(row.kind, row.reason) for row in decision.history] == [
        ("rerouted", "a: goes to second, because first has failed without an effect")
    ]
    assert world.record("a").effect is None, "nothing is known of the second"
    fails_without_effect(world)
    world.wait(60).start()
    assert at(world) == "second", "it does not return to the first"
    fails_without_effect(world)
    assert world.task_state() is TaskState.UNDOING


def test_a_failure_with_proof_moves_on_in_the_same_decision_if_no_wait_is_asked_for() -> None:
    world = routed(attempts=3)
    error = StepError("TransientError", "POST answered 503")
    before = world.record("a").locked_by
    decision = world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE, retry_after=0)
    assert requests_in(decision) == ["a"]
    assert (at(world), world.record("a").tried) == ("second", ("first",))
    assert [row.kind for row in decision.history] == ["failed", "rerouted"]
    assert (world.record("a").effect, world.record("a").failure_count) == (None, 1)
    late = world.reply("a", Outcome.SUCCEEDED, lock=before, key="ord-1/a/perform")
    assert late.task is decision.task, "the first agent is heard no more"


def test_a_failure_without_proof_is_repeated_at_its_agent_though_no_wait_is_asked_for() -> None:
    world = routed(attempts=3)
    assert requests_in(world.fails("a", retry_after=0)) == ["a"]
    assert (at(world), world.record("a").tried) == ("first", ())


def test_a_failure_without_proof_stays_and_the_reason_says_why() -> None:
    world = routed(attempts=3)
    reason = world.fails("a").reason
    assert "; it may have had an effect, so it stays at first until that is known" in reason
    world.wait(60).start()
    assert at(world) == "first"


@pytest.mark.parametrize("second", [HELD, lagging(60)], ids=["held", "behind"])
def test_a_step_that_failed_without_an_effect_stays_if_no_other_agent_is_better(
    second: AgentView,
) -> None:
    world = routed(attempts=3, second=second)
    reason = fails_without_effect(world)
    assert ("another agent" in reason) is (second is not HELD)
    world.wait(60).start()
    assert at(world) == "first"


def test_a_persons_word_that_nothing_happened_lets_a_step_stay_whose_agent_takes_work() -> None:
    world = routed(attempts=3)
    world.fails("a")
    world.resolve("a", did=False)
    world.start()
    assert at(world) == "first"


def test_a_step_of_one_agent_says_nothing_of_others() -> None:
    world = routed(attempts=3, agents=("first",))
    assert "first" not in fails_without_effect(world)
    world.wait(60).start()
    assert at(world) == "first"


def test_the_last_attempt_that_had_no_effect_proves_it_of_the_step() -> None:
    world = begun(step("a", retry=Retry(max_attempts=1)), on_failure=Archive())
    fails_without_effect(world)
    assert world.task_state() is TaskState.ARCHIVED
    assert (world.record("a").effect, world.record("a").outcome_unknown) == (Effect.NONE, False)


def test_a_step_that_waits_after_its_last_attempt_without_an_effect_has_had_none() -> None:
    wait = Wait(timedelta(minutes=10), times=1, then=Undo())
    world = begun(step("a", retry=Retry(max_attempts=1)), on_failure=wait)
    assert "waits" in fails_without_effect(world)
    assert world.state("a") is ProcessState.PENDING
    assert (world.record("a").effect, world.record("a").outcome_unknown) == (Effect.NONE, False)


def test_a_persons_word_that_nothing_happened_lets_a_held_step_go_to_another_agent() -> None:
    world = routed(attempts=3, fenced=False)
    world.hold("first", 3_600).gives_back("a", called=True)
    world.wait(400).start()
    assert at(world) == "first"
    world.resolve("a", did=False)
    world.start()
    assert at(world) == "second"


def test_a_persons_word_does_not_while_a_call_may_hang_that_only_an_undo_stops() -> None:
    world = routed(attempts=3, fenced=True)
    world.hold("first", 3_600).gives_back("a", called=True)
    world.wait(400).start()
    world.resolve("a", did=False)
    world.start()
    assert (at(world), world.record("a").effect) == ("first", None)


def test_a_persons_word_does_not_while_a_copy_of_the_request_may_act() -> None:
    world = routed(attempts=3, fenced=False)
    world.hold("first", 3_600).gives_back("a", called=True)
    world.resolve("a", did=False)
    world.start()
    assert at(world) == "first"


def test_a_proof_is_about_the_requests_made_before_it() -> None:
    world = routed(attempts=3)
    world.hold("first", 60).hold("second", 60).gives_back("a", effect=Effect.NONE)
    assert world.record("a").effect is Effect.NONE
    world.agents = {}
    world.wait(90).run_now()
    world.start()
    assert at(world) == "first"
    assert world.record("a").effect is None


YEAR = timedelta(days=360)
LIMIT = CALL_NOTES_LAST // SECOND - 30  # seconds; an attempt lasts 30


@pytest.mark.parametrize(
    ("agents", "again_in", "unknown"),
    [
        (("x", "y"), LIMIT - 0.001, False),
        (("x", "y"), LIMIT, True),
        (("x",), 2 * LIMIT, False),  # it has no notes, and nothing follows from them
    ],
)
def test_what_a_note_proves_of_a_job_that_was_begun_ends_with_the_note(
    agents: tuple[str, ...], again_in: float, *, unknown: bool
) -> None:
    job = step("a", agents=agents, compensation=FENCED)
    world = begun(job, complete_within=YEAR)
    world.is_not_done("a", again_in=again_in, within=YEAR.total_seconds())
    assert not world.record("a").outcome_unknown, "the service has just answered"
    world.wait(again_in).start()
    assert world.record("a").outcome_unknown is unknown
    world.is_not_done("a", again_in=60)
    assert not world.record("a").outcome_unknown
    world.wait(60).start()
    expired = len(agents) > 1
    assert world.record("a").outcome_unknown is expired, "counted from the first poll"


def test_the_notes_of_a_poll_count_from_it_if_the_first_request_is_not_known() -> None:
    """A record that was stored before first requests were has only the latest one."""
    job = plan(step("a", agents=("x", "y"), compensation=FENCED)).steps["a"]
    polled = step_record(polled_since=1, started_at=1 + MINUTE)
    assert not notes_may_be_gone(job, polled, CALL_NOTES_LAST)
    assert notes_may_be_gone(job, polled, 1 + CALL_NOTES_LAST)


def test_the_undo_of_what_was_done_long_ago_has_its_result() -> None:
    job = step("a", agents=("x", "y"), compensation=FENCED)
    world = begun(job, step("b", job), complete_within=YEAR, on_failure=Undo())
    world.succeeds("a", "r-1")
    world.wait(2 * LIMIT)
    world.reply("b", Outcome.PERMANENT, error=StepError("Refused", "no"))
    world.start()
    record = world.record("a")
    assert (record.operation, record.outcome_unknown) == ("undo", False)
    assert record.started_at == world.now


def test_nothing_that_is_proven_to_have_no_effect_becomes_unknown_with_time() -> None:
    job = step("a", agents=("x", "y"), compensation=FENCED)
    world = begun(job, complete_within=YEAR)
    world.hold("x", 2 * LIMIT).hold("y", 2 * LIMIT).gives_back("a", effect=Effect.NONE)
    world.agents = {}
    world.wait(2 * LIMIT).run_now()
    world.start()
    assert world.state("a") is ProcessState.PROCESSING
    assert not world.record("a").outcome_unknown


def test_proven_at_one_agent_after_another_a_step_moves_on_to_each_that_is_left() -> None:
    world = routed(agents=THREE, attempts=3)
    world.hold("first", 600).gives_back("a", effect=Effect.NONE)
    assert (at(world), world.record("a").tried) == ("second", ("first",))
    world.hold("second", 600).gives_back("a", effect=Effect.NONE)
    assert (at(world), world.record("a").tried) == ("third", ("first", "second"))


def test_an_agent_that_was_only_passed_over_comes_first_again() -> None:
    world = routed(first=HELD, attempts=3)
    world.hold("second", 60).gives_back("a", effect=Effect.NONE)
    world.agents = {}
    world.wait(90).run_now()
    world.start()
    assert (at(world), world.record("a").tried) == ("first", ("second",))


@pytest.mark.parametrize("how", ["given back", "overdue"])
def test_what_may_have_happened_at_the_first_stays_there(how: str) -> None:
    world = routed(attempts=3)
    world.hold("first", 3_600)
    world.gives_back("a", called=True) if how == "given back" else world.overdue("a")
    world.start()
    for _ in range(8):
        world.wait(400).run_now()
        world.start()
    assert at(world) == "first"
    assert world.state("a") is ProcessState.PENDING


def test_an_agent_that_was_left_is_not_come_back_to() -> None:
    world = routed(attempts=3)
    world.hold("first", 60).gives_back("a", effect=Effect.NONE)
    assert at(world) == "second"
    world.hold("second", 3_600).gives_back("a")
    world.wait(300).start()
    assert world.record("a").held_since is not None
    assert at(world) == "second"


def test_a_reply_under_the_key_of_an_agent_that_was_left_changes_nothing() -> None:
    world = routed(attempts=3)
    lock = world.lock("a")
    message = world.claimant()
    world.hold("first", 600)
    world.gives_back("a", effect=Effect.NONE, claimant=message)
    before = world.task
    late = world.reply("a", Outcome.SUCCEEDED, lock=lock, key="ord-1/a/perform")
    assert late.task is before
    assert "under another key" in late.reason
    assert requests_in(late) == []


def test_a_reply_that_moved_its_step_to_another_agent_sends_that_request_again() -> None:
    """Redelivered, it is about a key that the step has left; its own claim may not be sent yet."""
    world = routed(attempts=3)
    message, lock = world.claimant(), world.lock("a")
    world.hold("first", 600)
    world.gives_back("a", effect=Effect.NONE, claimant=message)
    before = world.task
    again = world.gives_back(
        "a", effect=Effect.NONE, claimant=message, lock=lock, key="ord-1/a/perform"
    )
    assert again.task is before
    assert requests_in(again) == ["a"]


def test_what_was_heard_of_at_one_agent_does_not_leave_it_for_a_copy_given_back() -> None:
    """The first copy of the request began the work; the second one met an open circuit."""
    world = routed(attempts=3)
    world.waits_for_callback("a", 20)
    world.hold("first", 600).gives_back("a", effect=Effect.NONE)
    assert world.record("a").waiting
    world.wait(300).inspect()
    world.start()
    assert at(world) == "first"


# --- settling at one before another may act -------------------------------------------------------


@pytest.mark.parametrize("how", ["fails", "overdue"])
def test_exhausted_at_the_first_a_step_is_undone_there_and_begins_at_the_second(how: str) -> None:
    world = routed(attempts=2)
    world.fails("a", retry_after=0)
    decision = world.fails("a") if how == "fails" else world.overdue("a")
    record = world.record("a")
    assert record.process_state is ProcessState.UNDOING
    assert record.after_undo is AfterUndo.NEXT_AGENT
    assert record.error is not None
    assert record.failure_count == 0
    assert record.outcome_unknown
    assert [row.kind for row in decision.history] == ["failed", "undo"]
    assert "after its undo at first, the step begins at second" in decision.reason
    world.start()
    assert world.task_state() is TaskState.ACTIVE
    assert at(world) == "first"
    done = world.succeeds("a")
    record = world.record("a")
    assert requests_in(done) == ["a"]
    assert record.process_state is ProcessState.PROCESSING
    assert (at(world), record.tried, record.failure_count) == ("second", ("first",), 0)
    assert not record.outcome_unknown
    assert record.after_undo is None
    assert "a: undone at first; it begins at second" in done.reason
    world.succeeds("a", "r")
    assert world.task_state() is TaskState.COMPLETED


def test_without_a_fence_the_undo_waits_until_no_request_to_the_first_can_act() -> None:
    world = routed(fenced=False)
    world.wait(1).fails("a")
    free_at = T0 + 30 * SECOND + SKEW
    assert world.record("a").not_before == free_at
    assert world.task_state() is TaskState.RETRY
    world.wait_until(free_at - 1).inspect()
    assert requests_in(world.start()) == []
    world.run_now()
    assert requests_in(world.start()) == [], "nobody's word makes a late request harmless"
    world.wait_until(free_at).inspect()
    assert requests_in(world.start()) == ["a"]


@pytest.mark.parametrize("agents", [TWO, THREE])
def test_a_step_goes_through_all_its_agents_before_it_fails(agents: tuple[str, ...]) -> None:
    world = routed(agents=agents)
    for agent in agents[:-1]:
        assert at(world) == agent
        world.fails("a")
        world.succeeds("a")
    assert at(world) == agents[-1]
    world.fails("a")
    assert world.task.ending is not None
    assert world.record("a").tried == agents[:-1]
    world.start()
    for _ in agents:
        assert world.task_state() is TaskState.UNDOING
        world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


def test_the_next_agent_is_asked_before_the_plans_wait() -> None:
    waits = Wait(timedelta(minutes=5), times=1, then=Undo())
    made = plan(step("a", agents=TWO, compensation=FENCED, retry=Retry(max_attempts=1)))
    world = World(made)
    world.start()
    world.fails("a")
    assert world.record("a").after_undo is AfterUndo.NEXT_AGENT
    world = begun(
        step(
            "a",
            agents=TWO,
            compensation=FENCED,
            retry=Retry(max_attempts=1),
            on_failure=waits,
        )
    )
    world.fails("a")
    world.succeeds("a")
    world.fails("a")
    assert world.record("a").not_before == T0 + 5 * MINUTE


@pytest.mark.parametrize("why", ["no compensation", "all held", "refused"])
def test_where_it_cannot_be_settled_a_step_fails_where_it_is(why: str) -> None:
    compensation = None if why == "no compensation" else FENCED
    retry = Retry(max_attempts=1)
    made = plan(step("a", agents=TWO, compensation=compensation, retry=retry), on_failure=Archive())
    world = World(made)
    world.start()
    if why == "all held":
        world.hold("second", 600)
    world.is_refused("a") if why == "refused" else world.fails("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("a") is ProcessState.ERROR


def test_a_settling_undo_waits_for_an_agent_that_is_held_and_the_tasks_clock_with_it() -> None:
    world = routed()
    complete_by = world.task.complete_by
    world.hold("first", 120).fails("a")
    assert world.record("a").held_since == T0
    assert world.task_state() is TaskState.RETRY
    world.wait(130).inspect()
    world.start()
    assert world.task.complete_by == complete_by + 130 * SECOND
    world.succeeds("a")
    assert at(world) == "second"


def test_a_settling_undo_that_fails_archives_the_task_for_a_person() -> None:
    world = routed()
    world.fails("a")
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("a") is ProcessState.UNDO_ERROR
    assert world.task.ending is not None
    assert world.task.ending.step == "a"
    assert "triedBefore" not in Sample(world.task, world.plan).document()
    world.resubmit()
    world.start()
    assert (at(world), world.state("a")) == ("first", ProcessState.UNDOING)
    world.succeeds("a")
    assert (at(world), world.state("a")) == ("second", ProcessState.PROCESSING)
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_a_failed_settling_undo_that_was_made_by_hand_lets_the_step_go_on_elsewhere() -> None:
    world = routed()
    world.fails("a")
    world.is_refused("a")
    world.resolve("a")
    assert (at(world), world.state("a")) == ("second", ProcessState.PENDING)
    assert world.task.ending is None
    assert requests_in(world.start()) == ["a"]


@pytest.mark.parametrize("ask", ["undo", "cancel"])
def test_a_task_that_is_undone_meanwhile_takes_the_settling_undo_for_good(ask: str) -> None:
    world = routed()
    world.fails("a")
    world.ask_undo() if ask == "undo" else world.cancel()
    assert world.task_state() is TaskState.UNDOING
    world.start()
    world.succeeds("a")
    end = TaskState.UNDONE if ask == "undo" else TaskState.CANCELLED
    assert world.task_state() is end
    assert world.state("a") is ProcessState.UNDONE
    assert world.record("a").after_undo is None


def test_a_task_that_is_archived_meanwhile_waits_for_the_settling_undo_and_goes_on_later() -> None:
    made = plan(
        step("a", agents=TWO, compensation=FENCED, retry=Retry(max_attempts=1)),
        step("b", on_failure=Archive()),
    )
    world = World(made)
    world.start()
    world.fails("a")
    world.is_refused("b")
    assert world.task_state() is TaskState.ACTIVE
    world.succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert (at(world), world.state("a")) == ("second", ProcessState.PENDING)
    world.resubmit()
    assert set(requests_in(world.start())) == {"a", "b"}


def test_the_tasks_time_does_not_stop_a_settling_undo_but_makes_it_one_for_good() -> None:
    world = routed(fenced=False)
    world.wait(1).fails("a")
    world.wait_until(world.task.complete_by).apply(Inspect())
    assert world.task_state() is TaskState.UNDOING
    world.start()
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


def test_a_step_that_was_settled_and_never_asked_elsewhere_needs_no_undo() -> None:
    world = routed()
    world.fails("a")
    world.hold("second", 600).succeeds("a")
    assert (at(world), world.state("a")) == ("second", ProcessState.PENDING)
    assert world.record("a").held_since == T0
    world.ask_undo()
    assert world.task_state() is TaskState.UNDONE


# --- undo at every agent --------------------------------------------------------------------------


def test_the_undo_goes_to_every_agent_that_was_tried_the_last_one_first() -> None:
    world = undone_at_both()
    assert world.task_state() is TaskState.UNDONE
    asked = [d.reason for _, _, d in world.decisions if "undo" in d.reason]
    assert any("a: undone at second; its undo goes on at first" in reason for reason in asked)


def test_an_undo_that_fails_at_one_agent_is_made_again_there_and_then_at_the_rest() -> None:
    world = routed()
    world.fails("a")
    world.succeeds("a")
    world.is_refused("a")
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert at(world) == "second"
    document = Sample(world.task, world.plan).document()
    assert (document["agent"], document["triedBefore"]) == ("second", ["first"])
    world.resubmit()
    world.start()
    world.succeeds("a")
    assert at(world) == "first"
    assert world.record("a").outcome_unknown
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


def test_begun_anew_a_step_has_a_key_that_is_fresh_at_every_agent() -> None:
    world = undone_at_both()
    world.resubmit(again=True)
    world.start()
    record = world.record("a")
    assert (at(world), record.tried, record.round) == ("first", (), 2)


def test_begun_anew_a_step_that_was_settled_and_not_asked_again_has_a_fresh_key_too() -> None:
    world = routed()
    world.fails("a")
    world.hold("second", 600).succeeds("a")
    world.ask_undo()
    world.resubmit(again=True)
    world.start()
    assert world.record("a").round == 2


def test_only_the_agent_of_the_request_is_to_blame_for_a_backlog() -> None:
    """The marks of the step's own agent say whether its request was read."""
    never_read = Compensation(fences_late_performs=True)
    world = World(plan(step("a", agents=TWO, compensation=never_read)))
    world.agents = {"first/normal": HELD, "second/normal": AgentView(read_up_to=T0 - 1)}
    world.start()
    world.overdue("a")
    assert world.record("a").failure_count == 0


@pytest.mark.parametrize(
    ("agents", "changes", "since"),
    [
        (TWO, {}, T0),
        (TWO, {"key_since": T0 - 5}, T0 - 5),
        (TWO, {"polled_since": T0 - 7}, T0 - 7),
        (TWO, {"polled_since": T0 + 7}, T0),
        (TWO, {"effect": Effect.NONE}, None),
        (("only",), {}, None),
    ],
)
def test_notes_of_calls_may_be_gone_so_long_after_the_first_one(
    agents: tuple[str, ...], changes: dict[str, object], since: int | None
) -> None:
    made = plan(step("a", agents=agents)).steps["a"]
    record = step_record(process_state=ProcessState.PROCESSING, started_at=T0, **changes)
    gone_at = (T0 if since is None else since) + CALL_NOTES_LAST
    assert notes_may_be_gone(made, record, gone_at) is (since is not None)
    assert not notes_may_be_gone(made, record, gone_at - 1)


def test_what_was_never_sent_or_is_undone_has_no_notes_to_lose() -> None:
    made = plan(step("a", agents=TWO)).steps["a"]
    undone = step_record(process_state=ProcessState.UNDOING, started_at=T0, key_since=T0)
    for record in (StepRecord(), undone):
        assert not notes_may_be_gone(made, record, T0 + CALL_NOTES_LAST)
