"""What the tests' orders wait for, and how they end."""

from collections.abc import Mapping

from roundsman import Archive, Json, Wait, Workflow
from roundsman.client import Client
from roundsman.inspector import DeployedStack, Inspector
from roundsman.model.task import Task
from roundsman.testing import TaskState

ANSWERS: dict[str, Json] = {}
"""The result with which the tests answer a step that returned a Callback, by the step's name; None
if it has none here."""


def waiting_steps(task: Task) -> list[str]:
    """The steps that wait for the answer to a Callback."""
    return [name for name, record in task.steps.items() if record.waiting]


def answer_what_waits(outputs: Mapping[str, str], order_id: str) -> bool:
    """Answer the steps of an order that wait at a deployed stack. False if none waits."""
    task, _, _ = Inspector(DeployedStack("tested", dict(outputs), {})).task(order_id)
    for step in waiting_steps(task):
        Client(outputs).answer(order_id=order_id, step=step, result=ANSWERS.get(step))
    return bool(waiting_steps(task))


def state_after_refusal(workflow: Workflow) -> TaskState:
    """The state in which an order ends whose last step is refused for good."""
    end = workflow.steps[-1].on_failure or workflow.on_failure
    end = end.then if isinstance(end, Wait) else end
    return TaskState.ARCHIVED if isinstance(end, Archive) else TaskState.UNDONE
