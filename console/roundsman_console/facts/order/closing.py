"""The closing steps of an order's end, and its early end, in words."""

from roundsman.model.instants import second
from roundsman.model.states import ProcessState
from roundsman.model.task import Task
from roundsman_console.facts.order.step_text import span


def end_words(task: Task) -> str:
    """Return why the order ends or ended; empty if it goes on, or has come to its regular end."""
    return task.ending.why if task.ending else task.ended_early or ""


def closing_words(task: Task) -> str:
    """Return what the closing steps do or have done; empty if the end has none."""
    closing = task.closing
    if closing is None:
        return ""
    if not task.ended:
        return (
            f"its closing steps, {span(closing.steps)}, run until {second(closing.by)} at most; "
            f"then it is {closing.end}"
        )
    failed = [n for n in closing.steps if task.step(n).process_state is ProcessState.ERROR]
    return f"its closing steps have failed: {span(failed)}" if failed else ""
