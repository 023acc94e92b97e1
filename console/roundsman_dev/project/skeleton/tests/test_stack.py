"""The template on moto: the functions, the queues and the tables as they are deployed."""

from roundsman.model.task import Task
from roundsman_testing import TaskState
from roundsman_testing.stack import Stack
from tests.events import FOLDER, read_event
from tests.outcomes import let_go_on, state_after_refusal
from workflows.registry import WORKFLOWS

FIRST = next(iter(WORKFLOWS.values()))
MINUTE = 60  # seconds, after which the supervisor has looked
MOST_WAITS = 100


def run_order(stack: Stack, file: str) -> Task:
    """Send an order of events/, let it go on where it waits, and return its task at its end."""
    order = read_event(FOLDER / file)
    order_id = str(order["orderId"])
    stack.submit(order)
    stack.run()
    for _ in range(MOST_WAITS):
        if not let_go_on(stack.stack.outputs, FIRST, order_id):
            return stack.task(order_id)
        stack.pass_time(MINUTE)
    raise AssertionError(f"{order_id} waits again after it was let go on {MOST_WAITS} times")


def test_an_order_completes(roundsman_stack: Stack) -> None:
    assert run_order(roundsman_stack, "first.json").state is TaskState.COMPLETED


def test_an_order_that_a_service_refuses_ends_as_the_workflow_says(
    roundsman_stack: Stack,
) -> None:
    task = run_order(roundsman_stack, "refused.json")
    assert task.state is state_after_refusal(FIRST, task)
