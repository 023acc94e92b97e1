"""The template on moto: the functions, the queues and the tables as they are deployed."""

from roundsman.model.task import Task
from roundsman_testing import TaskState
from roundsman_testing.stack import Stack
from tests.events import FOLDER, read_event
from tests.outcomes import answer_what_waits, state_after_refusal
from workflows.registry import WORKFLOWS


def run_order(stack: Stack, file: str) -> Task:
    """Send an order of events/, answer what waits, and return its task when all is done."""
    order = read_event(FOLDER / file)
    order_id = str(order["orderId"])
    stack.submit(order)
    stack.run()
    while answer_what_waits(stack.stack.outputs, order_id):
        stack.run()
    return stack.task(order_id)


def test_an_order_completes(roundsman_stack: Stack) -> None:
    assert run_order(roundsman_stack, "first.json").state is TaskState.COMPLETED


def test_an_order_that_a_service_refuses_ends_as_the_workflow_says(
    roundsman_stack: Stack,
) -> None:
    task = run_order(roundsman_stack, "refused.json")
    assert task.state is state_after_refusal(next(iter(WORKFLOWS.values())), task)
