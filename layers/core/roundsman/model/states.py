"""The names of the states: a task's life (asynq's, plus undo) and a step's (the pattern's)."""

from enum import StrEnum


class TaskState(StrEnum):
    """Where a task stands; stored with each decision and never set by anything else."""

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
    """Where one step of a task stands."""

    PENDING = "Pending"
    PROCESSING = "Processing"
    PROCESSED = "Processed"
    ERROR = "Error"
    SKIPPED = "Skipped"
    UNDOING = "Undoing"
    UNDONE = "Undone"
    UNDO_ERROR = "UndoError"


DONE = frozenset({ProcessState.PROCESSED, ProcessState.SKIPPED})
"""The states of a step that let what comes after it start."""
