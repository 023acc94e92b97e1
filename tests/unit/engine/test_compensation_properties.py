"""Undone means undone: whatever comes late, twice or never, and whatever people ask meanwhile.

The remote services keep effects by key. A fenced one acts on calls however late, but refuses a
key that it has undone; an unfenced one forgets, and its agent acts on any request that it reads
before its complete-by, by a clock that differs. `UndoWorld.check_effects` holds after every event:
nothing of an undone step or task stands, nothing stands twice, and what is Processed stands.
"""

from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from roundsman.definition.plan import Plan
from roundsman.definition.workflow import Archive, Compensation, Retry, Step, Strategy, Undo, Wait
from roundsman.engine.new_task import ProcessingOptions
from roundsman.model.events import Cancel, CommandSource, Start, UndoAsked
from roundsman.model.states import END_STATES, TaskState
from tests.support.machine_world import REPLY_TO, T0, World, plan, step
from tests.support.undo_world import UndoWorld

FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=2))
UNFENCED = Compensation(retry=Retry(max_attempts=2))
THREE = ("second", "worker", "third")
WAITS = Wait(timedelta(seconds=50), times=1)

strategies: st.SearchStrategy[Strategy | None] = st.sampled_from([None, Undo(), Archive(), WAITS])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    steps: list[Step] = []
    for number in range(draw(st.integers(1, 3))):
        after = [before for before in steps if draw(st.booleans())]
        steps.append(
            step(
                f"s{number}",
                *after,
                agents=draw(st.sampled_from([("worker",), ("worker", "second"), THREE])),
                heartbeat_within=draw(st.sampled_from([None, None, timedelta(seconds=10)])),
                compensation=draw(st.sampled_from([UNFENCED, FENCED, None])),
                on_failure=draw(strategies),
                retry=Retry(max_attempts=draw(st.integers(1, 2))),
                when=draw(st.sampled_from([None, None, None, "input.no"])),
            )
        )
    return plan(
        *steps,
        on_failure=Undo() if draw(st.booleans()) else Archive(),
        complete_within=timedelta(seconds=draw(st.sampled_from([60, 300, 3_600]))),
        point_of_no_return=draw(st.sampled_from([None, None, steps[0]])),
    )


def world_of(made: Plan, data: st.DataObject) -> UndoWorld:
    options = ProcessingOptions(
        reply_to=REPLY_TO, start_at=T0 + data.draw(st.sampled_from([0, 0, 5_000]))
    )
    world = World(made, options, order={"no": data.draw(st.booleans())})
    return UndoWorld(world, lambda most: data.draw(st.integers(0, most)))


def check_story(made: Plan, data: st.DataObject) -> None:
    """Whatever happens and is asked, the task ends; the world checks the effects at each event."""
    story = world_of(made, data)
    story.live(data.draw(st.integers(5, 40)))
    story.bring_to_its_end()
    assert story.world.task.state in END_STATES
    story.deliver_all_once_more()


@pytest.mark.parametrize("examples", [30, pytest.param(300, marks=pytest.mark.verify)])
def test_whatever_happens_and_whatever_is_asked_nothing_undone_stands(examples: int) -> None:
    settings(max_examples=examples)(given(plans(), st.data())(check_story))()


def check_supervisor(made: Plan, data: st.DataObject) -> None:
    """Every message is lost from some moment on, but for the Starts that its own looks cause."""
    story = world_of(made, data)
    for _ in range(data.draw(st.integers(0, 25))):
        story.happen()
    story.bring_to_its_end(inspections_only=True)
    assert story.world.task.state in END_STATES


@pytest.mark.parametrize("examples", [30, pytest.param(150, marks=pytest.mark.verify)])
def test_the_supervisor_alone_brings_every_task_to_its_end(examples: int) -> None:
    settings(max_examples=examples)(given(plans(), st.data())(check_supervisor))()


SHAPES: dict[str, list[Step]] = {
    "a chain": [
        step("a", compensation=UNFENCED, retry=Retry(max_attempts=1)),
        step("b", "a", compensation=FENCED, retry=Retry(max_attempts=1)),
    ],
    "branches": [
        step("a", compensation=UNFENCED, retry=Retry(max_attempts=1)),
        step("b", compensation=FENCED, retry=Retry(max_attempts=2)),
    ],
}
WAYS = ("done", "unavailable", "answer lost", "refused")


@pytest.mark.verify
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("asked", ["nothing", "undo", "cancel"])
def test_every_way_that_two_steps_can_go_with_a_copy_of_each_request_delivered_last(
    shape: str, asked: str
) -> None:
    """All endings of the first four requests, and a person before any of the first three."""
    for ways in product(WAYS, repeat=4):
        for at, pause in product(range(3), (0, 20)):
            made = plan(*SHAPES[shape], on_failure=Undo())
            story = UndoWorld(World(made), lambda _: 0)
            story.apply(Start(story.world.claimant()))
            _go(story, ways, asked, at, pause)
            story.bring_to_its_end()
            for request in list(story.requests):
                story.deliver(request, "done", -4_000)
            if story.world.task.state is TaskState.UNDONE:
                assert not story.remote.standing
            else:
                assert story.world.task.state in END_STATES


def _go(story: UndoWorld, ways: tuple[str, ...], asked: str, at: int, pause: int) -> None:
    for number, way in enumerate(ways):
        if number == at and asked != "nothing":
            who = CommandSource("c-1", "ann")
            story.apply(UndoAsked(who) if asked == "undo" else Cancel(who))
        if number >= len(story.requests):
            return
        story.deliver(story.requests[number], way)
        story.world.wait(pause)
        story.deliver(story.requests[number], "answer lost")  # a copy
        while story.replies:
            story.apply(story.replies.pop(0))
