"""Each workflow in memory, with its agents and the stand-ins for their services."""

import pytest

from roundsman import Archive, Wait, Workflow
from roundsman.model.task import Task
from roundsman.testing import TaskState, World
from tests.agents import agents_of
from tests.events import event_file, read_event
from workflows.registry import WORKFLOWS

pytestmark = [
    pytest.mark.usefixtures("services"),
    pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS),
]


def run_order(world: World, workflow: Workflow) -> Task:
    """Send the workflow's order of events/, and return its task when it has ended."""
    path = event_file(workflow)
    order_id = world.submit(read_event(path))
    world.run()
    try:
        return world.task(order_id)
    except LookupError as error:
        pytest.fail(f"{path} is not an order of {workflow.name}: {error}", pytrace=False)


def test_an_order_completes(workflow: Workflow) -> None:
    world = World(workflow, agents=agents_of(workflow))
    assert run_order(world, workflow).state is TaskState.COMPLETED


def test_an_order_that_the_last_service_refuses_ends_as_the_workflow_says(
    workflow: Workflow,
) -> None:
    world = World(workflow, agents=agents_of(workflow))
    world.on(workflow.steps[-1].name).refuses("Refused")
    task = run_order(world, workflow)
    end = workflow.on_failure
    end = end.then if isinstance(end, Wait) else end
    if isinstance(end, Archive):
        assert task.state is TaskState.ARCHIVED
    else:
        assert task.state is TaskState.UNDONE
        assert world.standing(task.task_id) == []
