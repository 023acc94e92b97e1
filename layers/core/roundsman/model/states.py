"""The states of a task and of a step.

The task states are those of asynq, plus the states of the undo. The step states are those of the
Scheduler Agent Supervisor pattern.
"""

from enum import StrEnum


class TaskState(StrEnum):
    """The state of a task. Only a decision sets it."""

    SCHEDULED = "Scheduled"
    PENDING = "Pending"
    ACTIVE = "Active"
    RETRY = "Retry"
    COMPLETED = "Completed"
    UNDOING = "Undoing"
    UNDONE = "Undone"
    ARCHIVED = "Archived"
    CANCELLED = "Cancelled"


END_STATES = frozenset(
    {TaskState.COMPLETED, TaskState.UNDONE, TaskState.ARCHIVED, TaskState.CANCELLED}
)


class ProcessState(StrEnum):
    """The state of one step of a task."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    PROCESSED = "Processed"
    ERROR = "Error"
    SKIPPED = "Skipped"
    UNDOING = "Undoing"
    UNDONE = "Undone"
    UNDO_ERROR = "UndoError"


DONE = frozenset({ProcessState.PROCESSED, ProcessState.SKIPPED})
"""The step states that allow the steps after this one to start."""
