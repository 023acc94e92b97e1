"""A decision being written: the steps as they change, what to send, and the reasons.

`Draft.decision` closes it: the task's state is derived from its steps and checked against the
transition table, what is owed is added, and the due entry is placed, all in one new record.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TypedDict, Unpack

from roundsman.due import START_WITHIN, placed
from roundsman.events import Command, Decision, HistoryRow
from roundsman.plan import Plan
from roundsman.states import DONE, ProcessState, TaskState
from roundsman.task import UNTOUCHED, Ending, Owed, StepError, StepRecord, Task
from roundsman.transitions import (
    Move,
    StepEvent,
    TaskEvent,
    check_task_move,
    live_state,
    step_transition,
)
from roundsman.values import Json

HISTORY_ROWS = 1_000
"""Room for the rows of one decision in the history's range key: `Seq` is version * this + row."""


class StepChanges(TypedDict, total=False):
    """The fields of a step record that a move may set; its state follows from the table."""

    locked_by: str | None
    complete_by: int | None
    failure_count: int
    not_before: int | None
    started_at: int | None
    finished_at: int | None
    result: Json
    error: StepError | None


class Draft:
    """One decision on one task at one instant."""

    def __init__(self, task: Task, now: int) -> None:
        self.task = task
        self.now = now
        self.steps = dict(task.steps)
        self.ending = task.ending
        self._commands: list[Command] = []
        self._reasons: list[str] = []
        self._history: list[HistoryRow] = []

    def step(self, name: str) -> StepRecord:
        """The step's record as it stands now."""
        return self.steps.get(name, UNTOUCHED)

    def waits_for_its_time(self) -> bool:
        """Whether the task is Scheduled still. What one clock has started, no other one stops."""
        return self.task.state is TaskState.SCHEDULED and self.task.start_at > self.now

    def results(self) -> Mapping[str, Json]:
        """What the steps answered so far."""
        return replace(self.task, steps=self.steps).results()

    def move(self, name: str, event: StepEvent, **changes: Unpack[StepChanges]) -> None:
        """Let the event happen to the step. Raises NoTransition where the table forbids it."""
        record = self.step(name)
        transition = step_transition(record.process_state, event)
        if not isinstance(transition, Move):
            raise TypeError(f"{event.value!r} changes nothing about a {record.process_state} step")
        self.steps[name] = replace(record, process_state=transition.to, **changes)

    def stale(self, name: str) -> str:
        """Why a reply that came too late or twice changes nothing."""
        transition = step_transition(self.step(name).process_state, StepEvent.STALE)
        return "" if isinstance(transition, Move) else transition.why

    def requeue(self, name: str, event: StepEvent, **changes: Unpack[StepChanges]) -> None:
        """The step is ready and nobody's, and should be started soon."""
        self.move(name, event, **changes)
        self.steps[name] = replace(
            self.steps[name],
            locked_by=None,
            not_before=None,
            complete_by=self.start_by(self.now),
        )

    def start_by(self, at: int) -> int:
        """When a step that is ready at this instant should have been started, at the latest."""
        return min(at + START_WITHIN, self.task.complete_by)

    def fail(self, name: str, event: StepEvent, error: StepError) -> None:
        """The step failed for good. Time-outs and transient replies count, a refusal does not."""
        counted = int(event is StepEvent.EXHAUSTED)
        self.move(
            name,
            event,
            locked_by=None,
            not_before=None,
            finished_at=self.now,
            failure_count=self.step(name).failure_count + counted,
            error=error,
        )

    def end(self, how: TaskState, why: str, step: str | None = None) -> None:
        """Take no further step forward. The first reason holds."""
        if self.ending is None:
            self.ending = Ending(how, why, step)
            self.note(why)

    def note(self, reason: str) -> None:
        """Add to the decision's reason."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    def command(self, command: Command) -> None:
        """Ask for something to be sent once the decision is stored; asking twice is harmless."""
        if command not in self._commands:
            self._commands.append(command)

    def record(self, kind: str, step: str | None, attempt: int | None, reason: str) -> None:
        """Add a line to the task's history."""
        seq = (self.task.version + 1) * HISTORY_ROWS + len(self._history)
        self._history.append(HistoryRow(seq, self.now, kind, step, attempt, reason))
        self.note(reason)

    def unchanged(self, reason: str) -> Decision:
        """Nothing is stored; the commands are those that a redelivery repeats."""
        return Decision(self.task, tuple(self._commands), reason)

    def decision(self, plan: Plan | None, event: TaskEvent) -> Decision:
        """Close the draft. Raises NoTransition where the outcome is not in the table."""
        changed = self.steps != self.task.steps or self.ending != self.task.ending
        state = self._state(plan)
        reason = "; ".join(self._reasons) or "nothing is due"
        # Time alone moves a task only out of Scheduled; a wait that is over is ended by a step.
        starts = self.task.state is TaskState.SCHEDULED and state is not TaskState.SCHEDULED
        if not changed and not starts:
            return self.unchanged(reason)
        check_task_move(self.task.state, event, state)
        version = self.task.version + 1
        task = replace(
            self.task,
            state=state,
            version=version,
            steps=self.steps,
            ending=self.ending,
            ended_at=self.now if state in (TaskState.COMPLETED, TaskState.ARCHIVED) else None,
            owed=self.task.owed + self._promised(state, version),
        )
        return Decision(placed(task, self.now), tuple(self._commands), reason, tuple(self._history))

    def _state(self, plan: Plan | None) -> TaskState:
        under_way = any(r.process_state is ProcessState.PROCESSING for r in self.steps.values())
        if self.ending and not under_way:
            return self.ending.how
        if plan and all(self.step(name).process_state in DONE for name in plan.steps):
            return TaskState.COMPLETED
        if self.waits_for_its_time():
            return TaskState.SCHEDULED
        return live_state(((r.process_state, r.not_before) for r in self.steps.values()), self.now)

    def _promised(self, state: TaskState, version: int) -> tuple[Owed, ...]:
        """The statuses and alerts that this decision owes, in the order of sending."""

        def owed(kind: str, name: str, detail: str = "") -> Owed:
            return Owed(kind, name, version, self.now, detail)

        why = self.ending.why if self.ending else ""
        found: list[Owed] = []
        if state is TaskState.ARCHIVED:
            found.append(owed("alert", "task_archived", why))
        if self.task.reply_to:
            if not self.task.steps and self.steps:
                found.append(owed("status", "started"))
            if state is TaskState.COMPLETED:
                found.append(owed("status", "completed"))
            if state is TaskState.ARCHIVED:
                found.append(owed("status", "failed", why))
        return tuple(found)
