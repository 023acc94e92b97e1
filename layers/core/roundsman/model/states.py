"""The states of a task and of a step, and the situations of a step.

The task states are those of asynq, plus the states of the undo. The step states are those of the
Scheduler Agent Supervisor pattern. A situation says more: a Pending step may be ready, wait for a
time, or be parked.
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


class Situation(StrEnum):
    """What a step does or waits for. Each situation belongs to one state of the pattern."""

    NOT_BEGUN = "not begun"
    """The steps before it are not done, or it was not looked at yet."""
    READY = "ready"
    """It is to be claimed: a Start was sent."""
    WAITS = "waits"
    """It waits for a time: for its next attempt."""
    PARKED = "parked"
    """It waits for an agent that takes no work."""
    AT_AGENT = "at its agent"
    """Its request was sent, or is about to be."""
    AWAITS_CALLBACK = "awaits its callback"
    """Its agent has asked somebody, whose answer ends the attempt."""
    PROCESSED = "processed"
    SKIPPED = "skipped"
    FAILED = "failed"
    UNDO_READY = "undo ready"
    """Its undo is to be claimed, after the undos of the steps that follow it."""
    UNDO_WAITS = "undo waits"
    """Its undo waits for a time: for its next attempt, or until no request can act any more."""
    UNDO_PARKED = "undo parked"
    UNDO_AT_AGENT = "undo at its agent"
    UNDONE = "undone"
    UNDO_FAILED = "undo failed"

    @property
    def state(self) -> ProcessState:
        """The state of the pattern that the situation belongs to."""
        return _STATE_OF[self]


IDLE = (Situation.NOT_BEGUN, Situation.READY, Situation.WAITS, Situation.PARKED)
"""The situations of a step that is to be performed and is not under way."""
BUSY = (Situation.AT_AGENT, Situation.AWAITS_CALLBACK)
"""The situations of a step whose perform is under way."""
UNDO_IDLE = (Situation.UNDO_READY, Situation.UNDO_WAITS, Situation.UNDO_PARKED)
"""The situations of a step that is to be undone and whose undo is not under way."""

UNDER_WAY = frozenset({*BUSY, Situation.UNDO_AT_AGENT})
"""The situations in which an attempt is under way: its values exist only there."""

_STATE_OF = {
    **dict.fromkeys(IDLE, ProcessState.PENDING),
    **dict.fromkeys(BUSY, ProcessState.PROCESSING),
    Situation.PROCESSED: ProcessState.PROCESSED,
    Situation.SKIPPED: ProcessState.SKIPPED,
    Situation.FAILED: ProcessState.ERROR,
    **dict.fromkeys((*UNDO_IDLE, Situation.UNDO_AT_AGENT), ProcessState.UNDOING),
    Situation.UNDONE: ProcessState.UNDONE,
    Situation.UNDO_FAILED: ProcessState.UNDO_ERROR,
}
