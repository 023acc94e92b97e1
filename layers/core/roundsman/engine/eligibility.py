"""Whether the engine would accept an operator's command for a task. Pure."""

from roundsman.definition.plan import Plan
from roundsman.engine.machine import decide
from roundsman.errors import Refused
from roundsman.model.events import OperatorEvent, Resubmit
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman.model.task import Task

REFUSED_ROW = "refused"
"""The kind of the history row of a command that the scheduler refused."""


def decided(
    plan: Plan | None,
    task: Task,
    event: OperatorEvent,
    at: int,
    next_plan: Plan | None = None,
    *,
    order: Json = None,
) -> Task:
    """Return the task after the command, as the engine decides at `at` (epoch ms).

    `next_plan` is the plan that the command names, if it names one. `order` is the content of the
    order row, which only a command that corrects the input needs. Raises Refused if the engine
    refuses the command, or if the command is an evident mistake.
    """
    # The decision on a command does not use the agents or the jitter.
    decision = decide(plan, task, event, at, order=order, jitter=0, next_plan=next_plan)
    problem = _mistake(task, event)
    if problem is not None:
        raise Refused(problem)
    return decision.task


def _mistake(task: Task, event: OperatorEvent) -> str | None:
    """Return the reason to refuse a command that the engine accepts, but that is a mistake."""
    begins_again = isinstance(event, Resubmit) and event.again
    if not begins_again or task.state in (TaskState.UNDONE, TaskState.CANCELLED):
        return None
    undo = task.ending is not None and task.ending.undo
    does = "continues its undo" if undo else "tries its failed steps again"
    return (
        f"`again` begins an undone or cancelled task from the start, and this task is "
        f"{task.state}; without it, the command {does}"
    )
