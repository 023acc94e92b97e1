"""Which tasks a release wakes, and when each."""

import pytest

from roundsman.model.task import StepRecord
from roundsman_console.hold.wake import ramp, waits_for
from tests.console.step_samples import AT, plan, task
from tests.support.steps import step_record


@pytest.mark.parametrize(
    ("record", "agent", "waits"),
    [
        (step_record(held_since=AT, not_before=AT), "payment", True),
        (step_record(held_since=AT, not_before=AT), "payment_backup", True),
        (step_record(held_since=AT, not_before=AT), "warehouse", False),
        (step_record(held_since=AT, not_before=AT, agent="payment_old"), "payment_old", True),
        (step_record(not_before=AT), "payment", False),
        (StepRecord(), "payment", False),
    ],
)
def test_a_task_waits_for_any_agent_that_could_take_its_held_step(
    record: StepRecord, agent: str, waits: bool
) -> None:
    assert waits_for(task({"charge": record}), plan(), agent) is waits


def test_of_a_task_without_a_plan_only_the_agent_in_its_record_is_known() -> None:
    held = task({"charge": step_record(held_since=AT, not_before=AT, agent="payment")})
    assert waits_for(held, None, "payment")
    assert not waits_for(held, None, "payment_backup")


def test_ten_a_second_are_woken_after_those_that_were_before() -> None:
    waiting = [f"ord-{place}" for place in range(12)]
    moments = ramp(waiting, AT, 5, AT + 60_000)
    assert moments[0] == ("ord-0", AT + 500)
    assert moments[11] == ("ord-11", AT + 1_600)


def test_those_whose_turn_would_come_too_late_are_left_out() -> None:
    assert ramp(["a", "b", "c"], AT, 0, AT + 100) == [("a", AT), ("b", AT + 100)]
