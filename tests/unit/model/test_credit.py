"""The complete-by of a task whose time stands still moves with the time, whoever asks."""

from dataclasses import replace

import pytest

from roundsman.model.credit import credited_now, stands_since
from roundsman.model.instants import MINUTE
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Termination
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

HOUR = 60 * MINUTE
TASK = World(plan(step("a"), step("b"))).task
PARKED = step_record(held_since=T0 + MINUTE, not_before=T0 + 24 * HOUR)
AWAITS = step_record(
    process_state=ProcessState.PROCESSED, finished_at=T0 + 2 * MINUTE, awaits_result=True
)
DONE = step_record(process_state=ProcessState.PROCESSED, finished_at=T0)


@pytest.mark.parametrize(
    ("steps", "since"),
    [
        ((), None),
        ((DONE,), None),
        ((PARKED,), T0 + MINUTE),
        ((AWAITS,), T0 + 2 * MINUTE),
        ((AWAITS, DONE, PARKED), T0 + MINUTE),
    ],
)
def test_the_time_stands_still_since_the_first_step_was_parked_or_awaited_its_result(
    steps: tuple[StepRecord, ...], since: int | None
) -> None:
    assert stands_since(steps) == since


def test_the_complete_by_of_a_parked_task_is_as_far_ahead_as_when_it_was_parked() -> None:
    parked = replace(TASK, steps={"a": PARKED})
    left = TASK.complete_by - (T0 + MINUTE)
    for now in (T0 + MINUTE, T0 + 3 * 24 * HOUR):
        assert credited_now(parked, now).complete_by == now + left
    later = replace(parked, credited_until=T0 + HOUR)
    assert credited_now(later, T0 + 3 * HOUR).complete_by == TASK.complete_by + 2 * HOUR


def test_a_task_that_goes_on_or_ends_is_as_it_is() -> None:
    for task in (
        replace(TASK, steps={"a": DONE}),
        replace(TASK, steps={"a": PARKED}, ending=Termination(TaskState.CANCELLED, "so")),
    ):
        assert credited_now(task, T0 + 24 * HOUR) is task
