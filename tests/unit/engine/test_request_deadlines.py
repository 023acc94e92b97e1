"""Until when a request may act: which requests have patience, and how much."""

from dataclasses import replace
from datetime import timedelta

import pytest

from roundsman.definition.plan import StepPlan
from roundsman.definition.workflow import Compensation, Step
from roundsman.engine.request_deadlines import (
    PATIENCE,
    asks_probe_only,
    ends_at,
    first_sent_at,
    fits_key,
    key_allows_until,
    key_runs_out_at,
    key_until,
    patience_behind,
    request_ends_at,
    undo_fits_key,
    within_key,
)
from roundsman.model.instants import SECOND, SKEW
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, StepRecord
from tests.support.machine_world import T0, plan, step
from tests.support.steps import step_record

FENCED = Compensation(fences_late_performs=True)
UNFENCED = Compensation(complete_within=timedelta(seconds=8))
LATE = T0 + 10_000 * SECOND
"""The complete-by of a task with time for any patience."""


def made(a: Step) -> StepPlan:
    return plan(a).steps["a"]


def performing(step: StepPlan) -> int:
    """How long a perform with a complete-by of T0 may act after it, in s."""
    record = step_record(process_state=ProcessState.PROCESSING, started_at=T0)
    return (ends_at(step, record, T0, LATE) - T0) // SECOND


def test_a_perform_whose_undo_is_fenced_has_patience() -> None:
    assert performing(made(step("a", compensation=FENCED))) == PATIENCE * 30


@pytest.mark.parametrize(
    "a",
    [
        step("a", agents=("first", "second"), compensation=FENCED),
        step("a", heartbeat_within=timedelta(seconds=5), compensation=FENCED),
        step("a", compensation=UNFENCED),
        step("a"),
    ],
    ids=["two agents", "heartbeats", "an undo that waits", "no undo"],
)
def test_a_perform_whose_end_something_waits_for_has_none(a: Step) -> None:
    assert performing(made(a)) == 0


@pytest.mark.parametrize(
    ("a", "behind"),
    [
        (step("a", compensation=UNFENCED), PATIENCE * 30),
        (step("a", compensation=FENCED), 0),
        (step("a", agents=("first", "second"), compensation=UNFENCED), 0),
        (step("a", heartbeat_within=timedelta(seconds=5), compensation=UNFENCED), 0),
    ],
    ids=["one agent", "has patience anyway", "two agents", "heartbeats"],
)
def test_a_long_queue_gives_patience_to_a_request_of_one_agent_without_heartbeats(
    a: Step, behind: int
) -> None:
    long, short = 100 * SECOND, 7 * SECOND  # a quarter of the step's 30 s is 7.5 s
    assert patience_behind(made(a), PERFORM, long) == behind * SECOND
    assert patience_behind(made(a), PERFORM, short) == 0
    assert patience_behind(made(a), UNDO, long) == 0


def test_a_queue_is_behind_from_a_quarter_of_the_steps_time_on() -> None:
    a = made(step("a", compensation=UNFENCED))
    quarter = 30 * SECOND // 4
    assert patience_behind(a, PERFORM, quarter) == PATIENCE * 30 * SECOND
    assert patience_behind(a, PERFORM, quarter - 1) == 0


def test_a_step_that_waits_for_its_callback_has_no_patience() -> None:
    a = made(step("a", compensation=FENCED))
    record = step_record(process_state=ProcessState.PROCESSING, started_at=T0, waiting=True)
    assert ends_at(a, record, T0, LATE) == T0


def test_patience_ends_with_the_task_and_takes_nothing_from_the_complete_by() -> None:
    a = made(step("a", compensation=FENCED))
    record = step_record(process_state=ProcessState.PROCESSING, started_at=T0)
    assert ends_at(a, record, T0, T0 + 7 * SECOND) == T0 + 7 * SECOND
    assert ends_at(a, record, T0, T0 - 7 * SECOND) == T0


# --- The lifetime of a key -----------------------------------------------------------------------

KEY = 100 * SECOND
LASTS = timedelta(milliseconds=KEY)
A = made(step("a", compensation=UNFENCED, key_lifetime=LASTS))
"""A request to perform takes 30 s, one to undo 8 s."""
PLAIN = made(step("a", key_lifetime=LASTS))
PROBED = made(step("a", compensation=UNFENCED, key_lifetime=LASTS, probe_outlives_key=True))
FOR_EVER = made(step("a", compensation=UNFENCED))
NEW = StepRecord()
SENT = step_record(process_state=ProcessState.PROCESSING, started_at=T0)
UNDONE = step_record(process_state=ProcessState.UNDOING, started_at=T0)
END = T0 + KEY
LAST = END - SKEW - 8 * SECOND
"""The latest end of a request to perform under the key."""


@pytest.mark.parametrize(
    ("record", "since"),
    [
        (NEW, None),
        (SENT, T0),
        (UNDONE, None),
        (replace(SENT, key_since=T0 - 1), T0 - 1),
        (replace(UNDONE, key_since=T0 - 1), T0 - 1),
    ],
)
def test_a_key_is_known_to_its_service_from_the_first_request_on(
    record: StepRecord, since: int | None
) -> None:
    assert first_sent_at(record) == since
    assert key_until(A, record) == (None if since is None else since + KEY)
    assert key_until(FOR_EVER, record) is None
    assert key_until(A, replace(record, key_until=7)) == 7


def test_a_request_to_perform_leaves_time_for_the_undo_by_the_key() -> None:
    assert key_allows_until(A, SENT, PERFORM) == LAST
    assert key_allows_until(PLAIN, SENT, PERFORM) == END - SKEW
    assert key_allows_until(A, SENT, UNDO) == END
    assert key_allows_until(FOR_EVER, SENT, PERFORM) is None
    assert key_allows_until(A, NEW, UNDO) is None


def test_a_request_fits_if_it_ends_in_time() -> None:
    begin = LAST - 30 * SECOND
    assert [fits_key(A, SENT, begin + late) for late in (0, 1)] == [True, False]
    assert [undo_fits_key(A, SENT, END - 8 * SECOND + late) for late in (0, 1)] == [True, False]
    undone = replace(UNDONE, key_since=T0)
    assert [fits_key(A, undone, END - 8 * SECOND + late) for late in (0, 1)] == [True, False]
    assert fits_key(FOR_EVER, SENT, LATE)
    assert fits_key(A, NEW, LATE)
    assert undo_fits_key(FOR_EVER, SENT, LATE)
    assert not undo_fits_key(PLAIN, SENT, T0)


def test_an_attempt_waits_no_longer_than_its_key_allows() -> None:
    assert [within_key(A, SENT, at) for at in (LAST - 1, LATE)] == [LAST - 1, LAST]
    assert within_key(FOR_EVER, SENT, LATE) == LATE
    assert within_key(PROBED, replace(SENT, key_since=T0 - KEY), LATE) == LATE
    assert within_key(PROBED, SENT, LATE) == LAST
    assert request_ends_at(A, SENT, LATE, LATE) == LAST
    assert request_ends_at(A, SENT, T0, LATE) == T0


def test_patience_ends_with_the_key() -> None:
    fenced = made(step("a", compensation=FENCED, key_lifetime=LASTS))
    assert ends_at(fenced, SENT, T0, LATE) == END - SKEW - 30 * SECOND
    assert ends_at(fenced, replace(UNDONE, key_since=T0), T0, LATE) == END
    assert ends_at(fenced, SENT, LATE, LATE) == LATE


def test_only_a_probe_that_outlives_the_key_is_asked_when_no_request_fits() -> None:
    late = replace(SENT, key_since=T0 - KEY)
    assert asks_probe_only(PROBED, late)
    assert not asks_probe_only(A, late)
    assert not asks_probe_only(PROBED, SENT)
    assert not asks_probe_only(PROBED, replace(NEW, key_since=T0 - KEY))
    assert not asks_probe_only(PROBED, replace(UNDONE, key_since=T0 - KEY))
    waiting = step_record(process_state=ProcessState.PROCESSING, started_at=T0, waiting=True)
    assert not asks_probe_only(PROBED, replace(waiting, key_since=T0 - KEY))


def test_what_follows_is_put_off_until_no_request_fits_and_no_longer() -> None:
    first_too_late = LAST - 30 * SECOND + 1
    assert key_runs_out_at(A, SENT, T0) == first_too_late
    assert not fits_key(A, SENT, first_too_late)
    assert key_runs_out_at(A, SENT, LATE) == LATE
    assert key_runs_out_at(FOR_EVER, SENT, T0) is None
    assert key_runs_out_at(PROBED, SENT, T0) is None
    assert key_runs_out_at(A, replace(UNDONE, key_since=T0), T0) is None
