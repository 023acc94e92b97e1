"""What a decision owes: statuses for the application, alerts for people, and rejected messages.

What is owed is stored with the decision, and sent after that.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from roundsman.engine.task_state import has_started
from roundsman.model.record_limits import LONGEST_DETAIL, MOST_OWED, cut
from roundsman.model.states import END_STATES, TaskState
from roundsman.model.task import REJECTION, TURN_ENDS, Owed, Task, UnreadSignal

STATUSES = {
    TaskState.COMPLETED: "completed",
    TaskState.ARCHIVED: "failed",
    TaskState.UNDONE: "undone",
    TaskState.CANCELLED: "cancelled",
}
"""The status that an application is sent for each end state."""

PARTLY_UNDONE = "partly_undone"
"""The status of a task that is Completed again, after a part of it was taken back."""


def end_status(task: Task) -> str:
    """The status that an application is sent for the end of the task, which has ended."""
    partly = task.state is TaskState.COMPLETED and task.ending is not None and task.ending.part
    return PARTLY_UNDONE if partly else STATUSES[task.state]


def newly_owed(
    before: Task,
    task: Task,
    now: int,
    *,
    reason: str,
    alerts: Iterable[tuple[str, str]],
    rejected: Iterable[tuple[UnreadSignal, str]],
) -> Iterator[Owed]:
    """Yield the statuses, alerts and rejected messages that a decision owes, made at `now`.

    `before` and `task` are before and after it, `reason` is why. `alerts` are the alerts that no
    failure group covers, each with its detail, and `rejected` the signals that left the record,
    each with the reason.

    The status of an end, and its alert, are owed once each time the task enters an end state.
    That of an unexpected error, or of a result that is awaited, is owed when the open task
    joins its group.
    """
    ends = task.state if task.state is not before.state else None

    def owed(kind: str, name: str, detail: str = "") -> Owed:
        return Owed(kind, name, task.version, now, cut(detail, LONGEST_DETAIL))

    why = task.ending.why if task.ending else task.ended_early or ""
    if ends is TaskState.ARCHIVED:
        yield owed("alert", "task_archived", why)
    joins = task.failure is not None and task.failure != before.failure
    if joins and not task.ended:
        awaited = any(record.awaits_result for record in task.steps.values())
        name = "result_awaited" if awaited else "unexpected_error"
        yield owed("alert", name, reason)
    yield from (owed("alert", name, detail) for name, detail in alerts)
    yield from (replace(owed(REJECTION, one.name, why), signal=one.id) for one, why in rejected)
    if task.limit is not None and task.ended and not before.ended:
        yield replace(owed(TURN_ENDS, before.turn), detail=task.limit)
    if task.reply_to:
        if has_started(task) and not has_started(before):
            yield owed("status", "started")
        if ends in END_STATES:
            yield owed("status", end_status(task), why)


def fitting_owed(owed: tuple[Owed, ...]) -> tuple[Owed, ...]:
    """What is owed, without the oldest statuses and alerts if there are too many of them.

    Rejected messages are kept: there are at most as many as signals that a record holds. So are the
    ends of turns: an order begins again only when a person asks for it.
    """
    others = [one for one in owed if one.kind not in (REJECTION, TURN_ENDS)]
    dropped = others[:-MOST_OWED]
    return tuple(one for one in owed if one not in dropped)
