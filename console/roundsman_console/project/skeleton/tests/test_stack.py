"""The template on moto: the functions, the queues and the tables as they are deployed."""

from roundsman.testing import TaskState
from roundsman.testing.stack import Stack
from tests.events import FOLDER, read_event


def test_an_order_completes(roundsman_stack: Stack) -> None:
    roundsman_stack.submit(read_event(FOLDER / "first.json"))
    roundsman_stack.run()
    assert roundsman_stack.task("first").state is TaskState.COMPLETED


def test_an_order_that_a_service_refuses_is_undone(roundsman_stack: Stack) -> None:
    roundsman_stack.submit(read_event(FOLDER / "refused.json"))
    roundsman_stack.run()
    assert roundsman_stack.task("refused").state is TaskState.UNDONE
