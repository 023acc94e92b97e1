"""One decision: what each of its parts does to a record, and what is added once."""

from dataclasses import replace

import pytest

from roundsman.engine.decision import DecisionBuilder
from roundsman.engine.due import START_WITHIN
from roundsman.engine.request_deadlines import PATIENCE
from roundsman.engine.transitions import StepEvent, TaskEvent
from roundsman.errors import NoTransition
from roundsman.model.events import InspectAt
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Effect, StepError, StepRecord, Termination
from roundsman.model.workflow import Retry, Undo
from tests.support.coping_stories import FENCED, SLOW
from tests.support.fan_out_stories import FENCED as FENCED_ITEM
from tests.support.fan_out_stories import one_is_left_out, picking
from tests.support.machine_world import T0, World, plan, step

P = ProcessState


def builder(**records: StepRecord) -> DecisionBuilder:
    world = World(plan(*(step(name) for name in records)))
    task = replace(world.task, steps=records, state=TaskState.ACTIVE)
    return DecisionBuilder(task, T0 + 7 * SECOND, world.plan)


# --- records --------------------------------------------------------------------------------------


def test_an_event_that_changes_nothing_moves_no_step() -> None:
    with pytest.raises(TypeError, match="changes nothing about a Processed step"):
        builder(a=StepRecord(process_state=P.PROCESSED)).move("a", StepEvent.STALE)


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
