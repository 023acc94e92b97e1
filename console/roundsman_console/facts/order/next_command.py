"""Which command does a person run next for an order? Pure."""

from roundsman.command_line import GIVES_RESULT, REASON, command_line
from roundsman.model.states import TaskState
from roundsman.model.task import Task


def next_command(task: Task) -> str | None:
    """Return the command to run next; None if the task is Completed or erased."""
    if task.state is TaskState.COMPLETED or task.erased_at is not None:
        return None
    missing = missing_result(task)
    if missing is not None:
        return result_command(task, missing)
    if not task.ended:
        return command_line("why", task.task_id)
    again = () if task.state is TaskState.ARCHIVED else ("--again",)
    return command_line("resubmit", task.task_id, options=(*again, *REASON))


def missing_result(task: Task) -> str | None:
    """Return the first step whose result a person must give before the task can go on, if any."""
    undoes = task.ending is not None and task.ending.undo
    if undoes or (task.ended and task.state is not TaskState.ARCHIVED):
        return None
    return next((name for name, record in task.steps.items() if record.awaits_result), None)


def result_command(task: Task, step: str) -> str:
    """Return the command that gives the missing result of a step."""
    return command_line("resolve", task.task_id, step, options=GIVES_RESULT)
