"""A workflow with a deadline: it acts at its time, whatever moves the task's complete-by."""

from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, Undo
from roundsman.model.instants import iso, milliseconds
from roundsman_testing import TaskState, World
from tests.support.steps import stored_step
from tests.world.shop import FENCED, MINUTE, a_step, a_workflow

HOUR = timedelta(hours=1)
reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED)
LIMITED = a_workflow(reserve, charge, on_failure=Undo(), deadline=HOUR)


def held_past_its_deadline(world: World) -> int:
    """The agent of the second step is on hold for three hours. Returns the time at the deadline."""
    world.hold("charge", 3 * HOUR, "their maintenance")
    world.submit()
    world.run(for_=timedelta(seconds=1))
    world.run(until=lambda: world.task("ord-1").step("charge").held_since is not None)
    deadline = world.task("ord-1").deadline
    assert deadline is not None
    world.run(until=lambda: world.task("ord-1").ending is not None)
    assert 0 <= world.now - deadline < milliseconds(MINUTE)
    return deadline


def test_a_hold_that_lasts_past_the_deadline_moves_the_complete_by_and_not_the_deadline() -> None:
    world = World(LIMITED)
    held_past_its_deadline(world)
    task = world.task("ord-1")
    assert task.complete_by > task.start_at + milliseconds(2 * HOUR), "the hold moved it"
    assert task.ending is not None
    assert task.ending.why.startswith("the task's deadline was ")
    world.run()
    assert world.task("ord-1").state is TaskState.UNDONE
    assert world.standing("ord-1") == []


def test_what_is_resubmitted_after_its_deadline_completes() -> None:
    world = World(a_workflow(reserve, charge, on_failure=Archive(), deadline=HOUR))
    held_past_its_deadline(world)
    world.run(for_=MINUTE)
    assert world.task("ord-1").state is TaskState.ARCHIVED
    world.release("charge")
    world.run(for_=2 * HOUR)
    world.operator.resubmit("ord-1")
    world.run(for_=2 * HOUR)
    assert world.task("ord-1").state is TaskState.COMPLETED
    assert world.standing("ord-1") == ["reserve", "charge"]


def test_a_callback_is_not_waited_for_after_the_deadline() -> None:
    world = World(LIMITED)
    world.on("charge").asks(timedelta(days=1))
    world.submit()
    world.run(for_=timedelta(seconds=1))
    world.run(until=lambda: world.waits_for_answer("ord-1", "charge"))
    task = world.task("ord-1")
    assert stored_step(task.step("charge")).complete_by == task.deadline
    world.run(for_=HOUR)
    assert world.task("ord-1").state is TaskState.UNDONE


def test_the_supervisor_finds_a_task_whose_deadline_has_passed_though_no_inspect_arrives() -> None:
    world = World(LIMITED)
    world.mail("commands", '"kind":"inspect"').is_lost(times=1000)
    held_past_its_deadline(world)


def test_an_order_that_would_start_after_the_deadline_of_its_workflow_is_rejected() -> None:
    world = World(LIMITED)
    late = iso(world.now + milliseconds(HOUR + MINUTE))
    world.submit({"processing": {"processAt": late}})
    world.run()
    with pytest.raises(LookupError, match="starts later than the deadline of story"):
        world.task("ord-1")
    on_time = iso(world.now + milliseconds(HOUR - MINUTE))
    world.submit({"orderId": "ord-2", "processing": {"processAt": on_time}})
    world.run()
    assert world.task("ord-2").state is TaskState.COMPLETED
