"""A supervisor begins the orders of schedules that wait for the one before to end.

Each pass looks at the schedules that are marked, of which there are mostly none. That an order is
begun is stored before the scheduler is asked to begin it, on condition of what was read. So of two
supervisors one begins it, and one that dies in between is followed by another that asks again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from roundsman.errors import CallRefused, TryAgain, UnreadableRecord
from roundsman.model.events import CommandSource, RunNow
from roundsman.model.json import sha256
from roundsman.model.schedules import (
    OpenOrder,
    QueueStep,
    ScheduleRecord,
    after_next,
    next_step,
    open_order,
)
from roundsman.ports import Clock, Outbox, ScheduleStore, TaskStore
from roundsman.wire.commands import command_of

BY = "supervisor"
"""Who begins an order that waited, in its history."""


@dataclass(slots=True)
class QueueReport:
    """What one visit did, for the log."""

    begun: list[tuple[str, str]] = field(default_factory=list)
    """(schedule, order) of each order that the scheduler was asked to begin."""
    problems: list[tuple[str, str]] = field(default_factory=list)
    """(schedule, why) of each schedule that is left to the next pass."""
    refused: str | None = None
    """The first call that AWS refused; None if there was none."""


@dataclass(frozen=True, slots=True)
class ScheduleQueues:
    """Begins the orders that wait, one at a time for each schedule."""

    schedules: ScheduleStore
    tasks: TaskStore
    outbox: Outbox
    clock: Clock

    def visit(self, marks: Mapping[str, int], stop_at: int) -> QueueReport:
        """Look at each marked schedule, until `stop_at` (epoch ms) at the latest.

        Raises nothing: a fault of one schedule must not delay the others, nor the passes.
        """
        report = QueueReport()
        for schedule, version in marks.items():
            if self.clock() >= stop_at:
                break
            try:
                self._visit(schedule, version, report)
            except (TryAgain, CallRefused, UnreadableRecord) as problem:
                report.problems.append((schedule, str(problem)))
                if isinstance(problem, CallRefused) and report.refused is None:
                    report.refused = str(problem)
        return report

    def _visit(self, schedule: str, version: int, report: QueueReport) -> None:
        record = self.schedules.read(schedule)
        while True:
            now = self.clock()
            step = next_step(record, self._last(record, now), now)
            if step is not QueueStep.NEXT:
                break
            record = after_next(record, now)
            if not self.schedules.write(record, now=now):
                return  # another supervisor, or a new run, was first
        if step is QueueStep.BEGIN:
            source = CommandSource(_command_id(record.current), BY, "the run before it has ended")
            self.outbox.send_commands([(command_of(record.current, RunNow(source)), 0)])
            report.begun.append((schedule, record.current))
        elif step is QueueStep.DONE:
            self.schedules.unmark(schedule, version)

    def _last(self, record: ScheduleRecord, now: int) -> OpenOrder:
        if not record.current:
            return OpenOrder.ENDED
        task = self.tasks.load(record.current, now)
        return open_order(None if task is None else task.state)


def _command_id(order_id: str) -> str:
    """The id of the command, which is the same each time, so that the order is begun once."""
    return f"queue-{sha256(order_id)[:32]}"
