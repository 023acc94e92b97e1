"""The states of a task and of a step, and the situations of a step.

The task states are those of asynq, plus those of the undo and of a cancelled task. The step states
are those of the Scheduler Agent Supervisor pattern. A situation says more: a Pending step may be
ready, wait for a time, be parked, be asleep, or await its signal.
"""

from enum import StrEnum
from typing import Self


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

    state: ProcessState
    """The state of the pattern that the situation belongs to."""

    def __new__(cls, name: str, state: ProcessState) -> Self:
        """Define a situation: its name, and the state of the pattern that it belongs to."""
        found = str.__new__(cls, name)
        found._value_ = name
        found.state = state
        return found

    NOT_BEGUN = "not begun", ProcessState.PENDING
    """The steps before it are not done, or it was not looked at yet."""
    READY = "ready", ProcessState.PENDING
    """It is to be claimed: a Start was sent."""
    WAITS = "waits", ProcessState.PENDING
    """It waits for a time: for its next attempt."""
    PARKED = "parked", ProcessState.PENDING
    """It waits for an agent that takes no work."""
    ASLEEP = "asleep", ProcessState.PENDING
    """It is a sleep, which ends by itself."""
    AWAITS_SIGNAL = "awaits its signal", ProcessState.PENDING
    """It waits for a signal, which ends it."""
    AT_AGENT = "at its agent", ProcessState.PROCESSING
    """Its request was sent, or is about to be."""
    AWAITS_CALLBACK = "awaits its callback", ProcessState.PROCESSING
    """Its agent has asked somebody, whose answer ends the attempt."""
    PROCESSED = "processed", ProcessState.PROCESSED
    AWAITS_RESULT = "awaits its result", ProcessState.PROCESSED
    """It is done, but its result was left out of the record, and what comes after it waits."""
    SKIPPED = "skipped", ProcessState.SKIPPED
    FAILED = "failed", ProcessState.ERROR
    UNDO_READY = "undo ready", ProcessState.UNDOING
    """Its undo is to be claimed, after the undos of the steps that follow it."""
    UNDO_WAITS = "undo waits", ProcessState.UNDOING
    """Its undo waits for a time: for its next attempt, or until no request can act any more."""
    UNDO_PARKED = "undo parked", ProcessState.UNDOING
    UNDO_AT_AGENT = "undo at its agent", ProcessState.UNDOING
    UNDONE = "undone", ProcessState.UNDONE
    UNDO_FAILED = "undo failed", ProcessState.UNDO_ERROR


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
