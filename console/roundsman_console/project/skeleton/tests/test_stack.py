"""The template on moto: the functions, the queues and the tables as they are deployed."""

import json
from pathlib import Path

from roundsman.testing import TaskState
from roundsman.testing.stack import Stack

EVENTS = Path(__file__).parents[1] / "events"


def test_an_order_completes(roundsman_stack: Stack) -> None:
    roundsman_stack.submit(json.loads((EVENTS / "first.json").read_text()))
    roundsman_stack.run()
    assert roundsman_stack.task("first").state is TaskState.COMPLETED


def test_an_order_that_a_service_refuses_is_undone(roundsman_stack: Stack) -> None:
    roundsman_stack.submit(json.loads((EVENTS / "refused.json").read_text()))
    roundsman_stack.run()
    assert roundsman_stack.task("refused").state is TaskState.UNDONE
