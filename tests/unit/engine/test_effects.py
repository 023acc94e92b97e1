"""Which effects may stand, record by record."""

import pytest

from roundsman.definition.workflow import Compensation
from roundsman.engine.effects import (
    is_to_undo,
    left_to_undo,
    may_have_been_performed,
    may_have_taken_effect,
    with_unknown_items,
    without_compensation,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import AfterUndo, StepRecord
from tests.support.machine_world import T0, plan, step
from tests.support.steps import changed_step, step_record

P = ProcessState
LEFT_OUT = step_record(started_at=T0, after_undo=AfterUndo.SKIPPED)


@pytest.mark.parametrize(
    ("record", "may_stand", "to_undo"),
    [
        (step_record(process_state=P.ERROR), False, False),
        (step_record(process_state=P.ERROR, started_at=T0), True, True),
        (step_record(process_state=P.PENDING, started_at=T0), True, True),
        (step_record(process_state=P.UNDONE, started_at=T0), False, False),
        (step_record(process_state=P.UNDO_ERROR, started_at=T0), True, False),
        (step_record(process_state=P.SKIPPED, started_at=T0), True, True),
        (changed_step(LEFT_OUT, process_state=P.UNDOING), True, True),
        (changed_step(LEFT_OUT, process_state=P.UNDO_ERROR), True, False),
        (changed_step(LEFT_OUT, process_state=P.SKIPPED), False, False),
    ],
)
def test_what_was_ever_claimed_may_stand_until_it_is_undone(
    record: StepRecord, may_stand: bool, to_undo: bool
) -> None:
    assert may_have_taken_effect(record) is may_stand
    assert is_to_undo(record) is to_undo


def test_of_the_steps_of_the_plan_those_are_named_whose_effects_stay_or_are_to_be_undone() -> None:
    compensated = step("a", compensation=Compensation())
    made = plan(compensated, step("b"), step("c"), step("d"), step("e", compensation=None))
    claimed = step_record(process_state=P.PROCESSED, started_at=T0)
    steps = {
        "a": claimed,
        "b": claimed,
        "c": step_record(process_state=P.PENDING),
        "d": step_record(process_state=P.PENDING, round=2),
        "gone": claimed,
    }
    assert without_compensation(made, steps) == ["b", "d"]
    assert left_to_undo(made, steps) == ["a"]
    settled = {**steps, "a": step_record(process_state=P.UNDONE, started_at=T0)}
    assert left_to_undo(made, settled) == []


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        (step_record(outcome_unknown=True), True),
        (StepRecord(), False),
        (step_record(outcome_unknown=True, started_at=T0), False),
        (step_record(process_state=P.SKIPPED, outcome_unknown=True), False),
    ],
)
def test_only_a_step_that_still_waits_may_have_been_performed_before_a_restore(
    record: StepRecord, expected: bool
) -> None:
    assert may_have_been_performed(record) is expected


def test_only_the_items_of_a_fan_out_that_was_marked_are_unknown() -> None:
    fan_outs = [step(name, for_each="input.lines") for name in ("a", "b")]
    made = plan(*fan_outs, step("c", when="input.wanted"), step("d", for_each="input.lines"))
    marked = step_record(outcome_unknown=True)
    assert with_unknown_items(made, {"a": marked, "b": StepRecord(), "c": marked}) == ["a"]
