"""A defect of an agent's code, whole: the alert, the retries, the repair and the all-clear."""

from datetime import timedelta

from roundsman import Agent, Json, Retry, StepRequest
from roundsman.model.states import TaskState
from roundsman_testing import World
from tests.world.shop import FENCED, a_step, a_workflow

reserve = a_step("reserve", compensation=FENCED)
charge = a_step("charge", reserve, compensation=FENCED, retry=Retry())
HALF_AN_HOUR = timedelta(minutes=30)


class Till:
    """An agent whose code has a defect until it is repaired."""

    def __init__(self) -> None:
        self.repaired = False
        self.agent = Agent("charge")
        self.agent.performs(charge)(self.perform)
        self.agent.compensates(charge)(lambda _: None)

    def perform(self, request: StepRequest) -> Json:
        return {} if self.repaired else request.input["price"]


def alerts(world: World) -> list[tuple[str, str]]:
    return [(a.attributes["kind"], a.attributes["news"]) for a in world.post.alerts]


def test_a_defect_that_is_repaired_within_the_hour_undoes_nothing() -> None:
    till = Till()
    world = World(a_workflow(reserve, charge), agents=[till.agent])
    orders = [world.submit(), world.submit()]
    world.run(for_=HALF_AN_HOUR)
    assert {world.task(order).state for order in orders} <= {TaskState.RETRY, TaskState.ACTIVE}
    assert alerts(world)[0] == ("unexpected_error", "first")
    assert [news for _, news in alerts(world)].count("first") == 1
    assert "KeyError" in world.post.alerts[0].subject
    till.repaired = True
    world.run(for_=HALF_AN_HOUR)
    for order in orders:
        assert world.task(order).state is TaskState.COMPLETED
        assert world.standing(order) == ["reserve", "charge"]
        assert not [row for row in world.history(order) if row.kind == "undo"]
    assert alerts(world)[-1] == ("unexpected_error", "clear")


def test_a_defect_that_is_not_repaired_is_undone_after_the_hour() -> None:
    world = World(a_workflow(reserve, charge), agents=[Till().agent])
    order = world.submit()
    world.run(for_=timedelta(minutes=59))
    assert not world.task(order).ended
    world.run()
    assert world.task(order).state is TaskState.UNDONE
    assert world.standing(order) == []
    assert ("unexpected_error", "first") in alerts(world)
