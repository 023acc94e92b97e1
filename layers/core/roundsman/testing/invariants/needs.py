"""What an open task needs, and when: the rule that its due entry is held against.

Written from the plan and the record, and not from `roundsman.engine.due`, which is what it judges.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from roundsman.model.instants import SECOND
from roundsman.model.plan import Plan
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import StepRecord, Task

SOON = 30 * SECOND
"""How long what can be started, and what is owed, may stay as it is until somebody looks."""

UNDO_IS_OVER = frozenset({ProcessState.UNDONE, ProcessState.UNDO_ERROR, ProcessState.SKIPPED})


@dataclass(frozen=True, slots=True)
class Need:
    """Something that is to be seen to at `at` (epoch ms) at the latest.

    `ready` says that it is a step that can be claimed now.
    """

    what: str
    at: int
    ready: bool = False


def needs(task: Task, now: int, plan: Plan | None = None) -> Iterator[Need]:
    """All that an open task needs, of a record that is written at `now` (epoch ms).

    What can be claimed at `now` only a plan says. It was looked at, or became ready, no later than
    at this write; each later write may only bring the entry forward, unless it is a look.
    """
    if task.owed:
        yield Need("what is owed", now + SOON)
    if task.state is TaskState.SCHEDULED and task.start_at > now:
        yield Need("its start", task.start_at)
    if task.ending is None:
        yield Need("its complete-by", task.complete_by)
    for name, record in task.steps.items():
        if record.under_way:
            if record.overdue_at is not None:
                yield Need(f"{name} is overdue", record.overdue_at)
        elif _is_to_go_on(task, record) and (record.not_before or 0) > now:
            yield Need(f"{name} waits until then", record.not_before or 0)
    if plan is not None:
        for name in ready(plan.expanded(task.fan_outs), task, now):
            yield Need(f"{name} can be started", now + SOON, ready=True)


def ready(plan: Plan, task: Task, now: int) -> Iterator[str]:
    """The steps of the expanded plan that could be claimed at `now`, to perform or to undo."""
    scheduled = task.state is TaskState.SCHEDULED and task.start_at > now
    for name, step in plan.steps.items():
        record = task.step(name)
        if record.under_way or (record.not_before is not None and record.not_before > now):
            continue
        if record.process_state is ProcessState.PENDING:
            begun = all(task.step(other).process_state in DONE for other in step.after)
            if begun and task.ending is None and not scheduled:
                yield name
        elif record.process_state is ProcessState.UNDOING:
            later = (other for other in plan.steps if name in plan.before(other))
            if all(undo_is_settled(plan, other, task.step(other)) for other in later):
                yield name


def undo_is_settled(plan: Plan, name: str, record: StepRecord) -> bool:
    """Whether nothing of the step is under way or to be undone."""
    if record.started_at is None or plan.steps[name].compensation is None:
        return not record.under_way
    return record.process_state in UNDO_IS_OVER


def _is_to_go_on(task: Task, record: StepRecord) -> bool:
    """An ending task performs nothing again; an undo is made whatever the task is at."""
    if record.process_state is ProcessState.PENDING:
        return task.ending is None
    return record.process_state is ProcessState.UNDOING
