"""Which effects may stand, record by record."""

import pytest

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Compensation, Retry, Undo
from roundsman.engine.effects import (
    is_to_undo,
    left_to_undo,
    may_have_been_performed,
    may_have_taken_effect,
    with_unknown_items,
    without_compensation,
)
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AfterUndo, Effect, StepRecord, StepToAdd
from tests.support.machine_world import T0, World, begun, plan, step
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
    assert without_compensation(made, steps, {}) == ["b", "d"]
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


# --- What a task has forgotten ---------------------------------------------------------------

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=ONCE)
FIND = step("find", retry=ONCE, compensation=FENCED)


def stand_after_a_second_undo(world: World, *, under: Plan | None = None) -> set[str]:
    """The task is undone, begins again, and is undone before anything of it has happened. The
    result are the steps that its reason names."""
    world.is_refused("ship", effect=Effect.NONE)
    undo_all(world)
    world.resubmit(again=True, under=under)
    world.start()
    world.is_refused("find", effect=Effect.NONE)
    undo_all(world)
    assert world.task.ending is not None
    _, _, names = world.task.ending.why.partition("; without compensation: ")
    return {*names.split(", ")} - {"ship"}  # which was asked, and has refused


def undo_all(world: World) -> None:
    while undos := [name for name in world.task.steps if world.state(name) is P.UNDOING]:
        for name in undos:
            world.succeeds(name)
    assert world.task_state() is TaskState.UNDONE


def test_an_undone_task_names_the_kind_of_an_added_step_whose_effect_stands_from_before() -> None:
    note, leg = step("note", compensation=None), step("leg", compensation=FENCED)
    ship = step("ship", "find", retry=ONCE)
    world = begun(FIND, ship, may_add=(note, leg), on_failure=Undo())
    world.adds("find", StepToAdd("note[x]", input={}), StepToAdd("leg[y]", input={}))
    world.succeeds("note[x]")
    world.succeeds("leg[y]")
    assert stand_after_a_second_undo(world) == {"note"}


def test_an_undone_task_names_the_former_items_whose_effects_stand_from_before() -> None:
    pick = step("pick", "find", for_each="input.lines", compensation=None)
    made = plan(FIND, pick, step("ship", "pick", retry=ONCE), on_failure=Undo())
    world = World(made, order={"lines": [1, 2]})
    world.start()
    world.succeeds("find")
    world.succeeds("pick[0]")
    world.succeeds("pick[1]")
    assert stand_after_a_second_undo(world) == {"pick[0]", "pick[1]"}


def test_an_undone_task_names_a_step_that_its_plan_has_no_more() -> None:
    mail = step("mail", "find", compensation=None)
    world = begun(FIND, mail, step("ship", "mail", retry=ONCE), on_failure=Undo())
    world.succeeds("find")
    world.succeeds("mail")
    assert stand_after_a_second_undo(world, under=plan(FIND, on_failure=Undo())) == {"mail"}


def test_what_the_plan_undoes_is_not_among_what_stands_from_before() -> None:
    leg, note = step("leg", compensation=FENCED), step("note", compensation=None)
    pick = step("pick", for_each="input.lines", compensation=FENCED)
    made = plan(FIND, pick, may_add=(leg, note))
    former = {"pick[0]": step_record(round=2), "find": step_record(round=2)}
    assert without_compensation(made, former, {"leg": 1, "note": 2, "gone": 1}) == ["note", "gone"]


def test_a_former_item_beyond_the_present_ones_has_the_compensation_of_its_fan_out() -> None:
    pick = step("pick", for_each="input.lines", compensation=FENCED)
    made = plan(FIND, pick).expanded({"pick": 1})
    assert without_compensation(made, {"pick[3]": step_record(round=2)}, {}) == []
