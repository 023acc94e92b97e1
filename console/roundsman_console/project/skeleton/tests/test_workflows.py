"""Each workflow in memory, with its agents and the stand-ins for their services."""

from datetime import timedelta

import pytest

from roundsman import Workflow
from roundsman.model.task import Task
from roundsman_testing import TaskState, World
from tests.agents import agents_of
from tests.events import event_file, read_event
from tests.outcomes import answer_to, state_after_refusal, waiting_steps
from workflows.registry import WORKFLOWS

pytestmark = [
    pytest.mark.usefixtures("services"),
    pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS),
]


def run_order(world: World, workflow: Workflow) -> Task:
    """Send the workflow's order of events/, answer what waits, and return its task at its end."""
    path = event_file(workflow)
    order_id = world.submit(read_event(path))
    world.run(for_=timedelta(seconds=1))  # the submission reads the order
    try:
        world.task(order_id)
    except LookupError as error:
        pytest.fail(f"{path} is not an order of {workflow.name}: {error}", pytrace=False)

    def waiting() -> list[str]:
        return waiting_steps(world.task(order_id))

    while not world.task(order_id).ended:
        world.run(until=lambda: world.task(order_id).ended or bool(waiting()))
        if asked := waiting():
            for step in asked:
                world.answer(order_id, step, answer_to(step))
            world.run(until=lambda: waiting() != asked)
    return world.run().task(order_id)


def test_an_order_completes(workflow: Workflow) -> None:
    world = World(workflow, agents=agents_of(workflow))
    assert run_order(world, workflow).state is TaskState.COMPLETED


def test_an_order_that_the_last_service_refuses_ends_as_the_workflow_says(
    workflow: Workflow,
) -> None:
    world = World(workflow, agents=agents_of(workflow))
    world.on(workflow.steps[-1].name).refuses("Refused")
    task = run_order(world, workflow)
    assert task.state is state_after_refusal(workflow, task)
    if task.state is TaskState.UNDONE:
        assert world.standing(task.task_id) == []
