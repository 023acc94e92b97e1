"""Each workflow in memory, with its agents and the stand-ins for their services."""

import json
from pathlib import Path

import pytest

from roundsman import Workflow
from roundsman.testing import TaskState, World
from tests.agents import agents_of
from workflows.registry import WORKFLOWS

EVENTS = Path(__file__).parents[1] / "events"

pytestmark = [
    pytest.mark.usefixtures("services"),
    pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS),
]


def test_an_order_completes(workflow: Workflow) -> None:
    world = World(workflow, agents=agents_of(workflow))
    order_id = world.submit(json.loads((EVENTS / "first.json").read_text()))
    world.run()
    assert world.task(order_id).state is TaskState.COMPLETED


def test_an_order_that_a_service_refuses_is_undone(workflow: Workflow) -> None:
    world = World(workflow, agents=agents_of(workflow))
    order = json.loads((EVENTS / "refused.json").read_text())
    order_id = world.submit(order | {"refuse": workflow.steps[-1].agent})
    world.run()
    assert world.task(order_id).state is TaskState.UNDONE
    assert world.standing(order_id) == []
