"""The colours of states, the same in every table."""

from rich.text import Text

from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Task
from roundsman_console.cells import plain
from roundsman_console.order.view import erased_words, left_out_words

STATE_STYLES = {
    TaskState.COMPLETED: "green",
    TaskState.ARCHIVED: "red",
    TaskState.ACTIVE: "cyan",
    TaskState.RETRY: "yellow",
    TaskState.UNDOING: "yellow",
    TaskState.UNDONE: "magenta",
    TaskState.CANCELLED: "magenta",
}
STEP_STYLES = {
    ProcessState.PROCESSED: "green",
    ProcessState.ERROR: "red",
    ProcessState.PROCESSING: "cyan",
    ProcessState.UNDOING: "yellow",
    ProcessState.UNDONE: "magenta",
    ProcessState.UNDO_ERROR: "red",
}


def task_line(task: Task) -> Text:
    """Return the line about a task: its id, its workflow, its state, how many items it has left
    out, and whether it is erased."""
    line = plain(f"{task.task_id}  {task.workflow}  ")
    line.append_text(plain(task.state, STATE_STYLES.get(task.state, "")))
    if left_out := left_out_words(task):
        line.append_text(plain(f", {left_out}", "yellow"))
    return line.append_text(plain(f"  {words}")) if (words := erased_words(task)) else line
