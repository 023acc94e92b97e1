"""What follows an error by its type, whatever fails meanwhile."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from roundsman.definition.workflow import Archive, NextAgent, Retry, Skip, Undo, Wait
from roundsman_testing import TaskState, World
from roundsman_testing.world.crashes import crash_everywhere
from tests.world.at_every_call import Kinds, at_every_call
from tests.world.shop import FENCED, a_step, a_workflow

ON_ERROR = {
    "Declined": Undo(),
    "NotOffered": Skip(),
    "Closed": Wait(delay=timedelta(minutes=30), times=2),
    "Full": NextAgent(),
    "Throttled": Retry(max_attempts=5),
}
reserve = a_step("reserve", compensation=FENCED)
ship = a_step(
    "ship",
    reserve,
    agent="",
    agents=("ship", "other"),
    compensation=FENCED,
    on_error=ON_ERROR,
    retry=Retry(max_attempts=1),
)
mail = a_step("mail", ship, compensation=FENCED)
ORDER = a_workflow(reserve, ship, mail, on_failure=Archive())


def refused(kind: str, end: TaskState, standing: list[str]) -> Callable[[World], None]:
    def story(world: World) -> None:
        world.on("ship").refuses(kind, times=1)
        world.submit()
        world.run()
        assert world.task("ord-1").state is end
        assert sorted(world.standing("ord-1")) == standing

    return story


ALL = ["mail", "reserve", "ship"]
STORIES = [
    pytest.param(refused("Declined", TaskState.UNDONE, []), id="undone"),
    pytest.param(refused("NotOffered", TaskState.COMPLETED, ["mail", "reserve"]), id="skipped"),
    pytest.param(refused("Closed", TaskState.COMPLETED, ALL), id="waits"),
    pytest.param(refused("Full", TaskState.COMPLETED, ALL), id="the next agent"),
    pytest.param(refused("Throttled", TaskState.COMPLETED, ALL), id="retried"),
    pytest.param(refused("Broken", TaskState.ARCHIVED, ["reserve"]), id="archived"),
]


@pytest.mark.parametrize("story", STORIES)
def test_the_type_of_an_error_decides_what_follows(story: Callable[[World], None]) -> None:
    story(World(ORDER))


@at_every_call
@pytest.mark.parametrize("story", STORIES)
def test_it_is_so_whatever_call_fails(story: Callable[[World], None], kinds: Kinds) -> None:
    assert crash_everywhere(story, lambda faults: World(ORDER, faults=faults), faults=kinds).runs
