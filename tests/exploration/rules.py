"""The invariants: what holds in every state, by name.

Those of a record and of what stands for it are the ones of the test kit. Here is what they cannot
see: an undo's place in the order, effects that come after their undo, and, since here it is known
what was sent, that an end which is not told is owed. That every task comes to its end once faults
stop is in `course`.
"""

from collections.abc import Iterator

from roundsman.draft import SKEW, STATUSES
from roundsman.states import DONE, ProcessState, TaskState
from roundsman.task import StepRecord, Task
from roundsman.testing.invariants import Invariant, of_effects, of_record
from roundsman.testing.services import EffectKey
from tests.exploration.canonical import T0, Records, is_bounded
from tests.exploration.state import State

UNDO_IN_ORDER = "an undo begins once what came after it is settled"
FINAL = "no perform lands after its undo"
CANCELLED = "a task that was cancelled with undo has nothing standing that can be undone"


class Rules:
    """Checks states; what depends on the record and on what stands alone is remembered."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._plan = records.plan
        # An instant that is over is kept by so much longer where a request may act after it.
        self._slack = SKEW if any(map(is_bounded, self._plan.steps.values())) else 0
        self._known: dict[tuple[int, frozenset[tuple[str, str]]], str | None] = {}

    def broken(self, state: State) -> str | None:
        """The first invariant that the state breaks."""
        task = self._records.tasks[state.record]
        known = state.record, state.standing
        if known not in self._known:
            self._known[known] = next(self._stored(task, state), None)
        if any(key in state.spent for _, key in state.standing):
            return FINAL
        return self._known[known] or _told(task, state)

    def _stored(self, task: Task, state: State) -> Iterator[str]:
        for broken in of_record(task, T0, slack=self._slack):
            yield broken.invariant.value
        effects = [EffectKey(task.task_id, step, key) for step, key in sorted(state.standing)]
        for broken in of_effects(self._plan, task, effects):
            yield broken.invariant.value
        if not self._starts_in_order(task):
            yield Invariant.IN_ORDER.value
        if not self._undoes_in_order(task):
            yield UNDO_IN_ORDER
        undoes = task.ending is not None and task.ending.undo
        compensated = {s for s, _ in state.standing if self._plan.steps[s].compensation}
        if task.state is TaskState.CANCELLED and undoes and compensated:
            yield CANCELLED

    def _starts_in_order(self, task: Task) -> bool:
        return all(
            task.step(before).process_state in DONE
            for name, record in task.steps.items()
            if record.process_state is ProcessState.PROCESSING
            for before in self._plan.before(name)
        )

    def _undoes_in_order(self, task: Task) -> bool:
        return all(
            self._is_settled(name, task.step(name))
            for undoing, record in task.steps.items()
            if record.process_state is ProcessState.UNDOING and record.under_way
            for name in self._plan.steps
            if undoing in self._plan.before(name)
        )

    def _is_settled(self, name: str, record: StepRecord) -> bool:
        if record.started_at is None or self._plan.steps[name].compensation is None:
            return not record.under_way
        return record.process_state in (ProcessState.UNDONE, ProcessState.UNDO_ERROR)


def _told(task: Task, state: State) -> str | None:
    """An end is owed until it was told."""
    if not task.ended:
        return None
    owed = {(each.kind, each.name) for each in task.owed}
    alerted = ("alert", "task_archived") in owed or "alert" in state.told
    if task.state is TaskState.ARCHIVED and not alerted:
        return Invariant.ALERTED.value
    if ("status", STATUSES[task.state]) not in owed and "status" not in state.told:
        return Invariant.TOLD.value
    return None
