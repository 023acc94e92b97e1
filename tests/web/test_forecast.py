"""Which orders will be late at the present pace."""

from dataclasses import replace
from datetime import timedelta

from roundsman.model.instants import SECOND
from roundsman.model.states import ProcessState
from roundsman.model.task import StepRecord, Task
from roundsman_console.orders.forecast import forecast
from tests.support.machine_world import T0, World, plan, step
from tests.support.steps import step_record

PLAN = plan(step("a"), step("b", "a"), complete_within=timedelta(seconds=40))
"""Two steps of 30 s each at most, in a task of 40 s."""


def order(name: str, **steps: StepRecord) -> Task:
    return replace(World(PLAN).task, task_id=name, steps=steps)


def done_in(seconds: int) -> StepRecord:
    return step_record(
        process_state=ProcessState.PROCESSED, started_at=T0, finished_at=T0 + seconds * SECOND
    )


def late(*tasks: Task, at: int = T0) -> dict[str, int]:
    found = forecast(tasks, {PLAN.hash: PLAN}, whole=True, at=at)
    assert found.count == len(found.late)
    return {one.task.task_id: one.late for one in found.late}


def test_a_step_that_nobody_has_done_takes_its_whole_time() -> None:
    assert late(order("new")) == {"new": 20 * SECOND}


def test_a_step_takes_as_long_as_it_took_others() -> None:
    quick = order("quick", a=done_in(2), b=done_in(3))
    assert late(quick, order("new")) == {}
    assert late(quick, order("new"), at=T0 + 36 * SECOND) == {"new": SECOND}


def test_a_step_under_way_needs_only_the_rest() -> None:
    quick = order("quick", a=done_in(20), b=done_in(10))
    under_way = step_record(process_state=ProcessState.PROCESSING, started_at=T0 + 15 * SECOND)
    assert late(quick, order("new", a=under_way), at=T0 + 25 * SECOND) == {"new": 5 * SECOND}


def test_an_order_that_is_ending_or_has_ended_is_left_out() -> None:
    ended = replace(order("ended"), ended_at=T0)
    assert late(replace(ended, state=World(PLAN).task.state.COMPLETED), at=T0 + 10**6) == {}


def test_an_order_is_late_for_its_deadline_if_that_is_earlier() -> None:
    early = replace(order("early"), deadline=T0 + SECOND)
    assert late(early) == {"early": 59 * SECOND}


def test_the_latest_order_comes_first() -> None:
    early = replace(order("early"), complete_by=T0 + SECOND)
    assert list(late(order("new"), early)) == ["early", "new"]


def test_a_parked_order_has_the_time_that_it_had_when_it_was_parked() -> None:
    quick = order("quick", a=done_in(2), b=done_in(3))
    check = T0 + 24 * 3_600 * SECOND
    parked = order("parked", a=done_in(2), b=step_record(held_since=T0, not_before=check))
    assert late(quick, parked, at=T0 + 3_600 * SECOND) == {}
