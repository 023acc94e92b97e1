"""Until when a request may act: which requests have patience, and how much."""

from datetime import timedelta

import pytest

from roundsman.definition.plan import StepPlan
from roundsman.definition.workflow import Compensation, Step
from roundsman.engine.request_deadlines import PATIENCE, ends_at, patience_behind
from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO
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
