"""No step is performed under a key that its service may have forgotten."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo
from roundsman.engine.bulk_eligibility import Eligible, NotFor, judged
from roundsman.engine.claims import KEY_EXPIRED
from roundsman.engine.compensation import undo_is_in_time
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.engine.requests import request_for
from roundsman.errors import DefinitionError, Refused
from roundsman.model.bulk_run import PlannedOrder, Run, Terms
from roundsman.model.events import (
    AgentView,
    CommandSource,
    Outcome,
    Reconcile,
    Resubmit,
    UndoAsked,
)
from roundsman.model.instants import MINUTE, SECOND, SKEW, second
from roundsman.model.situations import Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError
from tests.support.coping_stories import TWO
from tests.support.machine_world import T0, World, plan, requests_in, step
from tests.support.steps import step_record

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=1))
UNFENCED = Compensation(retry=Retry(max_attempts=1))
TWO_HOURS = timedelta(hours=2)
UNTIL = T0 + 2 * 60 * MINUTE
"""When the service may forget the key of a step that is claimed at once."""
LAST_END = UNTIL - 30 * SECOND - SKEW
"""The latest end of a request to perform: after it, one attempt to undo fits."""
LAST_TRY = LAST_END - 30 * SECOND
PATIENT = Retry(max_attempts=9, keep_trying_for=timedelta(hours=9))
A_DAY = timedelta(days=1)


def charge(**options: object) -> Step:
    """A step whose key is remembered for two hours."""
    made = step("a", compensation=FENCED, key_lifetime=TWO_HOURS, retry=PATIENT)
    return replace(made, **options)  # type: ignore[arg-type]


def tried_once(made: Step, **options: object) -> World:
    """A world in which the first attempt has an unknown outcome."""
    options.setdefault("on_failure", Undo())
    world = World(plan(made, complete_within=A_DAY, **options))  # type: ignore[arg-type]
    world.start()
    world.fails("a", retry_after=1_000)
    return world


def archived_after(made: Step, wait: int = 2 * 3_600) -> World:
    """A world whose task is archived, because no request under the key fits after a hold."""
    world = tried_once(made, on_failure=Archive()).hold("worker", wait)
    world.wait(1).start()
    world.release("worker").wait(wait + 60).inspect()
    world.start()
    assert world.task_state() is TaskState.ARCHIVED
    return world


def complete_by(world: World) -> int:
    return request_for(world.plan, world.task, "a", None, world.now).complete_by


# --- claims --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("after", "sent"), [(0, ["a"]), (1, [])])
def test_the_last_request_leaves_time_to_undo_by_the_key(after: int, sent: list[str]) -> None:
    world = tried_once(charge()).wait_until(LAST_TRY + after)
    assert [name for name in requests_in(world.start()) if world.state("a") != "Undoing"] == sent


def test_a_plan_that_undoes_begins_its_undo_when_no_request_fits() -> None:
    world = tried_once(charge()).wait_until(LAST_TRY + 1)
    assert requests_in(world.start()) == ["a"]
    assert world.state("a") is ProcessState.UNDOING
    assert world.task.ending is not None
    assert world.task.ending.error is not None
    assert world.task.ending.error.type == KEY_EXPIRED
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


@pytest.mark.parametrize(
    ("made", "on_failure", "at"),
    [
        (charge(), Archive(), LAST_TRY + 1),
        (charge(compensation=None), Archive(), UNTIL),
        (charge(), Undo(), UNTIL - 30 * SECOND + 1),
        (charge(compensation=UNFENCED), Undo(), UNTIL - 30 * SECOND + 1),
    ],
    ids=["the plan archives", "no compensation", "too late to undo", "too late, not fenced"],
)
def test_else_the_task_is_archived_and_tells_a_person_to_look(
    made: Step, on_failure: Archive | Undo, at: int
) -> None:
    world = tried_once(made, on_failure=on_failure).wait_until(at)
    assert requests_in(world.start()) == []
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, ProcessState.ERROR)
    error = world.record("a").error
    assert error is not None
    assert error.type == KEY_EXPIRED
    assert error.message.endswith("; look there, and resolve the step")
    assert world.record("a").outcome_unknown


def test_the_lag_of_the_queue_counts() -> None:
    world = tried_once(charge(), on_failure=Archive()).wait_until(LAST_TRY - 10 * SECOND)
    world.agents = {"worker/normal": AgentView(lag=10 * SECOND + 1)}
    assert requests_in(world.start()) == []
    assert world.task_state() is TaskState.ARCHIVED


def test_a_request_and_its_patience_end_in_time() -> None:
    world = tried_once(charge())
    assert world.plan.steps["a"].fences_late_performs, "so that its requests have patience"
    world.wait_until(LAST_TRY).start()
    assert world.record("a").until == LAST_END
    assert complete_by(world) == LAST_END


def test_a_request_that_was_sent_to_a_queue_that_is_behind_ends_in_time() -> None:
    world = World(plan(charge(compensation=None), complete_within=A_DAY))
    world.agents = {"worker/normal": AgentView(lag=3 * 60 * MINUTE)}
    world.start()
    assert complete_by(world) == UNTIL - SKEW


def test_a_hold_archives_nothing_before_its_end() -> None:
    world = tried_once(charge(), on_failure=Archive()).hold("worker", 9_000)
    world.wait(1).start()
    for _ in range(29):
        world.wait(305).inspect()
        world.start()
        assert world.task_state() is TaskState.RETRY
    assert world.now > UNTIL
    world.release("worker").wait(305).inspect()
    world.start()
    assert world.task_state() is TaskState.ARCHIVED


def test_a_retry_does_not_wait_until_it_is_too_late() -> None:
    world = World(plan(charge(), complete_within=A_DAY))
    world.start()
    world.fails("a", retry_after=5 * 60 * MINUTE)
    assert world.record("a").not_before == LAST_TRY + 1
    assert "since its service may forget its key" in world.decisions[-1][2].reason
    assert requests_in(world.wait_until(LAST_TRY + 1).start()) == [], "the service asked for later"
    assert world.task_state() is TaskState.ARCHIVED


def test_what_follows_is_not_put_off_if_it_is_too_late_already() -> None:
    world = tried_once(charge(), on_failure=Archive()).wait_until(LAST_TRY)
    world.start()
    world.wait(1).fails("a", retry_after=60_000)
    assert world.task_state() is TaskState.ARCHIVED


def test_a_job_is_not_polled_until_it_is_too_late() -> None:
    world = World(plan(charge(), complete_within=A_DAY))
    world.start()
    world.is_not_done("a", again_in=5 * 3_600, within=20 * 3_600)
    assert world.record("a").not_before == LAST_TRY + 1


def test_time_that_a_person_adds_does_not_move_the_last_end() -> None:
    world = tried_once(charge())
    world.wait(60).start()
    world.extend(60, "a")
    world.until_overdue("a").inspect()
    assert world.record("a").granted == 60 * SECOND
    assert requests_in(world.wait_until(LAST_TRY).start()) == ["a"]
    assert (world.record("a").until, complete_by(world)) == (LAST_END, LAST_END)


def test_more_time_than_the_key_lasts_is_refused() -> None:
    world = tried_once(charge())
    world.wait_until(LAST_TRY - 60 * SECOND).start()
    with pytest.raises(Refused, match=r"may forget its key.*: at most 60 s can be added"):
        world.extend(61, "a")
    world.extend(60, "a")
    with pytest.raises(Refused, match="no time can be added"):
        world.extend(1, "a")


def test_a_job_is_polled_for_no_longer_than_the_key_lasts() -> None:
    world = World(plan(charge(), complete_within=A_DAY))
    world.start()
    world.is_not_done("a", again_in=60, within=20 * 3_600)
    assert world.record("a").not_before == T0 + MINUTE
    with pytest.raises(Refused, match="may forget its key"):
        world.extend(60, "a")


def test_a_key_that_lasts_for_ever_bounds_nothing() -> None:
    world = tried_once(charge(key_lifetime=None)).wait(20 * 3_600)
    assert requests_in(world.start()) == ["a"]
    assert world.record("a").key_until is None


def test_a_reminder_is_not_sent_if_the_task_ends_with_the_same_decision() -> None:
    asks = step("asks")
    world = World(plan(asks, charge(), complete_within=A_DAY, on_failure=Archive()))
    world.start()
    world.waits_for_callback("asks", 9 * 3_600, remind_every=60)
    world.fails("a", retry_after=1_000)
    assert requests_in(world.wait_until(UNTIL).start()) == []
    assert world.task_state() is TaskState.ARCHIVED


# --- rounds --------------------------------------------------------------------------------------


def test_a_step_without_an_effect_begins_a_new_round() -> None:
    made = charge(agents=TWO, agent="")
    world = World(plan(made, complete_within=A_DAY)).hold("second", 9 * 3_600)
    world.start()
    error = StepError("TransientError", "POST answered 503")
    world.reply("a", Outcome.TRANSIENT, error=error, effect=Effect.NONE)
    assert requests_in(world.wait_until(UNTIL).start()) == ["a"]
    record = world.record("a")
    assert (record.round, record.agent) == (2, None)
    assert record.key_until == world.now + 2 * 60 * MINUTE


@pytest.mark.parametrize("made", [charge(), charge(compensation=UNFENCED)])
def test_a_person_who_has_found_nothing_begins_a_new_round(made: Step) -> None:
    world = archived_after(made)
    world.resolve("a", did=False)
    assert requests_in(world.start()) == ["a"]
    assert world.record("a").round == 2
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_a_person_who_has_found_nothing_in_time_keeps_the_key() -> None:
    world = tried_once(charge()).wait(60)
    world.resolve("a", did=False)
    assert requests_in(world.start()) == ["a"]
    assert world.record("a").round == 1


def test_a_key_that_can_still_be_spent_is_spent_first() -> None:
    world = tried_once(charge(), on_failure=Archive()).wait_until(LAST_TRY + 1)
    world.start()
    world.resolve("a", did=False)
    assert requests_in(world.start()) == ["a"]
    assert world.state("a") is ProcessState.UNDOING
    world.succeeds("a")
    assert requests_in(world.start()) == []
    assert (world.state("a"), world.record("a").round) == (ProcessState.PROCESSING, 2)


def test_a_person_who_has_found_the_effect_completes_the_step() -> None:
    world = archived_after(charge())
    world.resolve("a", did=True)
    assert world.task_state() is TaskState.COMPLETED


def test_a_new_round_that_waits_for_long_begins_another() -> None:
    world = archived_after(charge())
    world.resolve("a", did=False)
    world.hold("worker", 9_000).start()
    world.release("worker").wait(8_000).inspect()
    world.start()
    record = world.record("a")
    assert (record.round, record.key_until) == (3, world.now + 2 * 60 * MINUTE)


# --- the probe -----------------------------------------------------------------------------------

PROBED = charge(probe_outlives_key=True)


def probed() -> World:
    """A world in which only the probe may be asked."""
    world = tried_once(PROBED).wait_until(UNTIL + 60 * MINUTE)
    assert requests_in(world.start()) == ["a"]
    return world


def test_only_a_probe_that_outlives_the_key_is_asked() -> None:
    world = probed()
    request = request_for(world.plan, world.task, "a", None, world.now)
    assert request.probe_only
    assert request.complete_by == world.now + 30 * SECOND
    assert world.record("a").round == 1


def test_before_that_the_step_is_performed() -> None:
    world = tried_once(PROBED).wait(60)
    world.start()
    assert not request_for(world.plan, world.task, "a", None, world.now).probe_only


def test_a_reminder_of_a_wait_is_no_probe() -> None:
    world = probed()
    world.waits_for_callback("a", 3_600, remind_every=60)
    world.wait(61).start()
    request = request_for(world.plan, world.task, "a", None, world.now)
    assert (request.reminder, request.probe_only) == (1, False)


def test_what_the_probe_finds_completes_the_step() -> None:
    world = probed()
    world.succeeds("a", {"id": "ch-1"})
    assert world.task_state() is TaskState.COMPLETED


def test_what_the_probe_does_not_find_begins_a_new_round() -> None:
    world = probed()
    decision = world.gives_back("a", retry_after=0, effect=Effect.NONE)
    assert requests_in(decision) == ["a"]
    assert world.record("a").round == 2
    assert not request_for(world.plan, world.task, "a", None, world.now).probe_only
    assert not world.record("a").outcome_unknown


@pytest.mark.parametrize("seconds", [20, -4])
def test_a_probe_that_finds_nothing_is_asked_again_while_an_earlier_request_may_act(
    seconds: int,
) -> None:
    world = probed()
    acts_until = world.now + seconds * SECOND
    earlier = replace(world.record("a"), acts_until=acts_until)
    world.task = replace(world.task, steps={**world.task.steps, "a": earlier})
    decision = world.gives_back("a", effect=Effect.NONE)
    record = world.record("a")
    assert (record.round, record.effect, record.outcome_unknown) == (1, None, True)
    at = acts_until + SKEW + SECOND
    assert isinstance(record.situation, Parked)
    assert (record.situation.not_before, record.situation.held_for) == (at, "worker")
    assert f"may act until {second(at)}; its probe is asked again then" in decision.reason
    assert requests_in(world.wait_until(at).start()) == ["a"]
    world.gives_back("a", effect=Effect.NONE)
    assert world.record("a").round == 2


def test_an_agent_that_is_held_in_the_meantime_is_waited_for_as_ever() -> None:
    world = probed()
    earlier = replace(world.record("a"), acts_until=world.now + 20 * SECOND)
    world.task = replace(world.task, steps={**world.task.steps, "a": earlier})
    assert "may act until" not in world.gives_back("a", retry_after=3_000).reason
    assert (world.record("a").not_before or 0) < world.now + 10 * SECOND


def test_a_probe_that_finds_nothing_counts_once_no_earlier_request_may_act() -> None:
    world = probed()
    over = replace(world.record("a"), acts_until=world.now - SKEW)
    world.task = replace(world.task, steps={**world.task.steps, "a": over})
    world.gives_back("a", effect=Effect.NONE)
    assert world.record("a").round == 2


def test_a_probe_that_fails_is_asked_again_after_a_wait() -> None:
    world = probed()
    world.fails("a")
    assert (world.record("a").not_before or 0) > world.now
    world.wait_until(world.record("a").not_before).start()
    assert request_for(world.plan, world.task, "a", None, world.now).probe_only


# --- commands ------------------------------------------------------------------------------------


def test_a_resubmit_that_would_use_a_forgotten_key_is_refused() -> None:
    world = archived_after(charge())
    with pytest.raises(Refused, match="a: the service may have forgotten the key"):
        world.resubmit()
    with pytest.raises(Refused, match="forgotten the key by which it is undone"):
        world.resubmit(fresh_key=True)


def test_a_resubmit_in_time_uses_the_key() -> None:
    world = tried_once(charge(), on_failure=Archive())
    world.wait(60).start()
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    world.resubmit()
    assert requests_in(world.start()) == ["a"]


def test_a_resubmit_asks_a_probe_that_outlives_the_key() -> None:
    world = tried_once(PROBED, on_failure=Archive())
    world.wait(60).start()
    world.is_refused("a")
    world.wait_until(UNTIL).resubmit()
    world.start()
    assert request_for(world.plan, world.task, "a", None, world.now).probe_only


def test_a_resubmit_of_an_undo_whose_key_is_forgotten_is_refused() -> None:
    world = tried_once(charge())
    world.wait(60).start()
    world.is_refused("a")
    world.is_refused("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    world.wait_until(UNTIL)
    with pytest.raises(Refused, match="a: the service may have forgotten the key"):
        world.resubmit()


def test_a_step_that_was_not_sent_does_not_stand_in_the_way_of_a_resubmit() -> None:
    last = step("z", "a", key_lifetime=TWO_HOURS)
    world = World(plan(step("a"), last, complete_within=A_DAY, on_failure=Archive()))
    world.start()
    world.is_refused("a")
    world.wait(20 * 3_600).resubmit()
    assert requests_in(world.start()) == ["a"]


def test_a_lifetime_that_comes_with_a_move_counts_from_the_first_request() -> None:
    def under(lifetime: timedelta | None) -> World:
        return World(plan(charge(key_lifetime=lifetime), complete_within=A_DAY))

    world, other = under(None), under(TWO_HOURS)
    world.start()
    for _ in range(3):
        world.fails("a", retry_after=1_000)
        world.wait(600).start()
    world.fails("a", retry_after=1_000)
    world.move(other.plan)
    world.wait(600).start()
    assert world.record("a").key_until == UNTIL


@pytest.mark.parametrize(("lifetime", "until"), [(1, UNTIL - 60 * MINUTE), (None, None)])
def test_a_lifetime_that_changes_with_a_move_counts_from_the_first_request(
    lifetime: int | None, until: int | None
) -> None:
    world = tried_once(charge())
    world.wait(600).start()
    world.fails("a", retry_after=1_000)
    hours = None if lifetime is None else timedelta(hours=lifetime)
    world.move(plan(charge(key_lifetime=hours), complete_within=A_DAY, on_failure=Undo()))
    assert world.record("a").key_until == until


def test_a_lifetime_changes_nothing_of_a_step_that_was_not_sent() -> None:
    world = World(plan(charge(), complete_within=A_DAY)).hold("worker", 600)
    world.start()
    hour = charge(key_lifetime=timedelta(hours=1))
    world.move(plan(hour, complete_within=A_DAY))
    assert world.record("a").key_until is None


def test_a_plan_without_a_step_that_was_sent_is_refused_whatever_its_key() -> None:
    world = tried_once(charge())
    with pytest.raises(Refused, match="a was sent"):
        world.move(plan(step("b"), complete_within=A_DAY, on_failure=Undo()))


def test_a_request_of_before_a_move_acts_by_the_plan_that_it_was_sent_under() -> None:
    made = charge(compensation=UNFENCED, key_lifetime=None, complete_within=timedelta(minutes=10))
    world = World(plan(made, complete_within=A_DAY, on_failure=Undo()))
    world.start()
    short = replace(made, key_lifetime=timedelta(minutes=21))
    world.move(plan(short, complete_within=A_DAY, on_failure=Undo()))
    world.ask_undo()
    world.is_refused("a")
    assert world.record("a").not_before == T0 + 10 * MINUTE + SKEW


def test_a_step_that_may_have_been_performed_before_a_restore_counts_from_its_instant() -> None:
    world = World(plan(step("first"), charge(after=("first",)), complete_within=A_DAY))
    world.start()
    world.succeeds("first")
    world.is_refused("a")
    restored = World(world.plan)
    restored.start()
    restored.wait(3 * 3_600).apply(Reconcile(restored.asked(), T0))
    assert restored.record("a").key_since == T0
    restored.start()
    restored.succeeds("first")
    assert restored.task_state() is TaskState.ARCHIVED


def test_a_step_whose_key_runs_out_is_undone_and_begins_at_its_next_agent() -> None:
    made = charge(agents=TWO, agent="")
    world = tried_once(made, on_failure=Archive()).wait_until(LAST_TRY + 1)
    assert requests_in(world.start()) == ["a"]
    assert world.state("a") is ProcessState.UNDOING
    world.succeeds("a")
    record = world.record("a")
    assert (record.agent, record.key_until) == ("second", world.now + 2 * 60 * MINUTE)


# --- definitions ---------------------------------------------------------------------------------


def test_the_lifetime_of_the_step_is_that_of_its_compensation() -> None:
    of_undo = replace(FENCED, key_lifetime=TWO_HOURS)
    by_step, by_undo = (
        step("a", compensation=FENCED, key_lifetime=TWO_HOURS),
        step("a", compensation=of_undo),
    )
    assert plan(by_step).hash == plan(by_undo).hash
    both = step("a", compensation=of_undo, key_lifetime=TWO_HOURS)
    assert plan(both).hash == plan(by_step).hash
    with pytest.raises(DefinitionError, match="are different; give it once"):
        step("a", compensation=of_undo, key_lifetime=timedelta(hours=3))


def test_a_lifetime_without_a_compensation_is_stored() -> None:
    made = plan(step("a", key_lifetime=TWO_HOURS))
    assert made.steps["a"].key_lifetime == 2 * 60 * MINUTE
    assert "keyLifetime" not in plan(step("a")).text
    with pytest.raises(DefinitionError, match="before one attempt to perform the step"):
        step("a", key_lifetime=timedelta(seconds=35))
    assert plan(step("a", key_lifetime=timedelta(seconds=36))).steps


def test_a_probe_that_outlives_no_key_is_refused() -> None:
    with pytest.raises(DefinitionError, match="probe_outlives_key needs key_lifetime"):
        step("a", probe_outlives_key=True)
    assert plan(PROBED, complete_within=A_DAY).steps["a"].probe_outlives_key
    assert "probeOutlivesKey" not in plan(charge(), complete_within=A_DAY).text


# --- bulk runs -----------------------------------------------------------------------------------


def judged_at(world: World, event: Resubmit | UndoAsked) -> Eligible | NotFor:
    run = Run("b-1a2b3c4d", event, "amy", "AROA:amy", "it is back", "", world.now + 1, 1, Terms())
    return judged(run, PlannedOrder("ord-1", world.task.version), world.plan, world.task, world.now)


def test_a_bulk_resubmit_leaves_out_an_order_whose_key_may_be_forgotten() -> None:
    found = judged_at(archived_after(charge()), Resubmit(CommandSource("b-1a2b3c4d", "amy")))
    assert isinstance(found, NotFor)
    assert "forgotten the key" in found.why


@pytest.mark.parametrize(("wait", "left_out"), [(60, False), (2 * 3_600 - 29, True)])
def test_a_bulk_undo_leaves_out_an_order_whose_undo_would_find_nothing(
    wait: int, left_out: bool
) -> None:
    world = World(plan(charge(), complete_within=A_DAY, retain_for=A_DAY))
    world.start()
    world.succeeds("a")
    world.wait(wait)
    asked = CommandSource("b-1a2b3c4d", "amy", seen_version=world.task.version)
    found = judged_at(world, UndoAsked(asked))
    assert isinstance(found, NotFor) is left_out
    if isinstance(found, NotFor):
        assert "the key of a has expired" in found.why


def test_what_is_given_back_with_a_proof_and_too_late_begins_a_new_round() -> None:
    world = tried_once(charge()).wait_until(LAST_TRY)
    world.start()
    unread = replace(world.record("a"), uncounted_timeouts=2)
    world.task = replace(world.task, steps={**world.task.steps, "a": unread})
    [row] = world.wait(1).gives_back("a", effect=Effect.NONE).history
    assert (row.kind, row.reason) == (
        "requeued",
        "a: nothing has happened under its key, which its service may forget; "
        "it begins under another key",
    )
    record = world.record("a")
    assert (record.round, record.outcome_unknown, record.uncounted_timeouts) == (2, False, 0)


def test_what_is_given_back_without_a_proof_is_parked_however_late() -> None:
    world = tried_once(charge()).wait_until(LAST_TRY)
    world.start()
    world.wait(1).gives_back("a")
    assert (world.record("a").round, world.record("a").held_since) == (1, world.now)


@pytest.mark.parametrize(
    ("made", "acts_until", "last"),
    [
        (charge(), None, UNTIL - 30 * SECOND),
        (charge(), UNTIL, UNTIL - 30 * SECOND),
        (charge(compensation=UNFENCED), T0 + MINUTE, UNTIL - 30 * SECOND),
        (charge(compensation=UNFENCED), UNTIL - 30 * SECOND - SKEW, UNTIL - 30 * SECOND),
        (charge(compensation=UNFENCED), UNTIL - 30 * SECOND - SKEW + 1, None),
    ],
)
def test_an_undo_that_waits_for_the_last_request_has_to_end_in_time_too(
    made: Step, acts_until: int | None, last: int | None
) -> None:
    world = World(plan(made, complete_within=A_DAY, on_failure=Undo()))
    sent = step_record(process_state=ProcessState.PENDING, started_at=T0, acts_until=acts_until)

    def in_time(at: int, lag: int = 0) -> bool:
        builder = DecisionBuilder(replace(world.task, steps={"a": sent}), at, world.plan)
        context = DecisionContext(world.plan, builder, None, {}, 0.0)
        return undo_is_in_time(context, world.plan.steps["a"], lag)

    at = UNTIL - 30 * SECOND if last is None else last
    assert in_time(at) is (last is not None)
    assert not in_time(at + 1)
    assert not in_time(at, lag=1)


def test_a_bulk_run_that_undoes_nothing_sends_to_an_order_whose_key_may_be_forgotten() -> None:
    world = World(plan(charge(), step("b", "a"), complete_within=A_DAY, on_failure=Archive()))
    world.start()
    world.succeeds("a")
    world.is_refused("b")
    world.wait(3 * 3_600)
    asked = CommandSource("b-1a2b3c4d", "amy")
    assert isinstance(judged_at(world, UndoAsked(asked)), NotFor)
    assert isinstance(judged_at(world, Resubmit(asked)), Eligible)


def test_a_reply_that_has_changed_the_key_sends_its_own_claim_again_if_it_comes_again() -> None:
    world = tried_once(charge()).wait_until(LAST_TRY)
    world.start()
    lock, claimant = world.lock("a"), world.claimant()
    first = world.wait(1).gives_back("a", effect=Effect.NONE, claimant=claimant)
    assert (requests_in(first), world.record("a").round) == (["a"], 2)
    again = world.gives_back("a", lock=lock, key="ord-1/a/perform", claimant=claimant)
    assert (requests_in(again), again.task) == (["a"], first.task)
