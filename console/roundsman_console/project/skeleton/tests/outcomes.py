"""What the tests' orders wait for, and how they end."""

from collections.abc import Mapping

from roundsman import Archive, Json, Step, Wait, Workflow
from roundsman.client import Client
from roundsman.model.states import DONE, ProcessState
from roundsman.model.task import Task, item_names, step_of
from roundsman_console.inspector import DeployedStack, Inspector
from roundsman_testing import TaskState

ANSWERS: dict[str, Json] = {}
"""The result with which the tests answer a step that returned a Callback, by the step's name; None
if it has none here. An item of a fan-out, such as `pick[0]`, may have one of its own."""


def answer_to(step: str) -> Json:
    """The result with which the tests answer a step or an item."""
    return ANSWERS.get(step, ANSWERS.get(step_of(step)))


def waiting_steps(task: Task) -> list[str]:
    """The steps that wait for the answer to a Callback."""
    return [name for name, record in task.steps.items() if record.waiting]


def deployed_task(outputs: Mapping[str, str], order_id: str) -> Task:
    """The task of an order at a deployed stack."""
    task, _, _ = Inspector(DeployedStack("tested", dict(outputs), {})).task(order_id)
    return task


def answer_what_waits(outputs: Mapping[str, str], order_id: str) -> bool:
    """Answer the steps of an order that wait at a deployed stack. False if none waits."""
    waiting = waiting_steps(deployed_task(outputs, order_id))
    for step in waiting:
        Client(outputs).answer(order_id=order_id, step=step, result=answer_to(step))
    return bool(waiting)


def state_after_refusal(workflow: Workflow, task: Task) -> TaskState:
    """The state in which a task must end whose last step is refused for good.

    It completes without that step if `when` skips it or `tolerate` leaves out all of its items.
    """
    if _states(task, workflow.steps[-1]) <= {ProcessState.SKIPPED}:
        return TaskState.COMPLETED
    end = workflow.steps[-1].on_failure or workflow.on_failure
    end = end.then if isinstance(end, Wait) else end
    point = workflow.point_of_no_return
    if point is not None and ProcessState.PROCESSED in _states(task, point) <= DONE:
        return TaskState.ARCHIVED
    return TaskState.ARCHIVED if isinstance(end, Archive) else TaskState.UNDONE


def _states(task: Task, step: Step) -> set[ProcessState]:
    """The states of a step, or of its items."""
    count = task.fan_outs.get(step.name)
    names = (step.name,) if count is None else item_names(step.name, count)
    return {task.step(name).process_state for name in names}
