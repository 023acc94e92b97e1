"""Orders of which a result is too long: what was done stays, and who reads it waits."""

from datetime import timedelta

import pytest

from roundsman.agents.agent import Agent
from roundsman.agents.request import StepRequest
from roundsman.aws.dynamodb.settled import is_row
from roundsman.definition.workflow import Step, Undo, Workflow
from roundsman.model.states import ProcessState, TaskState
from roundsman_testing import World
from tests.world.shop import FENCED, a_step
from tests.world.test_records import KIB, an_agent

SMALL = 4 * KIB


def a_flow(*steps: Step, retain_for: timedelta = timedelta(days=3)) -> Workflow:
    day = timedelta(days=1)
    return Workflow(
        name="sale", steps=steps, complete_within=day, on_failure=Undo(), retain_for=retain_for
    )


def two_steps() -> tuple[Step, Step]:
    charge = a_step("charge", compensation=FENCED, result_limit=SMALL)
    return charge, a_step("ship", charge, compensation=FENCED)


def waiting(answers_with: int = SMALL + 1, **options: timedelta) -> tuple[World, str]:
    """A world whose only order waits for the result of its first step."""
    charge, ship = two_steps()
    flow = a_flow(charge, ship, **options)
    world = World(flow, agents=[an_agent(charge, answers_with=answers_with)])
    order = world.submit()
    world.run(for_=timedelta(minutes=5))
    return world, order


def rows(world: World) -> list[str]:
    """The keys of the rows beside the records."""
    items = world.processes.store.tables.items("TasksTable")
    return sorted(item["TaskId"]["S"] for item in items if is_row(item))


def kept(world: World, order: str) -> object:
    found = world.processes.store.with_results_left_out(world.task(order)).step("charge").left_out
    return None if found is None else found.whole


def test_an_order_waits_for_the_result_with_one_alert_and_goes_on_with_it() -> None:
    world, order = waiting()
    assert world.task(order).step("charge").awaits_result
    assert world.standing(order) == ["charge"]
    assert [alert.attributes["kind"] for alert in world.post.alerts] == ["result_awaited"]
    world.run(for_=timedelta(days=3))
    assert world.task(order).state is TaskState.PENDING, "its time is given back"
    world.operator.resolve(order, "charge", did=True, result={"id": "ch-1"})
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.standing(order) == ["charge", "ship"]


def test_the_whole_result_is_in_a_row_that_ends_with_the_record() -> None:
    world, order = waiting()
    assert rows(world) == [f"{order}#result#0"]
    assert len(str(kept(world, order))) == SMALL - 1
    world.cancel(order, undo=True)
    world.run()
    assert world.task(order).state is TaskState.CANCELLED
    [item] = [i for i in world.processes.store.tables.items("TasksTable") if is_row(i)]
    assert "ExpiresAt" in item
    world.operator.erase(order)
    world.run()
    assert rows(world) == []


def test_a_row_is_removed_with_a_record_that_is_not_retained() -> None:
    world, order = waiting(retain_for=timedelta(0))
    assert rows(world) == [f"{order}#result#0"]
    world.operator.resolve(order, "charge", did=True, result=1)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert rows(world) == []


@pytest.mark.parametrize(("size", "is_kept"), [(256 * KIB, True), (256 * KIB + 1, False)])
def test_a_result_of_up_to_256_kib_is_kept(size: int, is_kept: bool) -> None:
    world, order = waiting(size)
    assert world.task(order).step("charge").awaits_result
    assert (kept(world, order) is not None) is is_kept


def test_a_function_whose_answer_is_no_json_has_charged_and_is_not_refunded() -> None:
    charge, ship = two_steps()
    agent = Agent(charge.agent)

    @agent.performs(charge)
    def perform(_request: StepRequest) -> object:
        return {"a", "set"}

    @agent.compensates(charge)
    def undo(_request: StepRequest) -> None:
        raise AssertionError("what was done is not undone")

    world = World(a_flow(charge, ship), agents=[agent])
    order = world.submit()
    world.run(for_=timedelta(hours=3))
    assert world.task(order).step("charge").awaits_result
    kinds = [alert.attributes["kind"] for alert in world.post.alerts]
    assert "result_awaited" in kinds
    world.operator.resolve(order, "charge", did=True, result=1)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED
    assert world.task(order).step("ship").process_state is ProcessState.PROCESSED


@pytest.mark.parametrize("result", ["x" * SMALL, {"a", "set"}], ids=["long", "no JSON"])
def test_a_stand_in_returns_what_the_test_says(result: object) -> None:
    world = World(a_flow(*two_steps()))
    world.on("charge").returns(result)
    order = world.submit()
    world.run(for_=timedelta(hours=3))
    assert world.task(order).step("charge").awaits_result
    assert world.standing(order) == ["charge"]
    world.operator.resolve(order, "charge", did=True, result=1)
    world.run()
    assert world.task(order).state is TaskState.COMPLETED


def test_a_stand_in_returns_a_short_result_so_many_times() -> None:
    world = World(a_flow(*two_steps()))
    world.on("charge").returns({"id": "ch-1"}, times=1)
    first, second = world.submit(), world.submit()
    world.run()
    results = [world.task(order).results()["charge"] for order in (first, second)]
    assert results.count({"id": "ch-1"}) == 1
