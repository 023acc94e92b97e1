"""Sample orders of an alert: their state, the effects that may stand, and what was undone."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.engine.effects import from_earlier_rounds, may_have_taken_effect
from roundsman.model.failure import error_of, open_step
from roundsman.model.instants import iso
from roundsman.model.json import Json
from roundsman.model.states import ProcessState
from roundsman.model.task import StepError, StepRecord, Task


@dataclass(frozen=True, slots=True)
class Sample:
    """A task as it was read, with its plan; None if the plan is not stored."""

    task: Task
    plan: Plan | None

    @property
    def step(self) -> str | None:
        """The step or item (`name[3]`) that failed first; None if the task failed as a whole.

        Of an open task, the step that awaits its result, or is retried after an unexpected error.
        """
        if not self.task.ended:
            return open_step(self.task)
        return self.task.ending.step if self.task.ending else None

    @property
    def error(self) -> StepError | None:
        """The error that ended the task; of an open task, that of its step."""
        if not self.task.ended:
            return error_of(self.task, self.step) if self.step else None
        return self.task.ending.error if self.task.ending else None

    @property
    def retry_until(self) -> int | None:
        """Until when the step of an open task is retried at least (epoch ms); None if it is not."""
        if self.task.ended or self.step is None:
            return None
        return self.task.step(self.step).retry_window.until

    @property
    def attempts(self) -> int | None:
        """The number of attempts at that step."""
        record = self.task.step(self.step) if self.step else None
        return _attempts(self._expanded, self.step, record)

    @property
    def may_have_happened(self) -> list[str]:
        """The steps whose effect may have taken place and was not undone."""
        task, plan = self.task, self._expanded
        found = [name for name, record in self._records() if may_have_taken_effect(record)]
        before = plan and from_earlier_rounds(plan, task.steps, task.used_rounds)
        return list(dict.fromkeys((*found, *(before or ()))))

    @property
    def undone(self) -> list[str]:
        """The steps that were undone."""
        return self._in(ProcessState.UNDONE)

    @property
    def undo_failed(self) -> list[str]:
        """The steps whose undo failed."""
        return self._in(ProcessState.UNDO_ERROR)

    def document(self) -> dict[str, Json]:
        """The sample as JSON in an alert; without order contents and results."""
        task, step = self.task, self.step
        record = task.step(step) if step else None
        error = error_of(task, step) if step else None
        found: dict[str, Json] = {
            "orderId": task.task_id,
            "state": task.state.value,
            "failedAt": None if task.failed_at is None else iso(task.failed_at),
            "submittedAt": iso(task.created_at),
            "reason": task.ending.why if task.ending else "",
            "step": step,
            "attempts": self.attempts,
            "lastError": {"type": error.type, "message": error.message} if error else None,
            "steps": {name: task.step(name).process_state.value for name in self._names()},
            "mayHaveHappened": self.may_have_happened,
            "undone": self.undone,
            "undoFailed": self.undo_failed,
        }
        if record is not None and (record.agent or record.tried):
            found["agent"] = record.agent  # null: the plan's first
            found["triedBefore"] = list(record.tried)
        return found

    @property
    def _expanded(self) -> Plan | None:
        return self.plan and self.plan.for_task(self.task)

    def _names(self) -> list[str]:
        plan = self._expanded
        return list(plan.steps) if plan else sorted(self.task.steps)

    def _records(self) -> Iterable[tuple[str, StepRecord]]:
        return sorted(self.task.steps.items())

    def _in(self, state: ProcessState) -> list[str]:
        return [name for name, record in self._records() if record.process_state is state]


def readable(samples: Sequence[Sample]) -> list[Sample]:
    """The samples that can be described; an invalid record must not prevent an alert."""
    found: list[Sample] = []
    for sample in samples:
        try:
            sample.document()
        except Exception:  # noqa: BLE001, S112  # an invalid record
            continue
        found.append(sample)
    return found


def over(samples: Sequence[Sample]) -> dict[str, Mapping[str, int]]:
    """In how many samples each step's effect may stand, was undone or could not be undone."""
    return {
        "mayHaveHappened": _counted(sample.may_have_happened for sample in samples),
        "undone": _counted(sample.undone for sample in samples),
        "undoFailed": _counted(sample.undo_failed for sample in samples),
    }


def _counted(found: Iterable[Sequence[str]]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for names in found:
        for name in names:
            counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items()))


def _attempts(plan: Plan | None, step: str | None, record: StepRecord | None) -> int | None:
    """The number of attempts; `failure_count` does not include a permanent failure."""
    if plan is None or step is None or record is None or record.started_at is None:
        return record.failure_count if record else None
    most = plan.steps[step].attempts
    if most is None:  # the step was retried for a time, and an exhausted one keeps its end
        refused = record.process_state is ProcessState.ERROR and record.retry_window.until is None
    else:
        refused = record.failure_count < most
    return record.failure_count + 1 if refused else record.failure_count
