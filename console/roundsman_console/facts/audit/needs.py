"""The needs of an open task: why and by when it must be looked at.

The checks compare due entries with these needs. They are computed from the plan and the record and
not with `roundsman.engine.due`, because that is the code under test.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.engine.quorums import is_unblocked
from roundsman.engine.task_state import goes_on_after_undo
from roundsman.model.credit import stands_since
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.situations import WithoutAgent
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task

SOON = 30 * SECOND
"""How long (ms) a ready step, or an owed status or alert, may wait for a look."""

BRIEFLY_LATE = 2 * MINUTE
"""How long (ms) a step or a reminder must have been late to be looked at less often."""

AT_MOST = 5 * MINUTE
"""How long (ms) a step that was late before, or a late reminder, may wait for the next look."""

UNDO_IS_OVER = frozenset({ProcessState.UNDONE, ProcessState.UNDO_ERROR, ProcessState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Need:
    """A reason to look at a task."""

    what: str
    at: int
    """The latest instant for the look, in epoch ms."""
    ready: bool = False
    """Whether the reason is a step that can be claimed now."""


def needs(task: Task, now: int, plan: Plan | None = None, *, slack: int = 0) -> Iterator[Need]:
    """The needs of an open task whose record is written at `now` (epoch ms).

    The clock of the writer may be ahead by `slack` ms.

    The steps that can be claimed are found only with a `plan`. Such a step was looked at, or became
    ready, at this write or before it. A later write may only move the due entry to an earlier
    instant, unless the writer has looked at the task.
    """
    if task.owed:
        yield Need("what is owed", now + SOON)
    if task.state is TaskState.SCHEDULED and task.start_at > now:
        yield Need("its start", task.start_at)
    yield from _of_end(task)
    for name, record in task.steps.items():
        if record.under_way:
            if record.overdue_at is not None:
                yield Need(f"{name} is overdue", record.overdue_at)
            if record.remind_at is not None and task.performs(name):
                at = record.remind_at
                at = at if at > now else now + _patience(now - at + slack)
                yield Need(f"{name} is to be reminded of", at)
        elif isinstance(record.situation, WithoutAgent) and task.ending is None:
            yield Need(f"the wait of {name} ends", record.situation.until)
        elif _is_to_go_on(task, name, record) and (record.not_before or 0) > now:
            yield Need(f"{name} waits until then", record.not_before or 0)
    if plan is not None:
        for name in ready(plan.for_task(task), task, now):
            since = task.step(name).late_since if task.steps else task.start_at
            within = SOON if since is None else _patience(now - since + slack)
            yield Need(f"{name} can be started", now + within, ready=True)


def _patience(late_for: int) -> int:
    """How long what is late may wait for the next look (both ms)."""
    return SOON if late_for < BRIEFLY_LATE else AT_MOST


def ready(plan: Plan, task: Task, now: int) -> Iterator[str]:
    """The steps of the expanded plan that can be claimed at `now`, to perform or to undo."""
    scheduled = task.state is TaskState.SCHEDULED and task.start_at > now
    unsettled = [one for one in plan.steps if not undo_is_settled(plan, one, task.step(one))]
    before_others = plan.before_any(unsettled)
    for name, step in plan.steps.items():
        record = task.step(name)
        if record.under_way or isinstance(record.situation, WithoutAgent):
            continue
        if record.not_before is not None and record.not_before > now:
            continue
        if record.process_state is ProcessState.PENDING:
            if is_unblocked(plan, task.step, step) and task.performs(name) and not scheduled:
                yield name
        elif record.process_state is ProcessState.UNDOING and (
            name not in before_others
            or (name in plan.quorums and goes_on_after_undo(task.ending, record))
        ):
            yield name


def undo_is_settled(plan: Plan, name: str, record: StepRecord) -> bool:
    """Whether the step is not under way and does not have to be undone."""
    if record.started_at is None or plan.steps[name].compensation is None:
        return not record.under_way
    return record.process_state in UNDO_IS_OVER


def _is_to_go_on(task: Task, name: str, record: StepRecord) -> bool:
    """Whether the step will be claimed later: to undo always, to perform unless the task ends."""
    if record.process_state is ProcessState.PENDING:
        return task.performs(name)
    return record.process_state is ProcessState.UNDOING


def _of_end(task: Task) -> Iterator[Need]:
    """The need at the end of the task's time, unless that moves with the time; of a task that is
    ending, only at that of its closing steps."""
    if task.closing is not None and not task.ended:
        yield Need("the end of its closing steps", task.closing.by)
    if task.ending is not None:
        return
    stands = stands_since(task.steps.values()) is not None
    end = task.deadline if stands else task.perform_by
    if end is not None:
        yield Need("its complete-by or deadline", end)
