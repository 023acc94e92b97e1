"""The runs of recurring orders: which begins an order, which waits, and which is skipped. Pure.

The name of a schedule is the `orderId` of the event that it sends; the order of a run has the time
of the run behind it, so a run that is delivered twice is one order.

A schedule may say what becomes of a run while the order of an earlier one is still open
(`processing.overlap`). Its record then names that order, and the orders that wait for it, in their
order. An order that waits is stored as Scheduled for QUEUED_FOR, and the supervisor begins it when
the one before has ended. What is decided of a run is stored first, so that it is decided once.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from roundsman.model.instants import DAY, MINUTE, second
from roundsman.model.states import END_STATES, TaskState
from roundsman.model.task import Task

QUEUED_FOR = 366 * DAY
"""ms after which an order that waits begins at the latest."""
MOST_QUEUED = 100
MOST_SKIPPED = 20
"""The number of skipped runs that a record names; the oldest are removed first."""
LOST_AFTER = 15 * MINUTE
"""ms after which an order without a task keeps no other waiting."""
OF_WORKFLOW = "workflow:"
"""What the target of a pause of all schedules of a workflow begins with."""


class Overlap(StrEnum):
    """What becomes of a run while the order of an earlier one is open."""

    ALLOW = "allow"
    SKIP = "skip"
    QUEUE = "queue"


class Fate(StrEnum):
    """What becomes of a run."""

    BEGINS = "begins"
    WAITS = "waits"
    SKIPPED = "skipped"


class OpenOrder(StrEnum):
    """What is known of the order that was begun last."""

    MISSING = "missing"
    """It has no task: it is on its way, or its retention is over."""
    SCHEDULED = "scheduled"
    OPEN = "open"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class RecurringRun:
    """What an order event says of the run that it is."""

    schedule: str
    overlap: Overlap = Overlap.ALLOW
    even_if_paused: bool = False
    """A person asked for this run: no pause skips it, nor that it was skipped before."""


@dataclass(frozen=True, slots=True)
class Pause:
    """A schedule, or all of a workflow, whose runs are skipped until somebody resumes it."""

    target: str
    """The schedule, or OF_WORKFLOW and the workflow."""
    since: int
    by: str
    reason: str

    def __str__(self) -> str:
        """Return what is paused, since when, by whom and why."""
        what = self.target
        if what.startswith(OF_WORKFLOW):
            what = f"every schedule of {what.removeprefix(OF_WORKFLOW)}"
        return f"{what} is paused by {self.by} since {second(self.since)}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SkippedRun:
    """A run that made no order."""

    order_id: str
    """The id that its order would have had."""
    at: int
    reason: str


@dataclass(frozen=True, slots=True)
class ScheduleRecord:
    """What is stored of a schedule. It has a record only if a run was skipped or may have to be."""

    name: str
    current: str = ""
    """The order that was begun last; empty if none was."""
    began_at: int = 0
    from_queue: bool = False
    """Whether it waited, so that the supervisor begins it."""
    queued: tuple[str, ...] = ()
    """The orders that wait, that of the earliest run first: the ids end with the times."""
    skipped: tuple[SkippedRun, ...] = ()
    """The runs that were skipped last, the oldest first."""
    version: int = 0
    """0 if there is no record."""

    def begins(self, order_id: str, now: int) -> "ScheduleRecord":
        """Return the record after this order begins."""
        skipped = tuple(one for one in self.skipped if one.order_id != order_id)
        return replace(
            self, current=order_id, began_at=now, from_queue=False, skipped=skipped
        ).next()

    def next(self) -> "ScheduleRecord":
        """Return the record with the next version."""
        return replace(self, version=self.version + 1)


@dataclass(frozen=True, slots=True)
class RunDecision:
    """What becomes of a run, why, and the record of its schedule to be stored."""

    fate: Fate
    reason: str
    record: ScheduleRecord
    """The same object if nothing is to be stored."""


def decide_run(
    record: ScheduleRecord,
    run: RecurringRun,
    order_id: str,
    pauses: Iterable[Pause],
    last: OpenOrder,
    now: int,
) -> RunDecision:
    """Decide what becomes of the run that has this order.

    `pauses` are those of its schedule and its workflow, and `last` is what is known of
    `record.current`; ENDED if there is none.
    """
    skipped = {one.order_id: one.reason for one in record.skipped}
    if order_id in (record.current, *record.queued):
        return _decided_before(record, order_id)
    if order_id in skipped and not run.even_if_paused:
        return RunDecision(Fate.SKIPPED, skipped[order_id], record)
    overlaps = bool(record.queued) or is_under_way(record, last, now)
    why = _why_skipped(record, run, pauses, overlaps=overlaps)
    if why is not None:
        runs = (*record.skipped, SkippedRun(order_id, now, why))[-MOST_SKIPPED:]
        return RunDecision(Fate.SKIPPED, why, replace(record, skipped=runs).next())
    if run.overlap is Overlap.ALLOW:
        after = record.begins(order_id, now) if order_id in skipped else record
        return RunDecision(Fate.BEGINS, "its runs may overlap", after)
    if not overlaps:
        return RunDecision(Fate.BEGINS, "no run before it is open", record.begins(order_id, now))
    waits = replace(record, queued=tuple(sorted((*record.queued, order_id)))).next()
    return RunDecision(Fate.WAITS, f"it waits for {record.current}", waits)


def _decided_before(record: ScheduleRecord, order_id: str) -> RunDecision:
    if order_id == record.current:
        return RunDecision(Fate.BEGINS, "it was begun before", record)
    return RunDecision(Fate.WAITS, f"it waits for {record.current}", record)


def _why_skipped(
    record: ScheduleRecord, run: RecurringRun, pauses: Iterable[Pause], *, overlaps: bool
) -> str | None:
    pause = None if run.even_if_paused else next(iter(pauses), None)
    if pause is not None:
        return str(pause)
    if overlaps and run.overlap is Overlap.SKIP:
        return f"{record.current} has not ended, and the schedule skips a run then"
    if run.overlap is Overlap.QUEUE and len(record.queued) >= MOST_QUEUED:
        return f"{MOST_QUEUED} runs wait already for {record.current}"
    return None


def open_order(state: TaskState | None) -> OpenOrder:
    """Return what is known of an order by the state of its task; None if it has none."""
    if state is None:
        return OpenOrder.MISSING
    if state in END_STATES:
        return OpenOrder.ENDED
    return OpenOrder.SCHEDULED if state is TaskState.SCHEDULED else OpenOrder.OPEN


def is_queued(task: Task) -> bool:
    """Return whether the task is of an order that waits for the one of an earlier run to end."""
    return task.state is TaskState.SCHEDULED and task.start_at - task.created_at == QUEUED_FOR


def is_under_way(record: ScheduleRecord, last: OpenOrder, now: int) -> bool:
    """Return whether the order that was begun last keeps others waiting."""
    if last is OpenOrder.MISSING:
        return now < record.began_at + LOST_AFTER
    return last is not OpenOrder.ENDED


class QueueStep(StrEnum):
    """What a supervisor has to do for a schedule whose orders wait."""

    NEXT = "next"
    """Store that the first order that waits is begun now."""
    BEGIN = "begin"
    """Ask the scheduler to begin it."""
    WAIT = "wait"
    DONE = "done"
    """Nothing waits any more."""


def next_step(record: ScheduleRecord, last: OpenOrder, now: int) -> QueueStep:
    """Return what is to be done now; `last` is what is known of `record.current`.

    It is stored that an order is begun before the scheduler is asked to, so an order that is still
    Scheduled is begun once more.
    """
    if record.from_queue and last is OpenOrder.SCHEDULED:
        return QueueStep.BEGIN
    if record.queued:
        return QueueStep.WAIT if is_under_way(record, last, now) else QueueStep.NEXT
    waits = record.from_queue and last is OpenOrder.MISSING and is_under_way(record, last, now)
    return QueueStep.WAIT if waits else QueueStep.DONE


def after_next(record: ScheduleRecord, now: int) -> ScheduleRecord:
    """Return the record after the first order that waits is begun."""
    first, *rest = record.queued
    return replace(record.begins(first, now), from_queue=True, queued=tuple(rest))
