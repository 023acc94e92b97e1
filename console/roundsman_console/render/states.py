"""The colours of states, the same in every table."""

from roundsman.model.states import ProcessState, TaskState

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
