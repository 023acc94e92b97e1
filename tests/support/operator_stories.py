"""Where the stories of operators begin, and how they are refused."""

from collections.abc import Callable

import pytest

from roundsman.definition.workflow import Compensation, Retry
from roundsman.errors import Refused
from roundsman.model.states import TaskState
from tests.support.machine_world import World, begun, step

ONCE = Retry(max_attempts=1)
FENCED = Compensation(fences_late_performs=True, retry=Retry(max_attempts=8))
HOUR = 3_600


def archived(compensation: Compensation | None = FENCED) -> World:
    """`a` is done, `b` was refused half a minute later, and the task waits for a person."""
    a = step("a", compensation=compensation)
    b = step("b", a, compensation=compensation, retry=ONCE)
    world = begun(a, b, step("c", b))
    world.succeeds("a", "r")
    world.wait(36).is_refused("b")
    world.deliver_owed()
    world.wait(100)
    return world


def undone() -> World:
    world = archived()
    world.ask_undo()
    world.start()
    world.succeeds("b")
    world.succeeds("a")
    assert world.task_state() is TaskState.UNDONE
    world.deliver_owed()
    return world


def extended(*, undo: bool) -> World:
    """A step is given more time, and is overdue."""
    world = archived()
    if undo:
        world.ask_undo()
    else:
        world.resubmit()
    world.start()
    world.extend(60, "b")
    world.overdue("b")
    return world


def heard_late(state: TaskState) -> World:
    """A step fails, its task ends, and then another copy of its request was taken after all."""
    world = archived(None)
    if state is TaskState.UNDONE:
        world.ask_undo()
    elif state is TaskState.CANCELLED:
        world.cancel(undo=False)
    assert world.task_state() is state
    world.succeeds("b", lock="an-earlier.1.1")
    return world


def refusal(world: World, act: Callable[[], object]) -> str:
    """The sentence that the act is refused with; nothing has changed by it."""
    before = world.task
    with pytest.raises(Refused) as refused:
        act()
    assert world.task is before
    return str(refused.value)
