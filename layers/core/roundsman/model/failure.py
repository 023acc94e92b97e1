"""Failure groups: tasks that failed for the same cause belong to the same group.

If one service declines two hundred orders for the same reason, that is one problem, with one alert
and one action. The failures have the same fingerprint: the workflow, the step, how the task ended,
the error type, and the error message without the parts that differ between orders.
"""

import re
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from roundsman.model.json import canonical_json, sha256
from roundsman.model.record_limits import SHORT_MESSAGE
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepError, StepRecord, Task, step_of

ARCHIVED, UNDO_FAILED, UNDONE = "archived", "undo_failed", "undone"
"""How a failed task ended: archived, archived because an undo failed, or undone as a whole."""

RETRIED = "retried"
"""The `how` of an open task: a step fails with an unexpected error and is still retried."""

AWAITS_RESULT = "awaits_result"
"""The `how` of an open task: a step is done, and what comes after it waits for its result."""

RESULT_LEFT_OUT = "ResultLeftOut"
"""The error type of such a task."""

NO_STEP = "none"
"""The step of a failure in which the task failed as a whole."""

GroupSeverity: TypeAlias = Literal["warning", "error", "critical"]

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
    """The fingerprint of a failure."""

    workflow: str
    step: str
    """The failed step; for an item of a fan-out, the step of the definition. NO_STEP if the task
    failed as a whole."""
    how: str
    """ARCHIVED, UNDO_FAILED, UNDONE, RETRIED, AWAITS_RESULT or UNREADABLE."""
    error_type: str
    message: str
    """The error message, normalised (see `normalised`)."""

    @property
    def group(self) -> str:
        """The id of the failure group: `f-` and 8 hexadecimal digits."""
        parts = [self.workflow, self.step, self.how, self.error_type, self.message]
        return f"f-{sha256(canonical_json(parts))[:8]}"


def failure_of(task: Task) -> Failure | None:
    """Return the failure of the task; None if it did not fail or a person ended it.

    An open task has one while a step awaits its result, or while one is retried whose last attempt
    failed with an unexpected error.
    """
    if not task.ended:
        name = open_step(task)
        return _open_failure(task, name) if name else None
    if task.state not in (TaskState.ARCHIVED, TaskState.UNDONE) or task.ending is None:
        return None
    if task.state is TaskState.UNDONE:
        return _failure(task, UNDONE, task.ending.step, task.ending.error)
    for name, record in sorted(task.steps.items()):
        if record.process_state is ProcessState.UNDO_ERROR:
            return _failure(task, UNDO_FAILED, name, record.error or _unknown(task))
    return _failure(task, ARCHIVED, task.ending.step, task.ending.error or _unknown(task))


def shortened(error: StepError, task_id: str) -> StepError:
    """Return the error with a message of at most SHORT_MESSAGE bytes, in the same failure group.

    A longer message is replaced by what the group is made from: the message without the parts that
    differ between orders. Only a few unusual messages, with quotes inside of words or with much
    text that is not ASCII, come into another group.
    """
    whole = error.cut()
    if whole.cut(SHORT_MESSAGE) == whole:
        return whole
    return replace(whole, message=normalised(_without(task_id, whole.message))).cut(SHORT_MESSAGE)


def open_step(task: Task) -> str | None:
    """Return the step because of which an open task has a failure; None if it has none.

    That is a step that awaits its result, or else one whose last attempt failed with an unexpected
    error. Of several it is the one that did first, at `Task.failed_at`; of those, one whose failure
    is the group that the task is in.
    """
    steps = task.steps.items()
    since = {name: one.finished_at or 0 for name, one in steps if one.awaits_result}
    since = since or {
        name: one.retry_window.unexpected_since or 0 for name, one in steps if _is_retried(one)
    }
    first = min(since.values(), default=None)
    found = sorted(name for name, at in since.items() if at == first)
    if len(found) <= 1:
        return found[0] if found else None
    groups = ((name, _open_failure(task, name)) for name in found)
    same = (name for name, one in groups if one is not None and one.group == task.failure)
    return next(same, found[0])


def error_of(task: Task, step: str) -> StepError | None:
    """Return the error of a step: why its result was left out, if it awaits that."""
    record = task.step(step)
    if record.awaits_result and record.left_out is not None:
        return StepError(RESULT_LEFT_OUT, record.left_out.why)
    return record.error


def _is_retried(record: StepRecord) -> bool:
    """Whether the step is retried after its last attempt failed with an unexpected error."""
    error, since = record.error, record.retry_window.unexpected_since
    return since is not None and error is not None and error.unexpected


def _open_failure(task: Task, step: str) -> Failure | None:
    """The failure of an open task because of this step."""
    how = AWAITS_RESULT if task.step(step).awaits_result else RETRIED
    return _failure(task, how, step, error_of(task, step))


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
    """Replace the order's id by `*`, but only where it is a whole word: an id may be one letter."""
    return re.sub(rf"(?<!\w){re.escape(task_id)}(?!\w)", "*", text)


def normalised(text: str) -> str:
    """Return the text without the parts that differ between failures with the same cause.

    Words with a digit, quoted text and addresses become `*`: they are ids, amounts or times. The
    status code of a response is kept, because 402 and 503 are different causes. The result has at
    most LONGEST_MESSAGE characters, because the end of a message is mostly about the single order.
    """
    kept = _STATUS.sub(lambda found: f"{found[0]}\0", _SPACE.sub(" ", text.replace("\0", " ")))
    plain = _ADDRESS.sub("*", _QUOTED.sub("*", kept))
    plain = _HEX.sub("*", _LETTERED.sub(_star, plain))
    plain = _SEVERAL.sub("*", _DURATION.sub("*", plain))
    return plain.replace("\0", "").strip()[:LONGEST_MESSAGE]


def _star(found: re.Match[str]) -> str:
    """Replace a word by `*`, unless it is a status code to keep (marked by a NUL before it).

    Punctuation at the end of the word belongs to the sentence and is kept.
    """
    if found.string[found.start() - 1 : found.start()] == "\0":
        return found[0]
    word = found[0].rstrip(".:/-~")
    return "*" + found[0][len(word) :]


UNREADABLE = "unreadable"
"""The `how` of a record that cannot be handled. Like RETRIED and AWAITS_RESULT, it is not an end
of a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """An open failure group. Instants are epoch ms."""

    id: str
    """The fingerprint of the failures: `f-` and 8 hexadecimal digits."""
    workflow: str
    """The workflow of the members."""
    step: str
    """The failed step; `none` (NO_STEP) if the tasks failed as a whole."""
    how: str
    """How the members failed: `archived`, `undo_failed`, `undone`, `retried`, `awaits_result` or
    `unreadable`."""
    error_type: str
    """The error type of the members."""
    message: str
    """The error message, normalised."""
    opened_by: str
    """The id of the first task in the group."""
    opened_at: int
    """When the group was opened."""
    since: int
    """When the task `opened_by` failed."""
    agent: str = ""
    """The agent of the step; empty if there is none."""
    version: int = 1
    """Counts the writes of the group; each write is conditional on it."""
    alerting_until: int = 0
    """Until then another process may be sending an alert about the group; 0 if none is."""
    alerted_at: int | None = None
    """When the last alert about the group was sent; None if none was sent yet."""
    alerted_count: int = 0
    """The number of members in the last alert; lowered when the group shrinks."""
    count: int = 1
    """The number of members at `looked_at`."""
    more: bool = False
    """The group had more than `count` members at `looked_at`; not all were counted."""
    last_at: int = 0
    """When the newest member failed."""
    looked_at: int = 0
    """When a supervisor last counted the members."""
    changed_at: int = 0
    """Since when the number of members is the same."""
    look_at: int = 0
    """When a supervisor counts the members next."""
    clear_since: int | None = None
    """Since when the group has no members (a group of undone orders: only few); None while it has
    members."""
    closed_at: int | None = None
    """When the group was closed. A closed group stays stored until its all-clear alert is sent."""
    overflow: bool = False
    """The group collects the failures for which no further group may be opened."""

    @property
    def undone(self) -> bool:
        """Whether the members are orders that were undone. An undone order alone is no problem."""
        return self.how == UNDONE

    @property
    def severity(self) -> GroupSeverity:
        """The severity of the group's alerts."""
        if self.undone:
            return "warning"
        return "critical" if self.how in (UNDO_FAILED, UNREADABLE) else "error"

    def at_next_version(self) -> "Group":
        """Return the group with `version` increased by 1, to be stored on this version."""
        return replace(self, version=self.version + 1)
