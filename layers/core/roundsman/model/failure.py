"""What a task failed of, named so that one cause has one name: the group of a failure.

Two hundred orders that the same service declines for the same reason are one thing to know of,
and one to act on. Their failures have the same fingerprint: the workflow, the step, how the task
ended, the error's type, and its message without what differs from order to order.
"""

import re
from dataclasses import dataclass, replace

from roundsman.model.json import canonical_json, sha256
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, Task, step_of

ARCHIVED, UNDO_FAILED, UNDONE = "archived", "undo_failed", "undone"
"""How a task ended that failed: as it was, in an undo that failed itself, or undone as a whole."""

NO_STEP = "none"
"""Stands for the step where the task failed as a whole."""

UNKNOWN = "Unknown"
LONGEST_MESSAGE = 200  # characters

_STATUS = re.compile(r"\b(answered|status|code|HTTP) (?=[1-5][0-9][0-9]\b)", re.IGNORECASE)
_QUOTED = re.compile(r"(?<!\w)'[^']*'(?!\w)|(?<!\w)\"[^\"]*\"(?!\w)")
_ADDRESS = re.compile(r"https?://\S+|\S+@\S+")
_LETTERED = re.compile(r"\b(?=[\w.~:/-]*[0-9])\w[\w.~:/-]*")
_HEX = re.compile(r"\b[0-9a-fA-F]{8,}\b")
_DURATION = re.compile(r"\*(?: (?:ms|s|min|h|d)\b)+(?:,? \*(?: (?:ms|s|min|h|d)\b)+)*")
_SEVERAL = re.compile(r"\*(?:[,;]? \*)+")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Failure:
    """The fingerprint of a failure. `message` is normalised; `step` is NO_STEP where none failed.

    `how` is ARCHIVED, UNDO_FAILED or UNDONE. An item of a fan-out is named by its step.
    """

    workflow: str
    step: str
    how: str
    error_type: str
    message: str

    @property
    def group(self) -> str:
        """The name of the group: `f-` and eight hexadecimal digits."""
        parts = [self.workflow, self.step, self.how, self.error_type, self.message]
        return f"f-{sha256(canonical_json(parts))[:8]}"


def failure_of(task: Task) -> Failure | None:
    """What an ended task failed of; None where it did not fail, or ended as a person asked."""
    if task.state not in (TaskState.ARCHIVED, TaskState.UNDONE) or task.ending is None:
        return None
    if task.state is TaskState.UNDONE:
        return _failure(task, UNDONE, task.ending.step, task.ending.error)
    for name, record in sorted(task.steps.items()):
        if record.process_state is ProcessState.UNDO_ERROR:
            return _failure(task, UNDO_FAILED, name, record.error or _unknown(task))
    return _failure(task, ARCHIVED, task.ending.step, task.ending.error or _unknown(task))


def _unknown(task: Task) -> StepError:
    return StepError(UNKNOWN, task.ending.why if task.ending else "")


def _failure(task: Task, how: str, step: str | None, error: StepError | None) -> Failure | None:
    if error is None:
        return None
    return Failure(
        workflow=task.workflow,
        step=step_of(step) if step else NO_STEP,
        how=how,
        error_type=error.type,
        message=normalised(_without(task.task_id, error.message)),
    )


def _without(task_id: str, text: str) -> str:
    """The text without the order's id, where that is a word of its own: an id may be one letter."""
    return re.sub(rf"(?<!\w){re.escape(task_id)}(?!\w)", "*", text)


def normalised(text: str) -> str:
    """The text without what differs from one occurrence of its cause to the next.

    Whatever has a digit, is quoted, or is an address becomes `*`: ids, amounts, times. The status
    that a service answered stays, since 402 and 503 are two causes. At most LONGEST_MESSAGE
    characters, since a message's end tells more and more of the one order.
    """
    kept = _STATUS.sub(lambda found: f"{found[0]}\0", _SPACE.sub(" ", text.replace("\0", " ")))
    plain = _ADDRESS.sub("*", _QUOTED.sub("*", kept))
    plain = _HEX.sub("*", _LETTERED.sub(_star, plain))
    plain = _SEVERAL.sub("*", _DURATION.sub("*", plain))
    return plain.replace("\0", "").strip()[:LONGEST_MESSAGE]


def _star(found: re.Match[str]) -> str:
    """`*`, but for a status that is kept; a full stop or colon at the end is the sentence's."""
    if found.string[found.start() - 1 : found.start()] == "\0":
        return found[0]
    word = found[0].rstrip(".:/-~")
    return "*" + found[0][len(word) :]


UNREADABLE = "unreadable"
"""How a record "failed" that cannot be handled; beside the ways of `roundsman.model.failure`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A group that is open. Instants are epoch ms.

    `id` is its failures' fingerprint ("f-" and 8 hex digits); `how`, `step`, `error_type` and
    `message` (normalised) are what they have in common; `agent` is the step's ("" where there is
    none). `since` is when the task `opened_by` failed, the first of them. `told_at` is None until
    it was alerted, `told_count` how many members were told of, lowered as they become fewer.
    `count` members were there at `looked_at` ("more than" so many, where `more`), the newest since
    `last_at`; the number is the same since `changed_at`; the next look is at `look_at`. It has no
    member since `clear_since`. Until `telling_until` somebody tells of it. `closed_at` is set once
    it is over and only that is to be told. `overflow` says that it takes what no group is left for.
    """

    id: str
    workflow: str
    step: str
    how: str
    error_type: str
    message: str
    opened_by: str
    opened_at: int
    since: int
    agent: str = ""
    version: int = 1
    telling_until: int = 0
    told_at: int | None = None
    told_count: int = 0
    count: int = 1
    more: bool = False
    last_at: int = 0
    looked_at: int = 0
    changed_at: int = 0
    look_at: int = 0
    clear_since: int | None = None
    closed_at: int | None = None
    overflow: bool = False

    @property
    def undone(self) -> bool:
        """Whether its members are orders that were undone, which is no trouble by itself."""
        return self.how == UNDONE

    @property
    def severity(self) -> str:
        """How bad its alert is."""
        if self.undone:
            return "warning"
        return "critical" if self.how in (UNDO_FAILED, UNREADABLE) else "error"

    def at_next_version(self) -> "Group":
        """The same, to be stored on this version."""
        return replace(self, version=self.version + 1)
