"""Why steps cannot be added, where no reply of a task that goes on its usual way shows it."""

from dataclasses import replace

import pytest

from roundsman.engine.added_steps import why_not_added
from roundsman.engine.decision_builder import DecisionBuilder
from roundsman.engine.decision_context import DecisionContext
from roundsman.model.situations import End, Ended
from roundsman.model.states import ProcessState
from roundsman.model.task import LeftOut, StepRecord, StepToAdd
from tests.support.machine_world import World, plan, step
from tests.support.steps import step_record

DONE = step_record(process_state=ProcessState.PROCESSED)
LACKS = replace(DONE, left_out=LeftOut("long"))
AWAITS = StepRecord(situation=Ended(how=End.AWAITS_RESULT), left_out=LeftOut("long"))
LEG = "leg[x]"


def why_not(*then: StepToAdd, **records: StepRecord) -> str | None:
    world = World(plan(step("a"), step("b"), may_add=(step("leg"),)))
    world.start()
    world.task = replace(world.task, steps={**world.task.steps, **records})
    builder = DecisionBuilder(world.task, world.now, world.plan)
    return why_not_added(DecisionContext(world.plan, builder, None, {}, 0.0), "a", then)


def test_a_name_with_a_masked_part_is_not_added_and_not_quoted() -> None:
    assert why_not(StepToAdd("leg[(masked)]")) == (
        "a adds a leg whose name has a value that is masked; name it by something that is not, "
        "such as its number"
    )


@pytest.mark.parametrize(
    ("record", "lacks"), [(LACKS, True), (AWAITS, False), (DONE, False)], ids=str
)
def test_what_comes_after_a_step_whose_result_was_left_out_is_added_if_it_waits(
    record: StepRecord, *, lacks: bool
) -> None:
    def words(other: str) -> str | None:
        if not lacks:
            return None
        return (
            f"a adds {LEG} after {other}, whose result was left out: resolve {other} with its "
            "result first"
        )

    assert why_not(StepToAdd(LEG), a=record) == words("a")
    assert why_not(StepToAdd(LEG, ("b",)), b=record) == words("b")
