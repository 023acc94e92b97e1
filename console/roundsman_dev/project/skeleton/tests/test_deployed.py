"""The deployed functions on a local AWS: `make deployed`."""

import time

import pytest

from roundsman import Workflow
from roundsman.client import Client, OrderStatus
from roundsman_testing import TaskState
from tests.events import FOLDER, event_file, read_event
from tests.outcomes import deployed_task, let_go_on, state_after_refusal
from workflows.registry import WORKFLOWS

pytestmark = pytest.mark.deployed

FIRST = next(iter(WORKFLOWS.values()))
PATIENCE = 60  # seconds


def ended(client: Client, workflow: Workflow, order_id: str) -> OrderStatus:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        status = client.status(order_id)
        if status is not None and status.ended:
            return status
        if status is not None:
            let_go_on(client.outputs, workflow, order_id)
        time.sleep(0.5)
    raise AssertionError(f"{order_id} has not ended in {PATIENCE} s")


@pytest.mark.parametrize("workflow", WORKFLOWS.values(), ids=WORKFLOWS)
def test_an_order_completes(client: Client, workflow: Workflow) -> None:
    order = read_event(event_file(workflow))
    client.submit(order)
    assert ended(client, workflow, str(order["orderId"])).state is TaskState.COMPLETED


def test_an_order_that_a_service_refuses_ends_as_the_workflow_says(client: Client) -> None:
    client.submit(read_event(FOLDER / "refused.json"))
    state = ended(client, FIRST, "refused").state
    task = deployed_task(client.outputs, "refused")
    assert state is state_after_refusal(FIRST, task)
