"""Sends the owed items of a task: alerts first, then statuses and rejected messages; then removes
them from its record.

An owed alert is done once the failure group of the task is open: the group is alerted, not the
task (`roundsman.alerts.reporter`). The alert about a late answer belongs to no group and is sent.

Owed items are stored with the decision that causes them. If a send fails, or the function dies
before it, the next function that handles the task sends them: the due entry of a task that owes
something is never more than 30 s ahead.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from roundsman.alerts.reporter import Reporter
from roundsman.definition.plan import Plan
from roundsman.engine.due import START_WITHIN, without_owed
from roundsman.engine.new_task import RECEIVED
from roundsman.errors import CallRefused, Problem, TryAgain
from roundsman.model.states import ProcessState
from roundsman.model.task import (
    CLOSING_FAILED,
    LATE_ANSWER,
    REJECTION,
    TURN_ENDS,
    Owed,
    Task,
)
from roundsman.ports import Clock, LimitStore, Outbox, Saved, TaskStore
from roundsman.wire.alert import Alert, closing_failed_alert, late_answer_alert
from roundsman.wire.commands import signal_without_data
from roundsman.wire.messages import status_body

CLEARING_RACES = 5
"""Attempts to remove the items that are done from the record when other writes come first."""


@dataclass(frozen=True, slots=True)
class OwedResult:
    """What became of a task's owed items, for the log."""

    sent: tuple[Owed, ...] = ()
    given_up: tuple[Owed, ...] = ()
    """Statuses that can never arrive."""
    still_owed: tuple[Owed, ...] = ()
    """Items that could not be sent now."""
    unpublished: tuple[str, ...] = ()
    """Why the alert of a new failure group could not be published; the supervisor publishes it."""


def send_owed(
    task: Task,
    plan: Plan | None,
    *,
    seen: int,
    tasks: TaskStore,
    outbox: Outbox,
    clock: Clock,
    reporter: Reporter | None,
    limits: Callable[[], LimitStore] | None = None,
) -> OwedResult:
    """Send the items owed since version `seen`, and older items that were owed for START_WITHIN.

    Younger items of version `seen` or before are skipped: the handler that decided them is sending
    them. `limits` returns where turns are stored. Without a `reporter`, only `received` statuses
    are sent.

    Each item is sent at least once. An item that cannot be sent now stays owed and does not delay
    the others. A status that can never arrive is given up, so that a deleted reply queue does not
    keep the task open.
    """
    sent: list[Owed] = []
    given_up: list[Owed] = []
    still_owed: list[Owed] = []
    unpublished: list[str] = []
    stands_in: str | None = None
    for owed in sorted(task.owed, key=lambda owed: (owed.kind != "alert", owed.seq)):
        if reporter is None and owed.name != RECEIVED:
            continue
        if owed.seq <= seen and clock() - owed.at < START_WITHIN:
            continue
        try:
            if owed.kind == TURN_ENDS:
                if limits is not None:
                    _end_turn(task, owed, limits(), tasks, outbox)
                    sent.append(owed)
                continue
            if owed.kind == REJECTION:
                _reject_signal(task, owed, outbox)
                sent.append(owed)
                continue
            if owed.kind != "alert":
                (sent if _send_status(task, owed, outbox) else given_up).append(owed)
                continue
            if alert := _own_alert(task, owed):
                outbox.publish(alert)
                sent.append(owed)
                continue
            reported = reporter.failed(task, plan) if reporter else None
            sent.append(owed)
        except (TryAgain, CallRefused):
            still_owed.append(owed)
            continue
        if reported is not None:
            stands_in = reported.group
            unpublished += [reported.unpublished] if reported.unpublished else []
    _clear(task, frozenset(sent + given_up), stands_in, tasks, clock)
    return OwedResult(tuple(sent), tuple(given_up), tuple(still_owed), tuple(unpublished))


def _end_turn(task: Task, owed: Owed, limits: LimitStore, tasks: TaskStore, outbox: Outbox) -> None:
    """Let another order begin, now that the turn of this one has ended."""
    from roundsman.scheduler.order_limits import OrderLimits  # late: few workflows have a limit

    OrderLimits(limits, tasks, outbox).ended(task.task_id, owed.detail, owed.name)


def _reject_signal(task: Task, owed: Owed, outbox: Outbox) -> None:
    """Send a rejected message about a signal that no step can read any more, without its data."""
    signal_id = owed.signal or ""
    problem = (
        f"{owed.name} ({signal_id}) was accepted, and has ended no step: {owed.detail}; its data "
        "is in the history of the order"
    )
    body = signal_without_data(task.task_id, owed.name, signal_id)
    outbox.reject_command(body, [Problem("signal", problem)])


def _own_alert(task: Task, owed: Owed) -> Alert | None:
    """The alert that is about this task alone; None if it is one of a failure group."""
    if owed.name == LATE_ANSWER:
        went_on = task.step(owed.detail).process_state is ProcessState.PROCESSED
        return late_answer_alert(task.task_id, task.workflow, owed.detail, went_on=went_on)
    if owed.name == CLOSING_FAILED:
        return closing_failed_alert(task.task_id, task.workflow, owed.detail, task.state.value)
    return None


def _send_status(task: Task, owed: Owed, outbox: Outbox) -> bool:
    return task.reply_to is not None and outbox.send_status(task.reply_to, status_body(task, owed))


def _clear(
    task: Task, done: frozenset[Owed], stands_in: str | None, tasks: TaskStore, clock: Clock
) -> None:
    """Remove these items from the record.

    A newer decision keeps the owed items, so a lost race is repeated on the newer record. If all
    CLEARING_RACES are lost, the items are sent again; none is lost. If too many groups were open
    and the task is in its workflow's overflow group `stands_in`, that group is stored as
    `task.failure`.
    """
    own = task.failure
    for _ in range(CLEARING_RACES):
        left = tuple(owed for owed in task.owed if owed not in done)
        if left == task.owed:
            return
        if stands_in is not None and task.failure is not None and task.failure == own:
            task = replace(task, failure=stands_in)
        cleared = without_owed(task, clock(), still_owed=left)
        if isinstance(tasks.clear_owed(cleared), Saved):
            return
        newer = tasks.load(task.task_id, clock())
        if newer is None:
            return
        task = newer
