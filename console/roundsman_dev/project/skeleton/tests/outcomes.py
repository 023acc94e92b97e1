"""What the tests' orders wait for, and how they end."""

from collections.abc import Mapping

from roundsman import ANY, Archive, Json, Signal, Step, Undo, Wait, Workflow
from roundsman.client import Client
from roundsman.model.situations import Asleep, AwaitsSignal, WaitsUntil
from roundsman.model.states import DONE, ProcessState
from roundsman.model.task import Task, item_names, step_of
from roundsman_console.inspector import DeployedStack, Inspector
from roundsman_testing import TaskState

ANSWERS: dict[str, Json] = {}
"""The result with which the tests answer a step that returned a Callback, by the step's name; None
if it has none here. An item of a fan-out, such as `pick[0]`, may have one of its own."""

SIGNALS: dict[str, Json] = {}
"""The data of the signals for which steps wait, by the signal's name; None if it has none here."""


REFUSED = "Refused"
"""The type of the error with which the last call is refused."""


def answer_to(step: str) -> Json:
    """The result with which the tests answer a step or an item."""
    return ANSWERS.get(step, ANSWERS.get(step_of(step)))


def waiting_steps(task: Task) -> list[str]:
    """The steps that wait for the answer to a Callback."""
    return [name for name, record in task.steps.items() if record.waiting]


def awaited_signals(workflow: Workflow, task: Task) -> dict[str, str]:
    """The signals for which steps of the task wait, by the steps' names."""
    names = {step.name: step.signal for step in workflow.all_steps if isinstance(step, Signal)}
    waits = [name for name, one in task.steps.items() if isinstance(one.situation, AwaitsSignal)]
    return {name: names[step_of(name)] for name in waits}


def deployed_task(outputs: Mapping[str, str], order_id: str) -> Task:
    """The task of an order at a deployed stack."""
    task, _, _ = Inspector(DeployedStack("tested", dict(outputs), {})).task(order_id)
    return task


def let_go_on(outputs: Mapping[str, str], workflow: Workflow, order_id: str) -> bool:
    """Answer and signal what an order at a deployed stack waits for, and end its sleeps and pauses.

    Returns False if it waits for nothing.
    """
    task = deployed_task(outputs, order_id)
    if task.ended:
        return False
    client, inspector = Client(outputs), Inspector(DeployedStack("tested", dict(outputs), {}))
    who = {"by": "tests", "reason": "The tests do not wait."}
    answered, signalled = waiting_steps(task), awaited_signals(workflow, task)
    asleep = [name for name, one in task.steps.items() if isinstance(one.situation, Asleep)]
    if answered or signalled:
        asleep = []  # what comes first may be enough, and nobody waits for the time then
    pauses = any(isinstance(one.situation, WaitsUntil) for one in task.steps.values())
    for step in answered:
        client.answer(order_id=order_id, step=step, result=answer_to(step))
    for step, name in signalled.items():  # with one id, a signal that is sent twice counts once
        client.signal(order_id, name, SIGNALS.get(name), signal_id=step[:64])
    for step in asleep:
        inspector.resolve(order_id, step, did=True, wait=0, **who)
    if pauses:  # before the next look at an outside job, or before another attempt
        inspector.run(order_id, wait=0, **who)
    return bool(answered or signalled or asleep or pauses)


def last_call(workflow: Workflow) -> Step:
    """The last step of the workflow that an agent performs."""
    return [step for step in workflow.steps if step.agent_names()][-1]


def state_after_refusal(workflow: Workflow, task: Task) -> TaskState:
    """The state in which a task must end whose last call is refused for good.

    It completes without that step if `when` or `on_error` skips it, if `tolerate` leaves out all of
    its items, or if it is one of the steps of an AnyOf of which enough others succeed.
    """
    refused = last_call(workflow)
    if _states(task, refused) <= {ProcessState.SKIPPED}:
        return TaskState.COMPLETED
    by_type = refused.on_error.get(REFUSED) or refused.on_error.get(ANY)
    end = refused.on_failure or workflow.on_failure
    end = by_type if isinstance(by_type, Undo | Archive | Wait) else end
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
