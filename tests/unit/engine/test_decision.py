"""One decision: what each of its parts does to a record, and what is added once."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Retry, Undo
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.due import START_WITHIN
from roundsman.engine.new_task import ProcessingOptions
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.engine.transitions import StepEvent, TaskEvent
from roundsman.errors import NoTransition
from roundsman.model.events import CommandSource, InspectAt, Signalled
from roundsman.model.instants import LONG_OVER, SECOND, SKEW
from roundsman.model.retry_window import RetryWindow
from roundsman.model.situations import (
    AtAgent,
    AwaitsCallback,
    End,
    Ended,
    NotBegun,
    Parked,
    Ready,
    Situation,
    WaitsUntil,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.states import SituationName as S
from roundsman.model.task import Effect, LeftOut, StepError, StepRecord, Termination
from tests.support.coping_stories import FENCED, SLOW, routed
from tests.support.fan_out_stories import FENCED as FENCED_ITEM
from tests.support.fan_out_stories import one_is_left_out, picking
from tests.support.machine_world import T0, World, plan, step
from tests.support.operator_stories import archived, heard_late, undone
from tests.support.situations import RECORDS
from tests.support.steps import changed_step, step_record

P = ProcessState
NOW = T0 + 7 * SECOND


def builder(**records: StepRecord) -> DecisionBuilder:
    world = World(plan(*(step(name) for name in records)))
    task = replace(world.task, steps=records, state=TaskState.ACTIVE)
    return DecisionBuilder(task, NOW, world.plan)


# --- records --------------------------------------------------------------------------------------


def test_an_event_that_changes_nothing_moves_no_step() -> None:
    with pytest.raises(TypeError, match="changes nothing about a step processed"):
        builder(a=step_record(process_state=P.PROCESSED)).move("a", StepEvent.STALE, NotBegun())


@pytest.mark.parametrize(
    ("record", "used"),
    [
        (StepRecord(), {}),
        (step_record(round=3), {"a": 2}),
        (step_record(started_at=T0), {"a": 1}),
        (step_record(started_at=T0, round=3), {"a": 3}),
        (step_record(tried=("other",)), {"a": 1}),
    ],
)
def test_of_a_removed_step_the_rounds_whose_keys_were_used_are_kept(
    record: StepRecord, used: dict[str, int]
) -> None:
    found = builder(a=record)
    found.remove("a", StepEvent.REMOVED)
    assert (dict(found.task.used_rounds), found.steps) == (used, {})


def test_an_attempt_that_is_over_has_no_heartbeat() -> None:
    world = World(plan(SLOW))
    world.start()
    assert world.record("a").heartbeat_by == T0 + 10 * SECOND
    world.fails("a")
    assert world.record("a").heartbeat_by is None


def test_an_item_whose_undo_failed_has_the_error_of_its_undo() -> None:
    world = one_is_left_out(FENCED_ITEM)
    assert world.record("pick[1]").error == StepError("CardDeclined", "insufficient funds")
    world.fails("pick[1]")
    assert world.state("pick[1]") is P.UNDO_ERROR
    assert world.record("pick[1]").error == StepError("Unavailable", "503")


def test_a_request_for_an_item_may_act_for_as_long_as_its_steps_patience() -> None:
    world = picking(2, compensation=FENCED_ITEM, retry=Retry(max_attempts=2))
    world.fails("pick[1]")
    assert world.record("pick[1]").acts_until == T0 + (1 + PATIENCE) * 30 * SECOND


def test_without_its_plan_a_request_may_act_until_its_complete_by() -> None:
    claimed = step_record(process_state=P.PROCESSING, started_at=T0, complete_by=T0 + 30 * SECOND)
    task = replace(builder(a=claimed).task, steps={"a": claimed, "gone": claimed})
    fenced = plan(step("a", compensation=FENCED))
    with_plan, without = DecisionBuilder(task, T0, fenced), DecisionBuilder(task, T0)
    assert with_plan.acts_until("a") == T0 + (1 + PATIENCE) * 30 * SECOND
    assert without.acts_until("a") == T0 + 30 * SECOND
    assert with_plan.acts_until("gone") == T0 + 30 * SECOND


def test_a_step_that_failed_before_any_request_has_none_that_may_act() -> None:
    assert builder(a=step_record(process_state=P.ERROR)).acts_until("a") is None


def test_no_undo_waits_for_the_end_of_its_own_requests() -> None:
    world = World(plan(step("a", compensation=FENCED), on_failure=Undo()))
    world.start()
    world.ask_undo()
    world.fails("a")
    world.start()
    world.gives_back("a")
    assert world.state("a") is P.UNDOING
    assert world.record("a").acts_until is None


def test_an_ending_tasks_own_time_does_not_shorten_a_start() -> None:
    decision = builder(a=StepRecord())
    at = decision.task.complete_by
    assert decision.start_by(at - 1) == at
    decision.end(Termination(TaskState.UNDONE, "why", undo=True))
    assert decision.start_by(at - 1) == at - 1 + START_WITHIN


def test_a_step_under_way_does_not_begin_anew() -> None:
    with pytest.raises(NoTransition):
        builder(a=step_record(process_state=P.PROCESSING, started_at=T0)).begin_anew("a")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (step_record(process_state=P.SKIPPED, finished_at=T0), None),
        (step_record(round=2, process_state=P.SKIPPED, finished_at=T0), step_record(round=2)),
        (step_record(round=2, process_state=P.UNDONE, started_at=T0), step_record(round=3)),
        (step_record(tried=("first",)), step_record(round=2)),
    ],
)
def test_begun_anew_a_step_is_untouched_but_for_the_keys_it_has_used(
    before: StepRecord, after: StepRecord | None
) -> None:
    decision = builder(a=before)
    decision.begin_anew("a")
    assert decision.steps.get("a") == after


@pytest.mark.parametrize(
    ("acts_until", "until"),
    [
        (NOW + 30 * SECOND, NOW + 30 * SECOND),
        (NOW - SKEW + 1, NOW - SKEW + 1),
        (NOW - SKEW, LONG_OVER),
        (None, LONG_OVER),
    ],
)
def test_a_step_whose_callback_has_come_ends_with_its_request(
    acts_until: int | None, until: int
) -> None:
    waiting = step_record(
        process_state=P.PROCESSING,
        started_at=T0,
        waiting=True,
        complete_by=T0 + 600 * SECOND,
        acts_until=acts_until,
    )
    decision = builder(a=waiting)
    assert isinstance(waiting.situation, AwaitsCallback)
    decision.stop_waiting("a", waiting.situation)
    assert decision.step("a") == changed_step(waiting, waiting=False, complete_by=until)


@pytest.mark.parametrize(("key_since", "since"), [(None, T0), (T0 + SECOND, T0 + SECOND)])
def test_the_key_of_a_step_that_may_have_been_performed_is_as_old_as_its_first_request(
    key_since: int | None, since: int
) -> None:
    decision = builder(a=step_record(started_at=T0, key_since=key_since), b=StepRecord())
    for name in ("a", "b"):
        decision.mark_possibly_performed(name, NOW, claimed=True)
    assert (decision.step("a").started_at, decision.step("a").key_since) == (T0, since)
    assert (decision.step("b").started_at, decision.step("b").key_since) == (NOW, NOW)


def test_under_a_new_key_no_result_of_the_step_is_left_out() -> None:
    decision = builder(a=step_record(started_at=T0, left_out=LeftOut("too large", 9)))
    decision.new_round("a")
    assert (decision.step("a").round, decision.step("a").left_out) == (2, None)


def test_a_signal_that_has_left_its_task_unread_came_before() -> None:
    decision = builder(a=StepRecord())
    decision.task = replace(decision.task, signals_left=("s-1",))
    came = [Signalled(CommandSource(one, "application"), "paid") for one in ("s-1", "s-2")]
    assert [decision.done_before(one) for one in came] == [True, False]


# --- a failure for good ---------------------------------------------------------------------------

CLAIMED = step_record(process_state=P.PROCESSING, started_at=T0, extra=5, granted=7, not_before=T0)
ERROR = StepError("Declined", "")


@pytest.mark.parametrize(
    ("record", "effect", "unknown"),
    [
        (CLAIMED, None, True),
        (CLAIMED, Effect.NONE, False),
        (replace(CLAIMED, outcome_unknown=True), Effect.NONE, True),
        (changed_step(CLAIMED, process_state=P.UNDOING), None, False),
    ],
)
def test_the_effect_of_a_failed_perform_is_unknown_unless_it_is_proven(
    record: StepRecord, effect: Effect | None, unknown: bool
) -> None:
    decision = builder(a=record)
    decision.fail("a", StepEvent.REFUSED, ERROR, effect)
    after = decision.step("a")
    assert (after.outcome_unknown, after.effect) == (unknown, effect)
    assert (after.extra, after.granted, after.not_before) == (0, 0, None)
    assert (after.finished_at, after.failure_count) == (decision.now, 0)


def test_a_step_that_was_never_claimed_has_no_effect_that_could_be_unknown() -> None:
    decision = builder(a=StepRecord())
    decision.fail("a", StepEvent.CONDITION_FAILED, ERROR)
    assert not decision.step("a").outcome_unknown


# --- what is added once ---------------------------------------------------------------------------


def test_the_first_ending_is_kept_and_is_the_reason() -> None:
    decision = builder(a=step_record(process_state=P.PROCESSING, started_at=T0))
    assert decision.end(Termination(TaskState.UNDONE, "the first", undo=True)) is True
    assert decision.end(Termination(TaskState.ARCHIVED, "the second")) is False
    assert decision.build(None, TaskEvent.REPLIED).reason == "the first"


def test_an_action_that_is_asked_for_twice_is_asked_for_once() -> None:
    decision = builder(a=StepRecord())
    decision.action(InspectAt(T0))
    decision.action(InspectAt(T0))
    decision.action(InspectAt(T0 + 1))
    assert decision.unchanged("why").actions == (InspectAt(T0), InspectAt(T0 + 1))


# --- what an event keeps --------------------------------------------------------------------------

READY = Ready(claim_by=T0 + SECOND)
AT_AGENT = AtAgent(lock="lock.1", until=T0)
WAIT = AwaitsCallback(lock="lock.1", until=T0)
WAITS = WaitsUntil(not_before=T0, claim_by=T0)
PARKED = Parked(not_before=T0, claim_by=T0, since=T0)
SUCCEEDED = Ended(how=End.SUCCEEDED)
FAILED = Ended(how=End.FAILED)


@pytest.mark.parametrize(
    ("situation", "event", "to", "kept"),
    [
        (S.PARKED, StepEvent.HELD, PARKED, "calls series"),
        (S.PARKED, StepEvent.UNCLAIMED, READY, "calls series"),
        (S.PARKED, StepEvent.RETRY_DUE, READY, "calls series"),
        (S.PARKED, StepEvent.RESOLVED_NOT_DONE, READY, ""),
        (S.PARKED, StepEvent.CLAIMED, AT_AGENT, "calls series"),
        (S.PARKED, StepEvent.SUCCEEDED, SUCCEEDED, ""),
        (S.PARKED, StepEvent.UNDO_BEGUN, READY, ""),
        (S.READY, StepEvent.CONDITION_FALSE, Ended(how=End.SKIPPED), ""),
        (S.AT_AGENT, StepEvent.UNREAD, READY, "calls series"),
        (S.AT_AGENT, StepEvent.EXTENDED, AT_AGENT, "calls series"),
        (S.AT_AGENT, StepEvent.PROGRESSED, AT_AGENT, "series"),
        (S.AT_AGENT, StepEvent.WAITS_FOR_CALLBACK, WAIT, ""),
        (S.AWAITS_CALLBACK, StepEvent.REMINDER_DUE, WAIT, ""),
        (S.AT_AGENT, StepEvent.OUT_OF_TIME, READY, "series"),
        (S.AT_AGENT, StepEvent.OVERDUE, READY, "series"),
        (S.AT_AGENT, StepEvent.FAILED, WAITS, "series"),
        (S.AT_AGENT, StepEvent.EXHAUSTED, FAILED, "series"),
        (S.AT_AGENT, StepEvent.REFUSED, FAILED, ""),
        (S.UNDO_PARKED, StepEvent.HELD, PARKED, "calls series"),
        (S.UNDO_PARKED, StepEvent.GOES_ON_AFTER_UNDO, READY, ""),
    ],
)
def test_an_event_keeps_of_the_counts_what_goes_on(
    situation: S, event: StepEvent, to: Situation, kept: str
) -> None:
    made = replace(
        RECORDS[situation],
        started_at=T0,
        uncounted_calls=3,
        retry_window=RetryWindow(until=T0 + SECOND, unexpected_since=T0, waits=2),
    )
    decision = builder(a=made)
    decision.move("a", event, to)
    record = decision.step("a")
    assert record.situation == to
    assert (record.uncounted_calls == 3) is ("calls" in kept)
    window = record.retry_window
    series = (window.until is not None, window.unexpected_since, window.waits)
    assert series == ((True, T0, 2) if "series" in kept else (False, None, 0))


@pytest.mark.parametrize(
    ("situation", "anew", "since"),
    [(S.PARKED, False, T0), (S.PARKED, True, None), (S.READY, False, None)],
)
def test_a_step_that_was_parked_counts_as_parked_until_it_is_claimed_or_begins_anew(
    situation: S, anew: bool, since: int | None
) -> None:
    decision = builder(a=RECORDS[situation])
    decision.requeue("a", StepEvent.UNCLAIMED, forget_hold=anew)
    assert decision.step("a").held_since == since
    decision.requeue("a", StepEvent.UNCLAIMED)
    assert decision.step("a").held_since == since


@pytest.mark.parametrize(
    ("event", "to", "granted"),
    [
        (StepEvent.OUT_OF_TIME, READY, 3 * SECOND),
        (StepEvent.FAILED, WAITS, 3 * SECOND),
        (StepEvent.EXTENDED, AT_AGENT, SECOND),
    ],
)
def test_time_that_a_person_added_to_an_attempt_is_granted_to_the_next(
    event: StepEvent, to: Situation, granted: int
) -> None:
    attempt = AtAgent(lock="lock.1", until=T0, extra=2 * SECOND)
    decision = builder(a=StepRecord(situation=attempt, granted=SECOND))
    decision.move("a", event, to)
    assert decision.step("a").granted == granted


@pytest.mark.parametrize(
    ("situation", "how", "until"),
    [
        (S.AT_AGENT, End.SUCCEEDED, T0),
        (S.AT_AGENT, End.FAILED, T0),
        (S.AWAITS_CALLBACK, End.FAILED, T0),
        (S.READY, End.FAILED, None),
        (S.FAILED, End.SKIPPED, None),
        (S.UNDO_AT_AGENT, End.SUCCEEDED, None),
    ],
)
def test_a_perform_that_ended_says_until_when_its_request_may_act(
    situation: S, how: End, until: int | None
) -> None:
    assert builder(a=RECORDS[situation]).ended("a", how) == Ended(how=how, until=until)


# --- the task -------------------------------------------------------------------------------------


def test_a_decision_that_only_ends_the_task_is_stored() -> None:
    world = routed()
    world.wait(3_590).fails("a")
    world.start()
    world.wait(15).inspect()
    assert world.task.ending is not None
    assert world.task.ending.undo


def test_a_state_that_the_table_does_not_list_is_a_defect() -> None:
    decision = builder(a=step_record(process_state=P.PENDING, started_at=T0))
    decision.before = decision.task = replace(decision.task, state=TaskState.PENDING)
    decision.move("a", StepEvent.CLAIMED, AtAgent(lock="lock", until=T0))
    with pytest.raises(NoTransition):
        decision.build(None, TaskEvent.INSPECT)


def test_a_task_that_was_cancelled_as_it_stood_is_cancelled_though_its_plan_is_missing() -> None:
    world = World(plan(step("a")))
    world.start()
    world.cancel(undo=False)
    world.stored_plan = False
    world.overdue("a")
    assert world.task_state() is TaskState.CANCELLED


def test_a_task_that_is_cancelled_as_it_stands_names_nothing_that_stays() -> None:
    world = archived(None)
    world.cancel(undo=False)
    assert world.task.ending is not None
    assert world.task.ending.why == "cancelled by ann"


def test_what_stays_is_named_once_however_often_an_ended_task_is_heard_of() -> None:
    world = heard_late(TaskState.UNDONE)
    assert world.record("b").effect is Effect.STANDS
    assert world.task.ending is not None
    assert world.task.ending.why == "undo requested by ann; without compensation: a, b"


def started_statuses(world: World) -> int:
    return sum(
        owed.kind == "status" and owed.name == "started"
        for before, _, decision in world.decisions
        for owed in decision.task.owed[len(before.owed) :]
    )


def test_an_application_gets_the_status_started_once() -> None:
    world = undone()
    assert started_statuses(world) == 1
    world.resubmit(again=True)
    world.start()
    assert world.state("a") is P.PROCESSING
    assert started_statuses(world) == 1


def test_it_gets_started_once_though_the_step_goes_to_another_agent() -> None:
    world = routed()
    world.fails("a")
    world.hold("second", 60).start()
    world.succeeds("a")
    record = world.record("a")
    assert (record.tried, record.started_at, record.under_way) == (("first",), None, False)
    world.release("second").wait(90).inspect()
    world.start()
    assert world.record("a").under_way
    assert started_statuses(world) == 1


def test_an_end_is_owed_as_a_status_and_an_alert() -> None:
    world = World(plan(step("a")))
    world.start()
    decision = world.is_refused("a")
    assert [(owed.kind, owed.name) for owed in decision.task.owed] == [
        ("status", "received"),
        ("status", "started"),
        ("alert", "task_archived"),
        ("status", "failed"),
    ]


def ended_with_an_order_that_expires() -> World:
    """A task whose step has a compensation was cancelled before anything of it happened."""
    world = World(plan(step("a", compensation=FENCED)), ProcessingOptions())
    world.cancel()
    assert world.task_state() is TaskState.CANCELLED
    assert world.task.expires_at == T0 + world.task.retain_for
    world.task = replace(world.task, order_expires=True)
    return world


def test_the_order_of_a_task_that_ends_in_another_way_at_once_gets_another_expiry() -> None:
    world = ended_with_an_order_that_expires()
    task = world.wait(10).ask_undo().task
    assert (task.state, task.order_expires) == (TaskState.UNDONE, False)
    assert task.expires_at == T0 + 10 * SECOND + task.retain_for


def test_the_order_of_a_task_that_begins_again_has_an_expiry_that_the_store_removes() -> None:
    world = ended_with_an_order_that_expires()
    task = world.wait(10).resubmit(again=True).task
    assert (task.state, task.expires_at, task.order_expires) == (TaskState.PENDING, None, True)
