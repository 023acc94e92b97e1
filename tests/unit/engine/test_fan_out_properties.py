"""Fan-outs of any size, whose items fail in any way and order, while people ask for anything.

`UndoWorld.check_effects` holds after every event: what is Processed stands once, and nothing stands
of an item that is undone or left out. Beside it: a task that completes has left out no more items
than its plan tolerates, and each item that was not left out has had its effect.
"""

from datetime import timedelta
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Undo
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.states import END_STATES, ProcessState, TaskState
from roundsman.model.task import Task
from tests.support.fan_out_stories import lines
from tests.support.machine_world import REPLY_TO, T0, World, plan, step
from tests.support.undo_world import UndoWorld

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=2))
UNFENCED = Compensation(retry=Retry(max_attempts=2))

compensations = st.sampled_from([UNFENCED, FENCED, FENCED, None])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Up to two fan-outs, before, after or beside each other and a plain step."""
    steps: list[Step] = []
    for number, fans_out in enumerate(draw(st.permutations([True, True, False]))):
        for_each = draw(st.sampled_from(["input.lines", "input.lines", "input.lines[1:]"]))
        steps.append(
            step(
                f"s{number}",
                *[before for before in steps if draw(st.booleans())],
                compensation=draw(compensations),
                on_failure=draw(st.sampled_from([None, Undo(), Archive()])),
                retry=Retry(max_attempts=draw(st.integers(1, 2))),
                for_each=for_each if fans_out else None,
                tolerate=draw(st.sampled_from([0, 0.3, 0.5, 0.9])) if fans_out else 0,
            )
        )
    return plan(
        *steps,
        on_failure=Undo() if draw(st.booleans()) else Archive(),
        complete_within=timedelta(seconds=draw(st.sampled_from([300, 3_600]))),
        point_of_no_return=draw(st.sampled_from([None, None, steps[0]])),
    )


def world_of(made: Plan, data: st.DataObject) -> UndoWorld:
    order = lines(data.draw(st.integers(0, 4)))
    options = ProcessingOptions(reply_to=REPLY_TO, start_at=T0)
    return UndoWorld(
        World(made, options, order=order), lambda most: data.draw(st.integers(0, most))
    )


def check_end(story: UndoWorld) -> None:
    task = story.world.task
    assert task.state in END_STATES
    if task.state is not TaskState.COMPLETED:
        return
    for name, count in task.fan_outs.items():
        items = [item for item, each in story.plan.steps.items() if each.item_of == name]
        assert len(items) == count
        left_out = [item for item in items if in_state(task, item, ProcessState.SKIPPED)]
        assert len(left_out) <= Fraction(str(story.world.plan.steps[name].tolerate)) * count
        for item in set(items) - set(left_out):
            assert in_state(task, item, ProcessState.PROCESSED)
            assert len(story.remote.keys(item)) == 1


def in_state(task: Task, step: str, state: ProcessState) -> bool:
    return task.step(step).process_state is state


def check_story(made: Plan, data: st.DataObject) -> None:
    story = world_of(made, data)
    story.live(data.draw(st.integers(5, 40)))
    story.bring_to_its_end()
    check_end(story)
    story.deliver_all_once_more()


@pytest.mark.parametrize("examples", [30, pytest.param(250, marks=pytest.mark.verify)])
def test_whatever_happens_no_more_is_left_out_than_may_and_nothing_of_it_stands(
    examples: int,
) -> None:
    settings(max_examples=examples)(given(plans(), st.data())(check_story))()


def check_supervisor(made: Plan, data: st.DataObject) -> None:
    story = world_of(made, data)
    for _ in range(data.draw(st.integers(0, 25))):
        story.happen()
    story.bring_to_its_end(inspections_only=True)
    check_end(story)


@pytest.mark.parametrize("examples", [30, pytest.param(100, marks=pytest.mark.verify)])
def test_the_supervisor_alone_brings_every_fan_out_to_its_end(examples: int) -> None:
    settings(max_examples=examples)(given(plans(), st.data())(check_supervisor))()
