"""Sending what a decision owes: alerts first, then statuses, then the record of having sent.

What is owed is in the record, written with the decision itself. So a send that fails, or a
function that dies in between, is made good by the next one that handles the task: the due entry
of a task that owes something is never more than half a minute ahead.
"""

from dataclasses import dataclass

from roundsman.alerts import task_alert
from roundsman.due import START_WITHIN, without_owed
from roundsman.errors import CallRefused, TryAgain
from roundsman.messages import status_body
from roundsman.plan import Plan
from roundsman.ports import Clock, Outbox, Saved, TaskStore
from roundsman.task import Owed, Task

CLEARING_RACES = 5


@dataclass(frozen=True, slots=True)
class Delivered:
    """What became of the things owed, for the log: sent, given up for good, and still owed."""

    sent: tuple[Owed, ...] = ()
    given_up: tuple[Owed, ...] = ()
    still_owed: tuple[Owed, ...] = ()


def deliver_owed(
    task: Task,
    plan: Plan | None,
    *,
    seen: int,
    tasks: TaskStore,
    outbox: Outbox,
    clock: Clock,
    only: str | None = None,
) -> Delivered:
    """Send what was decided after version `seen`, and what others have owed for too long.

    With `only`, nothing but what has this name.

    What another handler decided a moment ago it is sending itself. Each thing is sent at least
    once. One that fails for now stays owed and delays nothing else; a status that can never
    arrive is given up, so that a dead reply queue harms nobody.
    """
    sent: list[Owed] = []
    given_up: list[Owed] = []
    still_owed: list[Owed] = []
    for owed in sorted(task.owed, key=lambda owed: (owed.kind != "alert", owed.seq)):
        if only is not None and owed.name != only:
            continue
        if owed.seq <= seen and clock() - owed.at < START_WITHIN:
            continue
        try:
            (sent if _send(task, plan, owed, outbox) else given_up).append(owed)
        except (TryAgain, CallRefused):
            still_owed.append(owed)
    _clear(task, frozenset(sent + given_up), tasks, clock)
    return Delivered(tuple(sent), tuple(given_up), tuple(still_owed))


def _send(task: Task, plan: Plan | None, owed: Owed, outbox: Outbox) -> bool:
    if owed.kind == "alert":
        outbox.publish(task_alert(task, plan, owed))
        return True
    return task.reply_to is not None and outbox.send_status(task.reply_to, status_body(task, owed))


def _clear(task: Task, settled: frozenset[Owed], tasks: TaskStore, clock: Clock) -> None:
    """A newer decision carries on what was owed, so the race for the record is run again.

    Losing it to the end costs a repeated message, never a lost one.
    """
    for _ in range(CLEARING_RACES):
        left = tuple(owed for owed in task.owed if owed not in settled)
        if left == task.owed:
            return
        cleared = without_owed(task, clock(), still_owed=left)
        if isinstance(tasks.clear_owed(cleared), Saved):
            return
        newer = tasks.load(task.task_id, clock())
        if newer is None:
            return
        task = newer
