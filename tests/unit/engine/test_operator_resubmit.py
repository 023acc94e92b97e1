"""Resubmission: what is attempted again, under which key, and when a fresh one is refused."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Unpack

import pytest

from roundsman.definition.workflow import Compensation, Step, Undo
from roundsman.engine.due import START_WITHIN, due
from roundsman.engine.request_deadlines import fits_key
from roundsman.engine.requests import request_for
from roundsman.errors import Refused
from roundsman.model.events import Outcome, Resubmit, StartTask
from roundsman.model.instants import SECOND, SKEW
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, LeftOut, idempotency_key
from tests.support.coping_stories import FENCED as ONCE_FENCED
from tests.support.machine_checks import OPEN
from tests.support.machine_world import T0, StepOptions, World, begun, plan, requests_in, step
from tests.support.operator_stories import FENCED, HOUR, ONCE, archived, refusal, undone


def test_a_resubmission_attempts_the_failed_step_under_its_key_with_all_its_time() -> None:
    world = archived()
    decision = world.resubmit()
    assert world.task_state() is TaskState.PENDING
    assert decision.actions == (StartTask(),)
    assert world.task.ending is None
    assert (world.task.ended_at, world.task.lane) == (None, OPEN)
    assert world.task.complete_by == world.now + HOUR * SECOND
    assert world.record("b").failure_count == 0
    assert due(world.task, world.now) == world.now + START_WITHIN
    assert requests_in(world.start()) == ["b"]
    request = world.request("b")
    assert (request.idempotency_key, request.attempt) == ("ord-1/b/perform", 1)
    assert world.state("a") is ProcessState.PROCESSED
    assert world.record("a").result == "r"


def test_a_resubmitted_step_says_that_earlier_attempts_may_have_had_their_effect() -> None:
    world = begun(step("a", retry=ONCE))
    world.overdue("a")
    world.resubmit()
    world.start()
    assert world.request("a").outcome_unknown


def test_a_resubmission_names_steps_that_failed_and_all_of_them() -> None:
    world = begun(step("a"), step("b"), step("c"))
    for name in "abc":
        world.is_refused(name) if name != "c" else world.succeeds(name)
    sentence = refusal(world, lambda: world.resubmit("c", "a"))
    assert sentence == "c: not among the failed steps to attempt next"
    sentence = refusal(world, lambda: world.resubmit("a"))
    assert sentence == "b failed too: name every failed step, or resolve the others"
    world.resubmit("a", "b")
    assert requests_in(world.start()) == ["a", "b"]


def test_a_task_that_ran_out_of_time_goes_on_where_it_stood() -> None:
    a = step("a")
    world = begun(a, step("b", a), complete_within=timedelta(seconds=30))
    world.wait(30).succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED
    world.deliver_owed()
    decision = world.wait(HOUR).resubmit()
    assert decision.actions == (StartTask(),)
    assert due(world.task, world.now) <= world.now + START_WITHIN
    assert requests_in(world.start()) == ["b"]


def test_undos_that_failed_are_made_again_newest_first() -> None:
    fenced = Compensation(fences_late_performs=True)
    a = step("a", compensation=fenced)
    b = step("b", a, compensation=fenced)
    world = begun(a, b, on_failure=Undo())
    world.succeeds("a")
    world.is_refused("b")
    world.is_refused("b")  # and so is its undo
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    world.resubmit()
    assert requests_in(world.start()) == ["b"]
    world.wait(60)  # the agent of b takes its time, and nothing of a is asked for meanwhile
    assert requests_in(world.start()) == []
    assert requests_in(world.succeeds("b")) == ["a"]
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE


def test_a_fresh_key_is_given_where_it_is_proven_that_nothing_happened() -> None:
    world = begun(step("a"))
    world.is_refused("a", effect=Effect.NONE)
    world.resubmit(fresh_key=True)
    world.start()
    request = world.request("a")
    assert request.idempotency_key == "ord-1/a/perform/2"
    assert not request.outcome_unknown
    before = world.task
    assert world.reply("a", Outcome.SUCCEEDED, key="ord-1/a/perform").task is before


UNSURE: list[Callable[[World], object]] = [
    lambda world: world.fails("a"),
    lambda world: world.overdue("a"),
    lambda world: world.is_refused("a"),
]


@pytest.mark.parametrize("fail", UNSURE)
def test_a_step_whose_outcome_is_unknown_is_undone_under_its_key_before_it_has_a_fresh_one(
    fail: Callable[[World], object],
) -> None:
    """A refusal is no proof: another try or another copy of the request may have been taken."""
    world = begun(step("a", retry=ONCE, compensation=FENCED))
    fail(world)
    assert world.record("a").outcome_unknown
    world.resubmit(fresh_key=True)
    assert world.task_state() is TaskState.PENDING
    assert requests_in(world.start()) == ["a"]
    undo = world.request("a")
    assert (undo.operation, undo.perform_key) == ("undo", "ord-1/a/perform")
    assert requests_in(world.succeeds("a")) == ["a"]
    request = world.request("a")
    assert request.idempotency_key == "ord-1/a/perform/2"
    assert not request.outcome_unknown
    world.succeeds("a")
    assert world.task_state() is TaskState.COMPLETED


def test_an_undo_before_a_fresh_key_waits_where_the_service_does_not_fence() -> None:
    world = begun(step("a", retry=ONCE, compensation=Compensation()))
    world.is_refused("a")
    world.resubmit(fresh_key=True)
    assert world.record("a").not_before == T0 + 35 * SECOND
    assert world.task_state() is TaskState.RETRY


def test_an_undo_before_a_fresh_key_that_fails_is_made_again_and_then_the_key_is_fresh() -> None:
    world = begun(step("a", retry=ONCE, compensation=FENCED))
    world.is_refused("a")
    world.resubmit(fresh_key=True)
    world.start()
    world.is_refused("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert world.state("a") is ProcessState.UNDO_ERROR
    world.resubmit()
    world.start()
    world.succeeds("a")
    assert world.record("a").round == 2


def is_refused_and_has_happened(world: World) -> None:
    lock = world.lock("a")
    world.is_refused("a")
    world.succeeds("a", lock=lock)


@pytest.mark.parametrize(
    ("fail", "words"),
    [
        (lambda world: world.is_refused("a"), "may have had"),
        (is_refused_and_has_happened, "has had"),
    ],
)
def test_no_fresh_key_for_what_may_stand_and_nothing_can_undo(
    fail: Callable[[World], object], words: str
) -> None:
    world = begun(step("a", retry=ONCE, result_limit=20))
    fail(world)
    world.wait(HOUR)
    assert refusal(world, lambda: world.resubmit(fresh_key=True)) == (
        f"a: it {words} its effect under its key, and has no compensation; check the remote "
        "service, then resolve the step as done, or name it in `notDone`"
    )


def test_a_person_may_give_a_fresh_key_to_what_did_not_happen_once_no_copy_can_act() -> None:
    world = begun(step("a", retry=ONCE))
    world.is_refused("a")
    assert refusal(world, lambda: world.resolve("a", did=False, fresh_key=True)) == (
        "a: a copy of its request may act under its key until 2027-01-15T08:00:35Z; check the "
        "remote service after that, and send the command again"
    )
    world.wait(35).resolve("a", did=False, fresh_key=True)
    world.start()
    assert world.request("a").idempotency_key == "ord-1/a/perform/2"


def test_no_fresh_key_for_a_step_that_was_never_at_its_agent() -> None:
    world = begun(step("a", when="abs(input.total)"), order={"total": "x"})
    sentence = refusal(world, lambda: world.resubmit(fresh_key=True))
    assert sentence == "a was never sent to its agent: its key is already fresh"


def test_where_an_undo_failed_only_that_is_made_again_and_under_its_key() -> None:
    world = archived()
    world.ask_undo()
    world.start()
    world.is_refused("b")
    world.succeeds("a")
    assert world.task_state() is TaskState.ARCHIVED
    assert refusal(world, lambda: world.resubmit(fresh_key=True)) == (
        "an undo must keep its key: under a fresh key it might take effect twice"
    )
    sentence = refusal(world, lambda: world.resubmit("a"))
    assert sentence == "a: not among the failed steps to attempt next"
    world.resubmit()
    assert world.task_state() is TaskState.UNDOING
    assert requests_in(world.start()) == ["b"]
    request = world.request("b")
    assert (request.idempotency_key, request.perform_key) == ("ord-1/b/undo", "ord-1/b/perform")
    assert request.attempt == 1
    world.succeeds("b")
    assert world.task_state() is TaskState.UNDONE


@pytest.mark.parametrize("state", ["undone", "cancelled"])
def test_a_task_that_was_undone_begins_again_only_if_asked_explicitly_and_under_new_keys(
    state: str,
) -> None:
    if state == "undone":
        world = undone()
    else:
        world = archived()
        world.cancel()
        world.start()
        world.succeeds("b")
        world.succeeds("a")
        world.deliver_owed()
    sentence = refusal(world, world.resubmit)
    assert sentence == f"the task is {state}: set `again` to begin every step again under new keys"
    sentence = refusal(world, lambda: world.resubmit("b", again=True))
    assert sentence == f"the task is {state}: every step begins again, so do not name steps"
    world.wait(HOUR).resubmit(again=True)
    assert world.task_state() is TaskState.PENDING
    assert world.task.complete_by == world.now + HOUR * SECOND
    assert due(world.task, world.now) == world.now + START_WITHIN
    for name in "abc":
        assert requests_in(world.start() if name == "a" else world.succeeds("ab"["bc".index(name)]))
        key = world.request(name).idempotency_key
        assert key == (f"ord-1/{name}/perform" if name == "c" else f"ord-1/{name}/perform/2")
    assert world.request("c").results == {
        "a": None,
        "b": None,
    }


def test_a_third_time_has_keys_of_its_own_again() -> None:
    world = undone()
    for number in (2, 3):
        world.resubmit(again=True)
        world.start()
        key = idempotency_key("ord-1", "a", "perform", world.record("a"))
        assert key == f"ord-1/a/perform/{number}"
        world.cancel()
        world.succeeds("a")
        assert request_for(world.plan, world.task, "a", None, T0).perform_key == key
        world.succeeds("a")
        assert world.task_state() is TaskState.CANCELLED


def test_a_late_answer_of_an_earlier_round_changes_nothing() -> None:
    world = undone()
    world.resubmit(again=True)
    world.start()
    before = world.task
    for operation in ("perform", "undo"):
        decision = world.reply(
            "a", Outcome.SUCCEEDED, operation=operation, key=f"ord-1/a/{operation}"
        )
        assert decision.task is before
        assert decision.reason == "a: reply under another key ignored"


def test_nothing_begins_anew_over_effects_that_stand() -> None:
    world = archived()
    world.cancel(undo=False)
    assert world.task_state() is TaskState.CANCELLED
    sentence = refusal(world, lambda: world.resubmit(again=True))
    assert sentence == "the effects of a, b may stand and would happen twice: undo the task first"
    world.ask_undo()
    assert requests_in(world.start()) == ["b"]


# --- the plan that it names -----------------------------------------------------------------------


def test_a_resubmission_that_names_the_plan_of_the_task_may_name_its_steps() -> None:
    world = archived()
    world.resubmit("b", under=world.plan)
    assert world.state("b") is ProcessState.PENDING


def test_a_resubmission_under_another_plan_names_no_steps() -> None:
    world = archived()
    under = plan(*(step(name, compensation=FENCED) for name in "ab"))
    assert refusal(world, lambda: world.resubmit("b", under=under)) == (
        "under another plan every failed step is attempted: do not name steps"
    )


# --- keys that may be forgotten -------------------------------------------------------------------

FORGOTTEN = (
    "a: the service may have forgotten the key, and whether it took effect is unknown; look there, "
    "and resolve it first"
)


def kept_for_two_hours(*after: Step, **options: Unpack[StepOptions]) -> World:
    """A task of a step `a` whose key is remembered for two hours, and of these steps."""
    options.setdefault("compensation", ONCE_FENCED)
    options.setdefault("key_lifetime", timedelta(hours=2))
    a = step("a", **options)
    return begun(a, *after, complete_within=timedelta(days=1))


def test_a_waiting_step_is_not_sent_again_under_a_key_that_may_be_forgotten() -> None:
    world = kept_for_two_hours(step("b", retry=ONCE))
    world.fails("a", retry_after=600 * SECOND)
    world.is_refused("b")
    assert (world.task_state(), world.state("a")) == (TaskState.ARCHIVED, ProcessState.PENDING)
    world.wait(3 * HOUR)
    assert refusal(world, world.resubmit) == FORGOTTEN
    proven = replace(world.record("a"), effect=Effect.NONE)
    world.task = replace(world.task, steps={**world.task.steps, "a": proven})
    world.resubmit()
    assert world.task_state() is TaskState.PENDING


@pytest.mark.parametrize("probe", [False, True])
def test_a_failed_undo_is_not_made_again_under_a_key_that_may_be_forgotten(probe: bool) -> None:
    world = kept_for_two_hours(step("b", "a", retry=ONCE), probe_outlives_key=probe)
    world.succeeds("a")
    world.is_refused("b")
    world.ask_undo()
    world.start()
    world.fails("a")
    assert world.state("a") is ProcessState.UNDO_ERROR
    world.wait(3 * HOUR)
    assert refusal(world, world.resubmit) == FORGOTTEN


def test_a_step_does_not_go_on_after_an_undo_under_a_key_that_may_be_forgotten() -> None:
    world = kept_for_two_hours(agents=("first", "second"), retry=ONCE)
    world.fails("a")
    world.start()
    world.fails("a")
    assert world.task.ending is not None
    assert (world.state("a"), world.task.ending.undo) == (ProcessState.UNDO_ERROR, False)
    world.wait(3 * HOUR)
    assert refusal(world, world.resubmit) == FORGOTTEN


@pytest.mark.parametrize(
    ("fenced", "lifetime"), [(True, timedelta(hours=2)), (False, timedelta(days=9))]
)
def test_a_step_that_did_not_happen_begins_at_once_if_its_key_cannot_be_spent(
    fenced: bool, lifetime: timedelta
) -> None:
    compensation = ONCE_FENCED if fenced else Compensation(retry=ONCE)
    world = kept_for_two_hours(retry=ONCE, compensation=compensation, key_lifetime=lifetime)
    world.fails("a")
    world.wait(3 * HOUR)
    world.apply(Resubmit(world.asked(), fresh_key=True, not_done=("a",)))
    assert (world.state("a"), world.record("a").round) == (ProcessState.PENDING, 2)


# --- resolved under a fresh key -------------------------------------------------------------------


def test_a_step_that_is_not_fenced_and_did_not_happen_begins_under_a_fresh_key_at_once() -> None:
    world = kept_for_two_hours(retry=ONCE, compensation=Compensation(retry=ONCE))
    world.fails("a")
    world.wait(600).resolve("a", did=False, fresh_key=True)
    assert (world.state("a"), world.record("a").round) == (ProcessState.PENDING, 2)


def test_that_a_step_did_happen_is_taken_while_its_last_request_may_act() -> None:
    lifetime = timedelta(milliseconds=70 * SECOND + 2 * SKEW)
    world = kept_for_two_hours(key_lifetime=lifetime, compensation=Compensation(retry=ONCE))
    world.now += SKEW + 15 * SECOND
    assert not fits_key(world.plan.steps["a"], world.record("a"), world.now)
    sentence = refusal(world, lambda: world.resolve("a", did=False))
    assert "a copy of its request may act" in sentence
    world.resolve("a", did=True)
    assert world.state("a") is ProcessState.PROCESSED


def test_an_undo_before_a_fresh_key_says_what_it_is_for_in_a_resolution_too() -> None:
    world = archived()
    reason = world.resolve("b", did=False, fresh_key=True).history[0].reason
    assert reason == "b: its undo begins; after its undo, the step begins under a new key"


@pytest.mark.parametrize(
    ("compensation", "after", "effect"),
    [
        (ONCE_FENCED, HOUR, None),
        (Compensation(retry=ONCE), 1, None),
        (Compensation(retry=ONCE), HOUR, Effect.NONE),
    ],
)
def test_what_did_not_happen_is_proven_once_no_request_can_act(
    compensation: Compensation, after: int, effect: Effect | None
) -> None:
    world = kept_for_two_hours(retry=ONCE, compensation=compensation)
    world.fails("a")
    world.wait(after).resolve("a", did=False)
    assert (world.state("a"), world.record("a").effect) == (ProcessState.PENDING, effect)


def test_a_result_that_a_person_gives_takes_the_place_of_one_that_was_left_out() -> None:
    world = kept_for_two_hours()
    world.fails("a")
    lacks = replace(world.record("a"), left_out=LeftOut("not JSON"))
    world.task = replace(world.task, steps={**world.task.steps, "a": lacks})
    world.resolve("a", result=7)
    assert (world.record("a").result, world.record("a").left_out) == (7, None)


def test_a_task_goes_on_whose_only_failure_was_an_undo_that_a_person_has_made() -> None:
    world = kept_for_two_hours(agents=("first", "second"), retry=ONCE)
    world.fails("a")
    world.start()
    world.fails("a")
    assert world.task_state() is TaskState.ARCHIVED
    world.wait(60).resolve("a")
    assert (world.task.ending, world.state("a")) == (None, ProcessState.PENDING)
    assert world.task.start_at == world.now


# --- more time ------------------------------------------------------------------------------------


def test_a_wait_for_a_callback_gets_more_time_than_its_key_lasts() -> None:
    world = kept_for_two_hours()
    world.waits_for_callback("a", HOUR)
    world.extend(5 * HOUR, "a")
    assert world.record("a").until == T0 + 6 * HOUR * SECOND


def test_a_probe_that_outlives_the_key_gets_more_time() -> None:
    world = kept_for_two_hours(probe_outlives_key=True)
    world.fails("a", retry_after=3 * HOUR * SECOND)
    world.wait(4 * HOUR).start()
    world.extend(60, "a")
    assert world.record("a").extra == 60 * SECOND


def test_the_last_millisecond_before_a_deadline_can_be_added() -> None:
    world = kept_for_two_hours()
    for room, words in ((1, "at most .* can be added"), (0, "no time can be added")):
        world.task = replace(world.task, deadline=world.task.complete_by + room)
        with pytest.raises(Refused, match=words):
            world.extend(60)


def test_an_undo_that_waits_until_no_request_can_act_is_not_run_now() -> None:
    world = kept_for_two_hours(
        agents=("first", "second"), retry=ONCE, compensation=Compensation(retry=ONCE)
    )
    world.fails("a")
    before = world.record("a").not_before
    assert (world.state("a"), before) == (ProcessState.UNDOING, T0 + 30 * SECOND + SKEW)
    world.run_now()
    assert world.record("a").not_before == before
