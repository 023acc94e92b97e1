"""Each workflow in memory, with its agents and the stand-ins for their services."""

from datetime import timedelta

import pytest

from roundsman import Workflow
from roundsman.model.task import Task
from roundsman_testing import TaskState, World
from tests.agents import agents_of
from tests.events import event_file, read_event
from tests.outcomes import (
    REFUSED,
    SIGNALS,
    answer_to,
    awaited_signals,
    last_call,
    state_after_refusal,
    waiting_steps,
)
from workflows.registry import WORKFLOWS

pytestmark = [
    pytest.mark.usefixtures("services"),
    pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS),
]


def run_order(world: World, workflow: Workflow) -> Task:
    """Send the workflow's order of events/, let it go on where it waits, and return its task."""
    path = event_file(workflow)
    order_id = world.submit(read_event(path))
    world.run(for_=timedelta(seconds=1))  # the submission reads the order
    try:
        world.task(order_id)
    except LookupError as error:
        pytest.fail(f"{path} is not an order of {workflow.name}: {error}", pytrace=False)

    def waiting() -> list[str]:
        task = world.task(order_id)
        return [*waiting_steps(task), *awaited_signals(workflow, task)]

    while not world.task(order_id).ended:
        world.run(until=lambda: world.task(order_id).ended or bool(waiting()))
        if asked := waiting():
            task = world.task(order_id)
            for step in waiting_steps(task):
                world.answer(order_id, step, answer_to(step))
            for name in awaited_signals(workflow, task).values():
                world.signal(order_id, name, SIGNALS.get(name))
            world.run(until=lambda: waiting() != asked)
    return world.run().task(order_id)


def test_an_order_completes(workflow: Workflow) -> None:
    world = World(workflow, agents=agents_of(workflow))
    assert run_order(world, workflow).state is TaskState.COMPLETED


def test_an_order_that_the_last_service_refuses_ends_as_the_workflow_says(
    workflow: Workflow,
) -> None:
    world = World(workflow, agents=agents_of(workflow))
    world.on(last_call(workflow).name).refuses(REFUSED)
    task = run_order(world, workflow)
    assert task.state is state_after_refusal(workflow, task)
    if task.state is TaskState.UNDONE:
        stands = world.standing(task.task_id)
        assert [step for step in stands if not task.closes(step)] == []
