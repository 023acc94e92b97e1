"""The state of a task, which follows from its steps, its ending and its plan after a decision."""

from collections.abc import Iterable

from roundsman.definition.plan import Plan
from roundsman.engine.effects import left_to_undo
from roundsman.engine.transitions import live_state
from roundsman.model.record_limits import MOST_ADDED_UNDOS
from roundsman.model.situations import WithoutAgent
from roundsman.model.states import OVER, ProcessState, TaskState
from roundsman.model.task import Closing, StepRecord, Task, Termination

NOT_UNDONE = frozenset({ProcessState.UNDOING, ProcessState.UNDO_ERROR})
"""The states of a step whose undo is in progress or has failed."""


def state_of(plan: Plan | None, task: Task, now: int) -> TaskState:
    """The state of the task at `now` (epoch ms). Its own `state` is that before the decision."""
    if task.closing is not None:
        return _closing_state(plan, task, task.closing, now)
    if task.ending is not None:
        if not _is_unfinished(plan, task, task.ending):
            return _end_state(plan, task, task.ending)
    elif plan is not None and all(task.step(name).done for name in plan.steps):
        return TaskState.COMPLETED
    elif waits_for_its_time(task, now):
        return TaskState.SCHEDULED
    return _live(task, task.steps.values(), now)


def has_started(task: Task) -> bool:
    """Whether any step was ever claimed or decided, or began to wait; parked alone is not that."""
    return any(
        record.started_at is not None
        or isinstance(record.situation, WithoutAgent)
        or record.round > 1
        or record.tried
        or record.process_state is not ProcessState.PENDING
        for record in task.steps.values()
    )


def waits_for_its_time(task: Task, now: int) -> bool:
    """Whether the task is Scheduled and its start time is still ahead.

    A task that has left Scheduled has started, even if the clock of this process is behind.
    """
    return task.state is TaskState.SCHEDULED and task.start_at > now


def goes_on_after_undo(ending: Termination | None, record: StepRecord) -> bool:
    """Whether the step goes on after its undo; False if the whole task is undone."""
    return record.after_undo is not None and not (ending is not None and ending.undo)


def room_for_undos(task: Task) -> int:
    """How many more undos of added steps that are settled may begin.

    Until then such a step is in a row beside the record. The room ends because of failed undos
    and of those in progress.
    """
    undos = (task.step(name).process_state in NOT_UNDONE for name in task.added)
    return MOST_ADDED_UNDOS - sum(undos)


def _closing_state(plan: Plan | None, task: Task, closing: Closing, now: int) -> TaskState:
    """The state of a task that has closing steps. Without its plan, only what is under way goes
    on."""
    records = [task.step(name) for name in closing.steps]
    if plan is None:
        records = [record for record in records if record.under_way]
    if all(record.process_state in OVER for record in records):
        return closing.end
    return _live(task, records, now)


def _live(task: Task, steps: Iterable[StepRecord], now: int) -> TaskState:
    return live_state(((_effective_state(task, one), one.not_before) for one in steps), now)


def _effective_state(task: Task, record: StepRecord) -> ProcessState:
    """The step's state as the task's state is derived from it.

    A step that is undone while its task goes on counts as Processing or Pending, not as Undoing.
    """
    ends_in_undo, state = task.ending is not None and task.ending.undo, record.process_state
    if state is ProcessState.UNDOING and not ends_in_undo:
        return ProcessState.PROCESSING if record.under_way else ProcessState.PENDING
    return state


def _is_unfinished(plan: Plan | None, task: Task, ending: Termination) -> bool:
    """Whether an ending task still has attempts in progress or compensations to make."""
    records = task.steps.values()
    if any(record.under_way for record in records):
        return True
    if plan is None:
        return False
    undoing = [one for one in records if one.process_state is ProcessState.UNDOING]
    if any(goes_on_after_undo(ending, record) for record in undoing):
        return True
    if room_for_undos(task) <= 0 and not undoing:
        return False  # so many undos have failed that no other one begins
    return any(map(ending.undoes, left_to_undo(plan, task.steps)))


def _end_state(plan: Plan | None, task: Task, ending: Termination) -> TaskState:
    """The end state of the task.

    Archived if an undo has failed, or cannot be made because the plan is missing: an operator
    decides.
    """
    states = {record.process_state for record in task.steps.values()}
    if plan is None and (ending.undo or ProcessState.UNDOING in states):
        return TaskState.ARCHIVED
    if ending.undo and ProcessState.UNDO_ERROR in states:
        return TaskState.ARCHIVED
    return ending.how
