"""Sending what a decision owes: alerts first, then statuses, then the record of having sent.

An alert that is owed for a task is settled once the group of its failure is open: the group is
what is alerted (`roundsman.alerts.reporter`).

What is owed is in the record, written with the decision itself. So a send that fails, or a
function that dies in between, is made good by the next one that handles the task: the due entry
of a task that owes something is never more than half a minute ahead.
"""

from dataclasses import dataclass, replace

from roundsman.alerts.reporter import Reporter
from roundsman.engine.due import START_WITHIN, without_owed
from roundsman.engine.new_task import RECEIVED
from roundsman.errors import CallRefused, TryAgain
from roundsman.model.plan import Plan
from roundsman.model.task import Owed, Task
from roundsman.ports import Clock, Outbox, Saved, TaskStore
from roundsman.wire.messages import status_body

CLEARING_RACES = 5


@dataclass(frozen=True, slots=True)
class OwedResult:
    """What became of the things owed, for the log: sent, given up for good, and still owed.

    `untold` are the reasons why a group that was opened is left to the supervisor to tell of.
    """

    sent: tuple[Owed, ...] = ()
    given_up: tuple[Owed, ...] = ()
    still_owed: tuple[Owed, ...] = ()
    untold: tuple[str, ...] = ()


def send_owed(
    task: Task,
    plan: Plan | None,
    *,
    seen: int,
    tasks: TaskStore,
    outbox: Outbox,
    clock: Clock,
    reporter: Reporter | None,
) -> OwedResult:
    """Send what was decided after version `seen`, and what others have owed for too long.

    Without a `reporter`, nothing but the statuses that say an order was received.

    What another handler decided a moment ago it is sending itself. Each thing is sent at least
    once. One that fails for now stays owed and delays nothing else; a status that can never
    arrive is given up, so that a dead reply queue harms nobody.
    """
    sent: list[Owed] = []
    given_up: list[Owed] = []
    still_owed: list[Owed] = []
    untold: list[str] = []
    stands_in: str | None = None
    for owed in sorted(task.owed, key=lambda owed: (owed.kind != "alert", owed.seq)):
        if reporter is None and owed.name != RECEIVED:
            continue
        if owed.seq <= seen and clock() - owed.at < START_WITHIN:
            continue
        try:
            if owed.kind != "alert":
                (sent if _send_status(task, owed, outbox) else given_up).append(owed)
                continue
            reported = reporter.archived(task, plan) if reporter else None
            sent.append(owed)
        except (TryAgain, CallRefused):
            still_owed.append(owed)
            continue
        if reported is not None:
            stands_in = reported.group
            untold += [reported.untold] if reported.untold else []
    _clear(task, frozenset(sent + given_up), stands_in, tasks, clock)
    return OwedResult(tuple(sent), tuple(given_up), tuple(still_owed), tuple(untold))


def _send_status(task: Task, owed: Owed, outbox: Outbox) -> bool:
    return task.reply_to is not None and outbox.send_status(task.reply_to, status_body(task, owed))


def _clear(
    task: Task, settled: frozenset[Owed], stands_in: str | None, tasks: TaskStore, clock: Clock
) -> None:
    """A newer decision carries on what was owed, so the race for the record is run again.

    Losing it to the end costs a repeated message, never a lost one. A task that was taken up by
    another group than its own (there were too many) says so from now on.
    """
    own = task.failure
    for _ in range(CLEARING_RACES):
        left = tuple(owed for owed in task.owed if owed not in settled)
        if left == task.owed:
            return
        if stands_in is not None and task.ended and task.failure == own:
            task = replace(task, failure=stands_in)
        cleared = without_owed(task, clock(), still_owed=left)
        if isinstance(tasks.clear_owed(cleared), Saved):
            return
        newer = tasks.load(task.task_id, clock())
        if newer is None:
            return
        task = newer
