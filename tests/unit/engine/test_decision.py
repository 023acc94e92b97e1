"""One decision: what each of its parts does to a record, and what is added once."""

from dataclasses import replace

import pytest

from roundsman.definition.workflow import Retry, Undo
from roundsman.engine.decision import DecisionBuilder, StepChanges
from roundsman.engine.due import START_WITHIN
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.engine.transitions import StepEvent, TaskEvent
from roundsman.errors import NoTransition
from roundsman.model.events import InspectAt
from roundsman.model.instants import SECOND
from roundsman.model.states import UNDER_WAY, ProcessState, TaskState
from roundsman.model.states import Situation as S
from roundsman.model.task import Effect, StepError, StepRecord, Termination
from tests.support.coping_stories import FENCED, SLOW, routed
from tests.support.fan_out_stories import FENCED as FENCED_ITEM
from tests.support.fan_out_stories import one_is_left_out, picking
from tests.support.machine_world import T0, World, plan, step
from tests.support.operator_stories import archived, heard_late, undone
from tests.support.situations import RECORDS

P = ProcessState


def builder(**records: StepRecord) -> DecisionBuilder:
    world = World(plan(*(step(name) for name in records)))
    task = replace(world.task, steps=records, state=TaskState.ACTIVE)
    return DecisionBuilder(task, T0 + 7 * SECOND, world.plan)


# --- records --------------------------------------------------------------------------------------


def test_an_event_that_changes_nothing_moves_no_step() -> None:
    with pytest.raises(TypeError, match="changes nothing about a step processed"):
        builder(a=StepRecord(process_state=P.PROCESSED)).move("a", StepEvent.STALE)


@pytest.mark.parametrize(
    ("record", "used"),
    [
        (StepRecord(), {}),
        (StepRecord(round=3), {"a": 2}),
        (StepRecord(started_at=T0), {"a": 1}),
        (StepRecord(started_at=T0, round=3), {"a": 3}),
        (StepRecord(tried=("other",)), {"a": 1}),
    ],
)
def test_of_a_removed_step_the_rounds_whose_keys_were_used_are_kept(
    record: StepRecord, used: dict[str, int]
) -> None:
    found = builder(a=record)
    found.remove("a")
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
    claimed = StepRecord(process_state=P.PROCESSING, started_at=T0, complete_by=T0 + 30 * SECOND)
    task = replace(builder(a=claimed).task, steps={"a": claimed, "gone": claimed})
    fenced = plan(step("a", compensation=FENCED))
    with_plan, without = DecisionBuilder(task, T0, fenced), DecisionBuilder(task, T0)
    assert with_plan.acts_until("a") == T0 + (1 + PATIENCE) * 30 * SECOND
    assert without.acts_until("a") == T0 + 30 * SECOND
    assert with_plan.acts_until("gone") == T0 + 30 * SECOND


def test_a_step_that_failed_before_any_request_has_none_that_may_act() -> None:
    assert builder(a=StepRecord(process_state=P.ERROR)).acts_until("a") is None


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
        builder(a=StepRecord(process_state=P.PROCESSING, started_at=T0)).begin_anew("a")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (StepRecord(process_state=P.SKIPPED, finished_at=T0), None),
        (StepRecord(round=2, process_state=P.SKIPPED, finished_at=T0), StepRecord(round=2)),
        (StepRecord(round=2, process_state=P.UNDONE, started_at=T0), StepRecord(round=3)),
        (StepRecord(tried=("first",)), StepRecord(round=2)),
    ],
)
def test_begun_anew_a_step_is_untouched_but_for_the_keys_it_has_used(
    before: StepRecord, after: StepRecord | None
) -> None:
    decision = builder(a=before)
    decision.begin_anew("a")
    assert decision.steps.get("a") == after


def test_a_step_whose_callback_has_come_ends_with_its_request() -> None:
    waiting = StepRecord(
        process_state=P.PROCESSING,
        started_at=T0,
        waiting=True,
        complete_by=T0 + 600 * SECOND,
        acts_until=T0 + 30 * SECOND,
    )
    decision = builder(a=waiting)
    decision.stop_waiting("a")
    assert decision.step("a") == replace(waiting, waiting=False, complete_by=T0 + 30 * SECOND)


# --- a failure for good ---------------------------------------------------------------------------

CLAIMED = StepRecord(process_state=P.PROCESSING, started_at=T0, extra=5, granted=7, not_before=T0)
ERROR = StepError("Declined", "")


@pytest.mark.parametrize(
    ("record", "effect", "unknown"),
    [
        (CLAIMED, None, True),
        (CLAIMED, Effect.NONE, False),
        (replace(CLAIMED, outcome_unknown=True), Effect.NONE, True),
        (replace(CLAIMED, process_state=P.UNDOING), None, False),
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
    decision = builder(a=StepRecord(process_state=P.PROCESSING, started_at=T0))
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

READY: StepChanges = {"not_before": None, "complete_by": T0 + SECOND}


@pytest.mark.parametrize(
    ("situation", "event", "changes", "kept"),
    [
        (S.PARKED, StepEvent.HELD, {}, "calls series held"),
        (S.PARKED, StepEvent.UNCLAIMED, READY, "calls series held"),
        (S.PARKED, StepEvent.RETRY_DUE, READY, "calls series held"),
        (S.PARKED, StepEvent.RESOLVED_NOT_DONE, READY, "held"),
        (S.PARKED, StepEvent.CLAIMED, {}, "calls series"),
        (S.PARKED, StepEvent.SUCCEEDED, {}, ""),
        (S.PARKED, StepEvent.UNDO_BEGUN, {"not_before": None}, ""),
        (S.READY, StepEvent.CONDITION_FALSE, {}, ""),
        (S.AT_AGENT, StepEvent.UNREAD, READY, "calls series"),
        (S.AT_AGENT, StepEvent.EXTENDED, {}, "calls series attempt"),
        (S.AT_AGENT, StepEvent.PROGRESSED, {}, "series attempt"),
        (S.AT_AGENT, StepEvent.WAITS_FOR_CALLBACK, {"waiting": True}, "attempt"),
        (S.AWAITS_CALLBACK, StepEvent.REMINDER_DUE, {}, "attempt"),
        (S.AT_AGENT, StepEvent.OUT_OF_TIME, READY, "series"),
        (S.AT_AGENT, StepEvent.OVERDUE, READY, "series"),
        (S.AT_AGENT, StepEvent.FAILED, {"not_before": T0}, "series"),
        (S.AT_AGENT, StepEvent.EXHAUSTED, {}, "series"),
        (S.AT_AGENT, StepEvent.REFUSED, {}, ""),
        (S.UNDO_PARKED, StepEvent.HELD, {}, "calls series held"),
        (S.UNDO_PARKED, StepEvent.GOES_ON_AFTER_UNDO, {**READY, "locked_by": None}, ""),
    ],
)
def test_an_event_keeps_of_a_wait_of_an_attempt_and_of_the_counts_what_goes_on(
    situation: S, event: StepEvent, changes: StepChanges, kept: str
) -> None:
    made = replace(
        RECORDS[situation],
        started_at=T0,
        uncounted_calls=3,
        retry_until=T0 + SECOND,
        unexpected_since=T0,
        waits=2,
    )
    if situation in UNDER_WAY:
        made = replace(made, heartbeat_by=T0, heard_at=T0)
    decision = builder(a=made)
    decision.move("a", event, **changes)
    record = decision.step("a")
    assert (record.held_since == T0) is ("held" in kept)
    assert (record.uncounted_calls == 3) is ("calls" in kept)
    series = (record.retry_until is not None, record.unexpected_since, record.waits)
    assert series == ((True, T0, 2) if "series" in kept else (False, None, 0))
    heard = (record.heartbeat_by, record.heard_at)
    assert heard == ((T0, T0) if "attempt" in kept else (None, None))
    assert record.waiting is (record.situation is S.AWAITS_CALLBACK)


# --- the task -------------------------------------------------------------------------------------


def test_a_decision_that_only_ends_the_task_is_stored() -> None:
    world = routed()
    world.wait(3_590).fails("a")
    world.start()
    world.wait(15).inspect()
    assert world.task.ending is not None
    assert world.task.ending.undo


def test_a_state_that_the_table_does_not_list_is_a_defect() -> None:
    decision = builder(a=StepRecord(process_state=P.PENDING, started_at=T0))
    decision.before = decision.task = replace(decision.task, state=TaskState.PENDING)
    decision.move("a", StepEvent.CLAIMED)
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
    world.release("second").wait(90).start()
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
