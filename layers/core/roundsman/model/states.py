"""The states of a task and of a step, and the situations of a step.

The task states are those of asynq, plus those of the undo and of a cancelled task. The step states
are those of the Scheduler Agent Supervisor pattern. A situation says more: a Pending step may be
ready, wait for a time, be parked, be asleep, or await its signal.
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

OVER = DONE | {ProcessState.ERROR}
"""The states of a step whose perform has ended, however it did."""

SETTLED = DONE | {ProcessState.UNDONE}
"""The step states that only an undo or a command changes. The store moves such steps to rows beside
the record."""


class SituationName(StrEnum):
    """The situations of a perform and of an undo by name, as people read them.

    Each belongs to one state of the pattern. `roundsman.model.situations` has their values.
    """

    NOT_BEGUN = "not begun"
    """The steps before it are not done, or it was not looked at yet."""
    READY = "ready"
    """It is to be claimed: a Start was sent."""
    WAITS = "waits"
    """It waits for a time: for its next attempt."""
    PARKED = "parked"
    """It waits for an agent that takes no work."""
    ASLEEP = "asleep"
    """It is a sleep, which ends by itself."""
    AWAITS_SIGNAL = "awaits its signal"
    """It waits for a signal, which ends it."""
    AT_AGENT = "at its agent"
    """Its request was sent, or is about to be."""
    AWAITS_CALLBACK = "awaits its callback"
    """Its agent has asked somebody, whose answer ends the attempt."""
    PROCESSED = "processed"
    AWAITS_RESULT = "awaits its result"
    """It is done, but its result was left out of the record, and what comes after it waits."""
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


IDLE = (SituationName.NOT_BEGUN, SituationName.READY, SituationName.WAITS, SituationName.PARKED)
"""The situations of a step that is to be performed and is not under way."""
BUSY = (SituationName.AT_AGENT, SituationName.AWAITS_CALLBACK)
"""The situations of a step whose perform is under way."""
WITHOUT_AGENT = (SituationName.ASLEEP, SituationName.AWAITS_SIGNAL)
"""The situations of a step without an agent that has begun and is not over."""
UNDO_IDLE = (SituationName.UNDO_READY, SituationName.UNDO_WAITS, SituationName.UNDO_PARKED)
"""The situations of a step that is to be undone and whose undo is not under way."""

OF_UNDO = frozenset(
    {
        *UNDO_IDLE,
        SituationName.UNDO_AT_AGENT,
        SituationName.UNDONE,
        SituationName.UNDO_FAILED,
    }
)
"""The situations of a step that is being undone, or was."""

_STATE_OF = {
    **dict.fromkeys((*IDLE, *WITHOUT_AGENT), ProcessState.PENDING),
    **dict.fromkeys(BUSY, ProcessState.PROCESSING),
    SituationName.PROCESSED: ProcessState.PROCESSED,
    SituationName.AWAITS_RESULT: ProcessState.PROCESSED,
    SituationName.SKIPPED: ProcessState.SKIPPED,
    SituationName.FAILED: ProcessState.ERROR,
    **dict.fromkeys((*UNDO_IDLE, SituationName.UNDO_AT_AGENT), ProcessState.UNDOING),
    SituationName.UNDONE: ProcessState.UNDONE,
    SituationName.UNDO_FAILED: ProcessState.UNDO_ERROR,
}
