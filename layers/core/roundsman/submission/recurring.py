"""Submission decides once what becomes of each run of a recurring order, and stores it first."""

from roundsman.errors import TryAgain
from roundsman.model.schedules import (
    OF_WORKFLOW,
    Fate,
    OpenOrder,
    Overlap,
    RecurringRun,
    RunDecision,
    ScheduleRecord,
    decide_run,
    open_order,
)
from roundsman.ports import ScheduleStore, TaskStore
from roundsman.submission.submission import ValidOrder

TRIES = 3
"""How often a decision is made again because another run of the schedule was stored first."""


def decided(
    order: ValidOrder, run: RecurringRun, schedules: ScheduleStore, tasks: TaskStore, now: int
) -> RunDecision:
    """Return what becomes of this run at `now` (epoch ms). It is stored when this returns.

    An order that is stored already is never skipped: its message came again. Raises TryAgain and
    UnreadableRecord.
    """
    targets = (run.schedule, OF_WORKFLOW + order.plan.workflow)
    for _ in range(TRIES):
        pauses = [one for one in schedules.pauses() if one.target in targets]
        record = schedules.read(run.schedule)
        last = _last(record, run, order.order_id, tasks, now)
        found = decide_run(record, run, order.order_id, pauses, last, now)
        if found.record is not record:
            if found.fate is not Fate.BEGINS and tasks.load(order.order_id, now) is not None:
                return RunDecision(Fate.BEGINS, "it is stored already", record)
            if not schedules.write(found.record, now=now):
                continue
        if found.fate is Fate.WAITS:
            schedules.mark(found.record)
        return found
    raise TryAgain(f"other runs of {run.schedule} were decided first")


def _last(
    record: ScheduleRecord, run: RecurringRun, order_id: str, tasks: TaskStore, now: int
) -> OpenOrder:
    """What is known of the order that was begun last, if the decision may depend on it."""
    if run.overlap is Overlap.ALLOW or record.current in ("", order_id):
        return OpenOrder.ENDED
    task = tasks.load(record.current, now)
    return open_order(None if task is None else task.state)
