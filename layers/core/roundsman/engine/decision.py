"""A decision being written: the steps as they change, what to send, and the reasons.

`DecisionBuilder.build` derives the task's state from its steps, checks it against the transition
table, adds what is owed, and places the due entry: all in one new record.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypedDict, Unpack

from roundsman.engine.due import START_WITHIN, placed
from roundsman.engine.effects import left_to_undo, without_compensation
from roundsman.engine.history import seq
from roundsman.engine.time_limits import ends_at
from roundsman.engine.transitions import (
    Move,
    StepEvent,
    TaskEvent,
    check_task_move,
    live_state,
    step_transition,
)
from roundsman.model.events import (
    Action,
    Agents,
    AgentView,
    Asked,
    Decision,
    Event,
    HistoryRow,
    Inspect,
    Replied,
    Start,
)
from roundsman.model.failure import failure_of
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.plan import Plan, StepPlan
from roundsman.model.states import DONE, END_STATES, ProcessState, TaskState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    UNTOUCHED,
    AfterUndo,
    Effect,
    Owed,
    StepError,
    StepRecord,
    Task,
    Termination,
    answers_of,
    operation_of,
)

SKEW = 5 * SECOND
"""How far the clocks of functions may differ: a request may act this much past its complete-by."""

STATUSES = {
    TaskState.COMPLETED: "completed",
    TaskState.ARCHIVED: "failed",
    TaskState.UNDONE: "undone",
    TaskState.CANCELLED: "cancelled",
}
"""What an application is told at each end."""


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
    agent: str | None
    acts_until: int | None
    outcome_unknown: bool
    held_since: int | None
    heartbeat_by: int | None
    heard_at: int | None
    waiting: bool
    uncounted_timeouts: int
    breaker_rejections: int
    tried: tuple[str, ...]
    after_undo: AfterUndo | None
    effect: Effect | None
    extra: int
    granted: int


STILL_HELD = frozenset(
    {
        StepEvent.HELD,
        StepEvent.UNCLAIMED,
        StepEvent.RETRY_DUE,
        StepEvent.RESOLVED_NOT_DONE,
    }
)
"""What may happen to a held step without its being claimed or settled: it has waited since then."""

NOT_COUNTED = frozenset(
    {
        StepEvent.HELD,
        StepEvent.UNCLAIMED,
        StepEvent.RETRY_DUE,
        StepEvent.CLAIMED,
        StepEvent.UNREAD,
        StepEvent.EXTENDED,
    }
)
"""What leaves the row of a step's calls in vain as it is."""

SAME_ATTEMPT = frozenset({StepEvent.PROGRESSED, StepEvent.WAITS_FOR_CALLBACK, StepEvent.EXTENDED})
"""Whatever else happens to a step, what was heard of its attempt is over with the attempt."""


class DecisionBuilder:
    """One decision on one task at one instant."""

    def __init__(self, task: Task, now: int, plan: Plan | None = None) -> None:
        self.before = task
        self._plan = plan
        self.task = task
        self.now = now
        self.steps = dict(task.steps)
        self.ending = task.ending
        self._actions: list[Action] = []
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

    def answers(self) -> Mapping[str, Json]:
        """The same by record, each item of a fan-out by itself."""
        return answers_of(self.steps)  # no copy of the task: every success asks for it

    def move(self, name: str, event: StepEvent, **changes: Unpack[StepChanges]) -> None:
        """Let the event happen to the step. Raises NoTransition where the table forbids it."""
        record = self.step(name)
        transition = step_transition(record.process_state, event)
        if not isinstance(transition, Move):
            raise TypeError(f"{event.value!r} changes nothing about a {record.process_state} step")
        undone_on = transition.to is record.process_state is ProcessState.UNDOING
        if undone_on and record.after_undo is AfterUndo.SKIPPED:
            changes.pop("error", None)  # the record says why the item is left out
        if event not in STILL_HELD:
            changes.setdefault("held_since", None)
        if event not in NOT_COUNTED:
            changes.setdefault("breaker_rejections", 0)
        if event not in SAME_ATTEMPT:
            changes.setdefault("heartbeat_by", None)
            changes.setdefault("heard_at", None)
            changes.setdefault("waiting", False)
        self.steps[name] = replace(record, process_state=transition.to, **changes)

    def stale(self, name: str) -> str:
        """Why a reply that came too late or twice changes nothing."""
        transition = step_transition(self.step(name).process_state, StepEvent.STALE)
        return "" if isinstance(transition, Move) else transition.why

    def requeue(self, name: str, event: StepEvent, **changes: Unpack[StepChanges]) -> None:
        """The step is ready and nobody's, and should be started soon."""
        acts_until = self.acts_until(name)
        self.move(name, event, **changes)
        self.steps[name] = replace(
            self.steps[name],
            locked_by=None,
            not_before=None,
            complete_by=self.start_by(self.now),
            acts_until=acts_until,
        )

    def acts_until(self, name: str) -> int | None:
        """The end of the right to act of every request to perform this step that was ever sent.

        An attempt that has answered has ended, but a copy of its request may still be on its
        way. None where that is over, clocks that differ included, or where the step undoes.
        """
        record = self.step(name)
        if operation_of(record) == UNDO:
            return None
        claimed = record.process_state is not ProcessState.PENDING
        found = (record.acts_until, self._ends_at(name, record) if claimed else None)
        ahead = [at for at in found if at is not None and at + SKEW > self.now]
        return max(ahead, default=None)

    def _ends_at(self, name: str, record: StepRecord) -> int | None:
        """When the right to act of the request of the record's last claim ends."""
        plan = self._plan and self._plan.expanded(self.task.fan_outs)
        if record.complete_by is None or plan is None or name not in plan.steps:
            return record.complete_by
        return ends_at(plan.steps[name], record, record.complete_by, self.task.complete_by)

    def start_by(self, at: int) -> int:
        """When a step that is ready at this instant should have been started, at the latest."""
        by = at + START_WITHIN
        return by if self.ending else min(by, self.task.complete_by)

    def done_before(self, event: Event) -> bool:
        """Whether the event is a command that was done already."""
        if isinstance(event, Start | Replied | Inspect):
            return False
        return event.asked.command_id in self.task.command_ids

    def new_round(self, name: str) -> None:
        """From here on the step's effects have keys of their own."""
        record = self.steps[name]
        self.steps[name] = replace(record, round=record.round + 1)

    def begin_anew(self, name: str) -> None:
        """As if the step had never been touched, but for the keys that are spent."""
        record = self.step(name)
        step_transition(record.process_state, StepEvent.BEGUN_ANEW)
        if record.started_at is not None or record.tried:
            self.steps[name] = StepRecord(round=record.round + 1)
        elif record.round > 1:
            self.steps[name] = StepRecord(round=record.round)
        else:
            del self.steps[name]

    def stop_waiting(self, name: str) -> None:
        """The callback that the step waits for has come: nothing is awaited from outside any more.

        What may still act are copies of its request, until that request's own end.
        """
        record = self.step(name)
        self.steps[name] = replace(record, complete_by=record.acts_until, waiting=False)

    def fail(
        self, name: str, event: StepEvent, error: StepError, effect: Effect | None = None
    ) -> None:
        """The step failed for good. Time-outs and transient replies count, a refusal does not.

        `effect` is what is proven of its effect. Without a proof the outcome is unknown: another
        try of the attempt, or another copy of its request, may have been taken.
        """
        record = self.step(name)
        exhausted = event is StepEvent.EXHAUSTED
        unproven = operation_of(record) == PERFORM and record.started_at is not None
        self.move(
            name,
            event,
            locked_by=None,
            not_before=None,
            finished_at=self.now,
            failure_count=record.failure_count + int(exhausted),
            error=error,
            outcome_unknown=record.outcome_unknown or (unproven and effect is None),
            effect=effect,
            extra=0,
            granted=0,
        )

    def end(self, ending: Termination) -> bool:
        """Take no further step forward. The first ending holds; whether this is it."""
        if self.ending is not None:
            return False
        self.ending = ending
        self.note(ending.why)
        return True

    def note(self, reason: str) -> None:
        """Add to the decision's reason."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    def action(self, command: Action) -> None:
        """Ask for something to be sent once the decision is stored; asking twice is harmless."""
        if command not in self._actions:
            self._actions.append(command)

    def record(
        self,
        kind: str,
        step: str | None,
        attempt: int | None,
        reason: str,
        asked: Asked | None = None,
    ) -> None:
        """Add a line to the task's history; `asked` where a person's command is the cause."""
        by, command_id = (asked.by, asked.command_id) if asked else (None, None)
        at = seq(self.before.version + 1, len(self._history))
        row = HistoryRow(at, self.now, kind, step, attempt, reason, by, command_id)
        self._history.append(row)
        self.note(reason)

    def unchanged(self, reason: str) -> Decision:
        """Nothing is stored; the commands are those that a redelivery repeats."""
        return Decision(self.before, tuple(self._actions), reason)

    def build(self, plan: Plan | None, event: TaskEvent) -> Decision:
        """Close the draft. Raises NoTransition where the outcome is not in the table."""
        changed = (
            self.task is not self.before
            or self.steps != self.before.steps
            or self.ending != self.before.ending
        )
        # What is heard after the end is noted, and ends nothing anew.
        over = event is TaskEvent.REPLIED and self.before.ended
        state = self.before.state if over else self._state(plan)
        reason = "; ".join(self._reasons) or "nothing is due"
        # Time alone moves a task only out of Scheduled (a wait that is over is ended by a step),
        # and a missing plan may end one whose steps nobody can undo.
        moves = self.before.state is TaskState.SCHEDULED or state in END_STATES
        if not changed and not (moves and state is not self.before.state):
            return self.unchanged(reason)
        check_task_move(self.before.state, event, state)
        self._say_what_stays(plan, state)
        version = self.before.version + 1
        task = replace(
            self.task,
            state=state,
            version=version,
            steps=self.steps,
            ending=self.ending,
            ended_at=self._ended_at(state),
            owed=self.task.owed + self._promised(state, version),
        )
        task = replace(task, failure=self._failure(task))
        return Decision(placed(task, self.now), tuple(self._actions), reason, tuple(self._history))

    def _failure(self, task: Task) -> str | None:
        """The group of the failure that the task ends in; what comes after its end changes none."""
        if task.state is self.before.state:
            return self.before.failure
        failure = failure_of(task)
        return failure.group if failure else None

    def _ended_at(self, state: TaskState) -> int | None:
        if state not in END_STATES:
            return None
        return self.before.ended_at if state is self.before.state else self.now

    def _state(self, plan: Plan | None) -> TaskState:
        if self.ending and not self._unfinished(plan):
            return self._end_state(plan, self.ending)
        if not self.ending and plan and self._all_done(plan):
            return TaskState.COMPLETED
        if not self.ending and self.waits_for_its_time():
            return TaskState.SCHEDULED
        steps = ((self._shown(record), record.not_before) for record in self.steps.values())
        return live_state(steps, self.now)

    def _shown(self, record: StepRecord) -> ProcessState:
        """The step's state as the task's follows from it: one that is undone to go on, goes on."""
        undone = self.ending is not None and self.ending.undo
        if record.process_state is ProcessState.UNDOING and not undone:
            return ProcessState.PROCESSING if record.under_way else ProcessState.PENDING
        return record.process_state

    def goes_on_after_undo(self, record: StepRecord) -> bool:
        """Whether the step's undo is not for good; in a task that is undone, each is."""
        return record.after_undo is not None and not (self.ending and self.ending.undo)

    def _undoing(self) -> list[StepRecord]:
        return [r for r in self.steps.values() if r.process_state is ProcessState.UNDOING]

    def _all_done(self, plan: Plan) -> bool:
        return all(self.step(name).process_state in DONE for name in plan.steps)

    def _unfinished(self, plan: Plan | None) -> bool:
        """Whether an ending task still waits for answers, or has compensations to make."""
        if any(record.under_way for record in self.steps.values()):
            return True
        if plan and any(self.goes_on_after_undo(record) for record in self._undoing()):
            return True
        undo = self.ending is not None and self.ending.undo
        return undo and plan is not None and bool(left_to_undo(plan, self.steps))

    def _end_state(self, plan: Plan | None, ending: Termination) -> TaskState:
        """An undo that failed, or that nobody knows how to make, is a person's matter."""
        states = {record.process_state for record in self.steps.values()}
        if plan is None and (ending.undo or ProcessState.UNDOING in states):
            return TaskState.ARCHIVED
        if ending.undo and ProcessState.UNDO_ERROR in states:
            return TaskState.ARCHIVED
        return ending.how

    def _say_what_stays(self, plan: Plan | None, state: TaskState) -> None:
        """An undone task says which effects nothing could undo."""
        if plan is None or self.ending is None or not self.ending.undo:
            return
        stays = without_compensation(plan, self.steps)
        ends = state in (TaskState.UNDONE, TaskState.CANCELLED) and state is not self.before.state
        if ends and stays:
            why = f"{self.ending.why}; without compensation: {', '.join(stays)}"
            self.ending = replace(self.ending, why=why)

    def _promised(self, state: TaskState, version: int) -> tuple[Owed, ...]:
        """The statuses and alerts that this decision owes, in the order of sending.

        An end is told once each time the task comes to it.
        """
        ends = state if state is not self.before.state else None

        def owed(kind: str, name: str, detail: str = "") -> Owed:
            return Owed(kind, name, version, self.now, detail)

        why = self.ending.why if self.ending else ""
        found: list[Owed] = []
        if ends is TaskState.ARCHIVED:
            found.append(owed("alert", "task_archived", why))
        if self.task.reply_to:
            if _begun(self.steps) and not _begun(self.before.steps):
                found.append(owed("status", "started"))
            if ends in STATUSES:
                found.append(owed("status", STATUSES[ends], why))
        return tuple(found)


def _begun(steps: Mapping[str, StepRecord]) -> bool:
    """Whether any step was ever claimed or decided; a first step that is only held was not."""
    return any(
        record.started_at is not None
        or record.round > 1
        or record.tried
        or record.process_state is not ProcessState.PENDING
        for record in steps.values()
    )


@dataclass(frozen=True, slots=True)
class DecisionContext:
    """What the parts of the machine pass on to one another. Only `draft` changes.

    `stored_plan` is the plan that the task names.
    """

    stored_plan: Plan
    decision: DecisionBuilder
    order: Json
    agents: Agents
    jitter: float

    @property
    def plan(self) -> Plan:
        """The plan with one step for each item of a fan-out, as far as the items are known."""
        return self.stored_plan.expanded(self.decision.task.fan_outs)

    @property
    def now(self) -> int:
        """The decision's instant, epoch ms."""
        return self.decision.now

    def agent(self, step: StepPlan) -> AgentView:
        """What is known of the queue that the step's requests go to."""
        return self.view(self.decision.step(step.name).agent or step.agent) or AgentView()

    def view(self, agent: str) -> AgentView | None:
        """What is known of the agent's queue for this task's priority; None where nothing is."""
        return self.agents.get(f"{agent}/{self.decision.task.priority}")

    def is_held(self, agent: str) -> bool:
        """Whether the agent takes no work now."""
        view = self.view(agent)
        return view is not None and view.held_until is not None and view.held_until > self.now

    def all_done(self) -> bool:
        """Whether every step is Processed or Skipped."""
        return all(self.decision.step(name).process_state in DONE for name in self.plan.steps)
