"""Closing steps and early ends, whatever fails meanwhile."""

from collections.abc import Callable, Mapping

import pytest

from roundsman.definition.workflow import Archive, Retry, Undo, Workflow
from roundsman_testing import TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, a_step, a_workflow

reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED)
notify = a_step("notify", agent="mail", retry=Retry(max_attempts=2))
log = a_step("log", notify, agent="mail", retry=Retry(max_attempts=2))
CLOSING = (notify, log)
ENDS = {"when_undone": CLOSING, "when_failed": CLOSING, "when_cancelled": CLOSING}
UNDONE = a_workflow(reserve, charge, on_failure=Undo(), **ENDS)
ARCHIVED = a_workflow(reserve, charge, on_failure=Archive(), **ENDS)


def state(world: World) -> TaskState:
    return world.task("ord-1").state


def is_undone(world: World) -> None:
    world.on("charge").refuses("Declined")
    world.submit()
    world.run()
    assert state(world) is TaskState.UNDONE
    assert sorted(world.standing("ord-1")) == ["log", "notify"]


def is_archived_twice(world: World) -> None:
    world.on("charge").refuses("Declined")
    world.submit()
    world.run()
    assert state(world) is TaskState.ARCHIVED
    first = world.task("ord-1").step("notify").round
    world.operator.resubmit("ord-1", fresh_key=True)
    world.run()
    assert state(world) is TaskState.ARCHIVED
    assert world.task("ord-1").step("notify").round == first + 1


def is_cancelled(world: World) -> None:
    world.on("charge").is_down()
    world.submit()
    world.run(until=lambda: bool(world.orders()) and world.task("ord-1").step("reserve").done)
    world.operator.cancel("ord-1")
    world.run()
    assert state(world) is TaskState.CANCELLED
    assert sorted(world.standing("ord-1")) == ["log", "notify"]


def ends_early(world: World) -> None:
    world.on("reserve").ends_order("not wanted")
    world.submit()
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert world.standing("ord-1") == ["reserve"]


def ends_early_with_an_undo(world: World) -> None:
    world.on("reserve").ends_order("not wanted", undo=True)
    world.submit()
    world.run()
    assert state(world) is TaskState.COMPLETED
    assert world.standing("ord-1") == []


STORIES: Mapping[str, tuple[Callable[[World], None], Workflow]] = {
    "undone": (is_undone, UNDONE),
    "archived twice": (is_archived_twice, ARCHIVED),
    "cancelled": (is_cancelled, UNDONE),
    "ends early": (ends_early, UNDONE),
    "ends early with an undo": (ends_early_with_an_undo, UNDONE),
}


@pytest.mark.parametrize("name", STORIES)
def test_the_closing_steps_run_once_before_each_end(name: str) -> None:
    story, workflow = STORIES[name]
    story(World(workflow))


@at_every_call
@pytest.mark.parametrize("name", STORIES)
def test_it_is_so_whatever_call_fails(name: str, kinds: Kinds) -> None:
    story, workflow = STORIES[name]
    assert crash_everywhere(story, lambda faults: World(workflow, faults=faults), faults=kinds).runs


def test_a_closing_step_whose_service_is_down_does_not_keep_the_order_open() -> None:
    world = World(UNDONE)
    world.on("charge").refuses("Declined")
    world.on("notify").is_down()
    world.submit()
    world.run()
    assert state(world) is TaskState.UNDONE
    alerts = [alert for alert in world.post.alerts if "closing steps" in str(alert)]
    assert len(alerts) == 1
