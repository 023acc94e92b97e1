"""Stories of tasks that have ended and whose contents are erased."""

from collections.abc import Callable

from roundsman.model.states import TaskState
from tests.support.machine_world import World, begun, step
from tests.support.operator_stories import archived, undone


def completed() -> World:
    """Both steps are done; nothing is owed."""
    a = step("a")
    world = begun(a, step("b", a))
    world.succeeds("a", {"name": "A. Reader"})
    world.succeeds("b", {"street": "1 Main St"})
    world.deliver_owed()
    assert world.task_state() is TaskState.COMPLETED
    return world


def cancelled() -> World:
    """`b` was refused, and a person gave the order up."""
    world = archived(None)
    world.cancel(undo=False)
    world.deliver_owed()
    return world


def erased(world: World) -> World:
    """Its contents are erased an hour later."""
    world.wait(3_600).erase()
    assert world.task.erased_at == world.now
    return world


ENDED: dict[TaskState, Callable[[], World]] = {
    TaskState.COMPLETED: completed,
    TaskState.UNDONE: undone,
    TaskState.CANCELLED: cancelled,
}
"""A task in each state in which it can be erased."""

ERASED_STORIES: list[Callable[[], World]] = [
    *(lambda make=make: erased(make()) for make in ENDED.values())
]
