"""Builds one decision: the changed steps, the actions and the reasons.

`DecisionBuilder.build` derives the task's state from its steps, checks it against the transition
table, adds the owed statuses and alerts, and sets the due entry. All of that is one new record.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from roundsman.definition.plan import Plan
from roundsman.engine.due import START_WITHIN, with_due_entry
from roundsman.engine.effects import with_unknown_items, without_compensation
from roundsman.engine.history import SIGNAL_UNREAD, seq
from roundsman.engine.newly_owed import fitting_owed, newly_owed
from roundsman.engine.request_deadlines import asks_probe_only, ends_at, first_sent_at
from roundsman.engine.signal_readers import steps_left, unreadable
from roundsman.engine.step_values import NO_VALUES, StepValues, after_event, step_values
from roundsman.engine.task_state import state_of, waits_for_its_time
from roundsman.engine.transitions import (
    StepEvent,
    TaskEvent,
    Transition,
    check_step_move,
    check_task_move,
    step_transition,
)
from roundsman.model.corrections import Correction, corrections_size
from roundsman.model.events import (
    Action,
    CommandSource,
    Decision,
    Event,
    HistoryRow,
    Inspect,
    Replied,
    SendRequest,
    Signalled,
    Start,
)
from roundsman.model.failure import failure_of, open_step, shortened
from roundsman.model.instants import LONG_OVER, SKEW
from roundsman.model.json import Json, size_in_bytes
from roundsman.model.record_limits import ERRORS_LIMIT, LONGEST_WHY, MOST_SIGNALS, cut
from roundsman.model.situations import AtAgent, AwaitsCallback, End, Ended, Ready, Situation
from roundsman.model.states import END_STATES, ProcessState, SituationName, TaskState
from roundsman.model.task import (
    CLOSING_FAILED,
    PERFORM,
    UNDO,
    UNTOUCHED,
    Effect,
    StepError,
    StepRecord,
    Task,
    Termination,
    UnreadSignal,
)

WAIT_ENDED = "WaitEnded"
"""The error type of a step whose wait for a callback was ended."""


class DecisionBuilder:
    """Collects one decision on one task at one instant.

    `before` is the task as stored. `task`, `steps` and `ending` hold the changes. A step's
    situation changes only here, and only as the transition table says.
    """

    def __init__(self, task: Task, now: int, plan: Plan | None = None) -> None:
        self.before = task
        self._plan = plan
        self.task = task
        self.now = now
        self.version = task.version + 1
        """The version of the record that the decision stores."""
        self._steps = dict(task.steps)
        self.ending = task.ending
        self._credited: Task | None = None
        self.inputs: dict[str, Json] = {}
        """The inputs of the steps that the decision adds."""
        self._actions: list[Action] = []
        self._reasons: list[str] = []
        self._history: list[HistoryRow] = []
        self._alerts: list[tuple[str, str]] = []
        self._rejected: list[tuple[UnreadSignal, str]] = []

    @property
    def steps(self) -> Mapping[str, StepRecord]:
        """The records of the steps with the changes so far; `move` and `change` change them."""
        return self._steps

    def step(self, name: str) -> StepRecord:
        """The step's record with the changes so far."""
        return self._steps.get(name) or self.task.untouched(name)

    def situation(self, name: str) -> Situation:
        """What the step does or waits for, with the changes so far."""
        record = self._steps.get(name, UNTOUCHED)
        return record.situation

    def change(self, name: str, values: StepValues) -> None:
        """Set lasting values of the step, and leave its situation as it is."""
        self._steps[name] = values.of(self.step(name))

    @property
    def part(self) -> tuple[str, ...]:
        """The steps that were taken back from the completed task; empty for any other."""
        return () if self.ending is None else self.ending.part

    def waits_for_its_time(self) -> bool:
        """Whether the task is Scheduled and its start time is still ahead."""
        return waits_for_its_time(self.task, self.now)

    @property
    def changed_task(self) -> Task:
        """The task with the changes so far."""
        return replace(self.task, steps=self.steps, ending=self.ending)

    def stored_bytes(
        self, *, without: str | None = None, corrections: Sequence[Correction] | None = None
    ) -> int:
        """The bytes that count for RESULTS_LIMIT: of results, of unread signals and of corrections.

        The results are those in the records of all steps but `without`, also of those that were
        undone. `corrections` are those that the task is to have; None for those that it has.
        """
        results: dict[str, Json] = {
            name: record.result
            for name, record in self.steps.items()
            if name != without and record.result is not None
        }
        unread = sum(size_in_bytes(one.data) for one in self.task.signals)
        kept = self.task.corrections if corrections is None else corrections
        return size_in_bytes(results) + unread + corrections_size(kept)

    def credit_alone(self) -> None:
        """Note that the task differs from `before` only by the time for which steps were parked.

        That alone is not stored: any later decision can give back the same time.
        """
        self._credited = self.task

    def move(
        self, name: str, event: StepEvent, to: Situation, values: StepValues = NO_VALUES
    ) -> None:
        """Apply the event to the step: it gets the situation `to`, and these lasting values.

        Other lasting values follow from the event (`roundsman.engine.step_values`).

        Raises NoTransition if the table does not allow that, and TypeError if, by the table, the
        event changes nothing.
        """
        before = self.step(name)
        transition = step_transition(before.situation_name, event)
        if not isinstance(transition, Transition):
            raise TypeError(f"{event.value!r} changes nothing about a step {before.situation_name}")
        after = replace(before, **values.values, operation=transition.operation, situation=to)
        check_step_move(before.situation_name, event, after.situation_name)
        self._steps[name] = after_event(before, after, event, transition.counts, self.now)

    def stale(self, name: str) -> str:
        """Why a late or repeated reply changes nothing."""
        transition = step_transition(self.step(name).situation_name, StepEvent.STALE)
        return "" if isinstance(transition, Transition) else transition.why

    def requeue(
        self,
        name: str,
        event: StepEvent,
        values: StepValues = NO_VALUES,
        *,
        within: int = START_WITHIN,
        late_since: int | None = None,
        forget_hold: bool = False,
    ) -> None:
        """Apply the event and make the step ready: it should be claimed `within` ms from now.

        `late_since` is since when its Starts have been late. A step that was parked counts as
        parked until it is claimed, unless the hold of another operation or agent is to be
        forgotten.
        """
        ready = Ready(
            claim_by=self.start_by(self.now, within),
            late_since=late_since,
            parked_since=None if forget_hold else self.step(name).held_since,
        )
        acts_until = step_values(acts_until=self.acts_until(name))
        self.move(name, event, ready, values.and_also(acts_until))

    def ended(self, name: str, how: End) -> Ended:
        """The situation of the step if its operation ends now."""
        record = self.step(name)
        over = record.operation == UNDO or record.last_until == LONG_OVER
        return Ended(how=how, until=None if over else record.last_until)

    def acts_until(self, name: str) -> int | None:
        """When the last request to perform this step loses its right to act (epoch ms).

        All requests that were ever sent count: an attempt that was answered has ended, but a copy
        of its request may still be delivered. None if that time is over by more than SKEW, or if
        the step is being undone.
        """
        record = self.step(name)
        if record.operation == UNDO:
            return None
        found = (record.acts_until, self._ends_at(name, record))
        ahead = [at for at in found if at is not None and at + SKEW > self.now]
        return max(ahead, default=None)

    def _ends_at(self, name: str, record: StepRecord) -> int | None:
        """When the request of the record's last claim loses its right to act (epoch ms).

        None if it never had it, as only the probe was asked.
        """
        plan, until = self._plan and self._plan.for_task(self.task), record.last_until
        if until is None or plan is None or name not in plan.steps:
            return until
        if asks_probe_only(plan.steps[name], record):
            return None
        return ends_at(plan.steps[name], record, until, self.task.ends_by(name))

    def start_by(self, at: int, within: int = START_WITHIN) -> int:
        """The time by which a step that is ready at `at` should be started (epoch ms)."""
        by = at + within
        return by if self.ending else min(by, self.task.perform_by)

    def done_before(self, event: Event) -> bool:
        """Whether the event is a command that was already executed."""
        if isinstance(event, Start | Replied | Inspect):
            return False
        if isinstance(event, Signalled) and self._came_before(event.asked.command_id):
            return True
        return event.asked.command_id in self.task.command_ids

    def _came_before(self, signal: str) -> bool:
        """Whether a signal with this id is unread, or has ended a step, or has left unread."""
        unread = signal in (*self.task.signals_left, *(one.id for one in self.task.signals))
        return unread or any(record.signal == signal for record in self.steps.values())

    def new_round(self, name: str) -> None:
        """Begin a new round of the step: its next effects have new idempotency keys."""
        record = self.step(name)
        self.move(
            name,
            StepEvent.NEW_KEY,
            record.situation,
            step_values(
                round=record.round + 1,
                corrections=len(self.task.corrections),
                reminders=0,
                key_since=self.now,
                key_until=None,
                effect=Effect.NONE,
                left_out=None,
            ),
        )

    def begin_anew(self, name: str) -> None:
        """Reset the step as if it had never started, but keep its round: used keys stay used."""
        record = self.step(name)
        check_step_move(record.situation_name, StepEvent.BEGUN_ANEW, SituationName.NOT_BEGUN)
        if record.started_at is not None or record.tried:
            self._steps[name] = StepRecord(round=record.round + 1)
        elif record.round > 1:
            self._steps[name] = StepRecord(round=record.round)
        else:
            del self._steps[name]

    def remove(self, name: str, event: StepEvent, *, remember_as: str | None = None) -> None:
        """Remove the record of a step, but remember its last round: used keys stay used.

        It is remembered by the name of the step, or by that of its kind.
        """
        record = self._steps.get(name)
        if record is None:
            return
        check_step_move(record.situation_name, event, SituationName.NOT_BEGUN)
        del self._steps[name]
        used = record.started_at is not None or record.tried
        last = record.round if used else record.round - 1
        as_name, before = remember_as or name, self.task.used_rounds
        if last > before.get(as_name, 0):
            self.task = replace(self.task, used_rounds={**before, as_name: last})

    def mark_possibly_performed(self, name: str, since: int, *, claimed: bool) -> None:
        """Record that the waiting step may have been performed since `since` (epoch ms).

        Its effect is unknown then, and an undo of the task includes it. Without `claimed`, a step
        that was never claimed stays so: its condition or its list of items must be evaluated.
        """
        record = self.step(name)
        at = since if claimed else None
        first = first_sent_at(record)
        self.change(
            name,
            step_values(
                started_at=at if record.started_at is None else record.started_at,
                key_since=since if first is None else first,
                outcome_unknown=True,
                effect=None,
            ),
        )

    def end_wait(self, name: str, why: str = "the task ended before the callback came") -> None:
        """Fail the step, because of `why`: its callback has not come.

        A reminder that this decision was to send is not sent: nobody waits for the answer any more.
        """
        if SendRequest(name) in self._actions:
            self._actions.remove(SendRequest(name))
        error = StepError(WAIT_ENDED, why)
        self.fail(name, StepEvent.WAIT_ENDED, error)
        self.change(name, step_values(wait_ended_at=self.now))

    def answered_late(self, name: str) -> None:
        """Record that the callback whose wait was ended has been answered; it happens once."""
        self.change(name, step_values(wait_ended_at=None))

    def stop_waiting(self, name: str, wait: AwaitsCallback) -> None:
        """Record that the step's callback has come, so no outside system can act any more.

        Only copies of its request may still act, until the end of that request.
        """
        until = self.step(name).acts_until
        if until is None or until + SKEW <= self.now:
            until = LONG_OVER
        at_agent = AtAgent(lock=wait.lock, until=until, extra=wait.extra)
        self.move(name, StepEvent.ANSWERED, at_agent)

    def fail(
        self, name: str, event: StepEvent, error: StepError, effect: Effect | None = None
    ) -> None:
        """Mark the step as failed for good.

        EXHAUSTED (a timeout or a transient failure) adds one to the failure count; a refusal does
        not. `effect` is what is proven of the step's effect. Without a proof the outcome of a
        claimed perform is unknown: another try or another copy of its request may have taken
        effect.
        """
        record = self.step(name)
        exhausted = event is StepEvent.EXHAUSTED
        unproven = record.operation == PERFORM and record.started_at is not None
        self.move(
            name,
            event,
            self.ended(name, End.FAILED),
            step_values(
                finished_at=self.now,
                failure_count=record.failure_count + int(exhausted),
                error=error,
                outcome_unknown=record.outcome_unknown or (unproven and effect is None),
                effect=effect,
            ),
        )

    def end(self, ending: Termination) -> bool:
        """Set the task's ending: no further step is performed. Returns False if it has one.

        The first ending is kept.
        """
        if self.ending is not None:
            return False
        self.ending = ending
        self.note(ending.why)
        return True

    def note(self, reason: str) -> None:
        """Add a reason to the decision; a repeated reason is added once."""
        if reason not in self._reasons:
            self._reasons.append(reason)

    def action(self, command: Action) -> None:
        """Add an action to be sent once the decision is stored; a repeated one is added once."""
        if command not in self._actions:
            self._actions.append(command)

    def record(
        self,
        kind: str,
        step: str | None,
        attempt: int | None,
        reason: str,
        asked: CommandSource | None = None,
        sender: str | None = None,
        signal: UnreadSignal | None = None,
    ) -> None:
        """Add a line to the task's history; `asked` is the operator's command that caused it,
        `sender` the principal that answered a callback, and `signal` the signal that it is
        about."""
        at = seq(self.version, len(self._history))
        row = HistoryRow(at, self.now, kind, step, attempt, reason, sender=sender, signal=signal)
        if asked is not None:
            row = replace(row, by=asked.by, command_id=asked.command_id, sender=asked.sender)
        self._history.append(row)
        self.note(reason)

    def alert(self, name: str, detail: str) -> None:
        """Owe an alert about the task that no failure group covers."""
        self._alerts.append((name, detail))

    def unchanged(self, reason: str) -> Decision:
        """A decision that stores nothing; its actions repeat what a redelivery must send again."""
        return Decision(self.before, tuple(self._actions), reason)

    def build(self, plan: Plan | None, event: TaskEvent) -> Decision:
        """Finish the decision. Raises NoTransition if the table does not allow the new state."""
        changed = (
            (self.task is not self.before and self.task is not self._credited)
            or self.steps != self.before.steps
            or self.ending != self.before.ending
        )
        # These events of an ended task are recorded, but do not change its state.
        over = event in (TaskEvent.REPLIED, TaskEvent.ERASE) and self.before.ended
        state = self.before.state if over else state_of(plan, self.changed_task, self.now)
        # If nothing else has changed, a new state is stored in two cases only: the start time of a
        # Scheduled task has come, or a task ends because its plan is missing. (The end of a step's
        # wait is stored with the step's next event.)
        moves = self.before.state is TaskState.SCHEDULED or state in END_STATES
        if not changed and not (moves and state is not self.before.state):
            return self.unchanged(self._reason())
        check_task_move(self.before.state, event, state)
        self._add_uncompensated_to_reason(plan, state)
        self._record_missing_plan(plan, state)
        if not over:
            self._remove_unreadable_signals(plan, state)
        task = replace(
            self.task,
            state=state,
            version=self.version,
            steps=_fitting_steps(self.before, self.steps),
            ending=_fitting_ending(self.ending),
            ended_at=self._ended_at(state),
            # A task that ends in another way, at once, is kept from that end on.
            expires_at=self.task.expires_at if state is self.before.state else None,
        )
        task = replace(task, failure=self._failure(task))
        self._alert_of_closing(task)
        if task.limit is not None and task.ended and not self.before.ended:
            task = replace(task, has_turn=False, turns=task.turns + 1)
        owed = newly_owed(
            self.before,
            task,
            self.now,
            reason="; ".join(self._reasons),
            alerts=self._alerts,
            rejected=self._rejected,
        )
        task = replace(task, owed=fitting_owed((*self.task.owed, *owed)))
        return Decision(
            self._with_due_entry(task),
            tuple(self._actions),
            self._reason(),
            tuple(self._history),
            self.inputs,
        )

    def _with_due_entry(self, task: Task) -> Task:
        task, before = with_due_entry(task, self.now), self.before.expires_at
        ends_anew = before is not None and task.expires_at not in (before, None)
        # The order row has the expiry of the first end: the store writes that of this one.
        return replace(task, order_expires=False) if ends_anew else task

    def _reason(self) -> str:
        return "; ".join(self._reasons) or "nothing is due"

    def _remove_unreadable_signals(self, plan: Plan | None, state: TaskState) -> None:
        """Remove from the record the signals that no step can read in this state of the task.

        Each of them is a row of the history, with its data, and a rejected message that is owed. A
        signal for which only an added step could have waited is not rejected at the completion of
        the task: that none was added is an ordinary course.
        """
        gone = unreadable(plan, self.step, self.task.signals, state)
        if not gone:
            return
        left = (*self.task.signals_left, *(one.id for one in gone))[-MOST_SIGNALS:]
        kept = tuple(one for one in self.task.signals if one not in gone)
        self.task = replace(self.task, signals=kept, signals_left=left)
        why = f"the task is {state}" if state in END_STATES else "no step is left that waits for it"
        for one in gone:
            reason = f"the signal {one.name} ({one.id}) has ended no step: {why}"
            self.record(SIGNAL_UNREAD, None, None, reason, signal=one)
            addable = plan is not None and steps_left(plan, self.step, one.name) is None
            if state is not TaskState.COMPLETED or not addable:
                self._rejected.append((one, why))
        if self.ending is not None and state in END_STATES:
            names = ", ".join(f"{one.name} ({one.id})" for one in gone)
            why = f"{self.ending.why}; signals that have ended no step: {names}"
            self.ending = replace(self.ending, why=why)

    def _failure(self, task: Task) -> str | None:
        """The failure group of the task.

        An ended task stays in its group. An open one stays in the group of the unexpected error
        with which its failure began as long as that step is retried, whatever else happens: one
        failure is one alert. One that awaits a result stays in its group until the result is there.
        """
        before = self.before
        same_end = task.ended and task.state is before.state
        goes_on = not task.ended and not before.ended and task.failed_at == before.failed_at
        step = open_step(before) if goes_on and before.failure is not None else None
        if step is not None and before.step(step).awaits_result:
            goes_on = task.step(step).awaits_result
        if same_end or (goes_on and before.failure is not None):
            return before.failure
        failure = failure_of(task)
        return failure.group if failure else None

    def _alert_of_closing(self, task: Task) -> None:
        """Alert once if the task has ended although closing steps of it have failed."""
        if task.closing is None or not task.ended or self.before.ended:
            return
        failed = [n for n in task.closing.steps if task.step(n).process_state is ProcessState.ERROR]
        if failed:
            self.alert(CLOSING_FAILED, ", ".join(failed))

    def _ended_at(self, state: TaskState) -> int | None:
        if state not in END_STATES:
            return None
        return self.before.ended_at if state is self.before.state else self.now

    def _add_uncompensated_to_reason(self, plan: Plan | None, state: TaskState) -> None:
        """Add to the reason of an undone task, or part, the steps whose effects may stand."""
        ending = self.ending
        if plan is None or ending is None or not ending.undo:
            return
        if state is TaskState.ARCHIVED or state not in END_STATES or state is self.before.state:
            return
        why = ending.why
        stays = without_compensation(plan, self.steps, self.task.used_rounds)
        if stays := [*filter(ending.undoes, stays)]:
            why = f"{why}; without compensation: {', '.join(stays)}"
        if unknown := with_unknown_items(plan, self.steps):
            why = f"{why}; not undone, since their items before the restore are not known: "
            why += ", ".join(unknown)
        self.ending = replace(ending, why=why)

    def _record_missing_plan(self, plan: Plan | None, state: TaskState) -> None:
        """Record that a task is Archived only because its undo cannot be made without its plan."""
        ending = self.ending
        if plan is not None or ending is None or ending.how is TaskState.ARCHIVED:
            return
        if state is TaskState.ARCHIVED:  # it was open before: without its plan it stays archived
            why = f"its undo cannot be made: its plan {self.task.plan[:12]} is not stored"
            self.record("failed", None, None, why)


def _fitting_steps(before: Task, steps: Mapping[str, StepRecord]) -> Mapping[str, StepRecord]:
    """The steps with each new error cut to what fits in the record.

    The failure group stays the same: everybody derives it from the error in the record.
    """
    old = before.steps
    new = {
        name: record.error
        for name, record in steps.items()
        if record.error is not None and (name not in old or record.error != old[name].error)
    }
    if not new:
        return steps
    kept = (one.error for name, one in steps.items() if one.error and name not in new)
    room = ERRORS_LIMIT - sum(error.size for error in kept)
    cut_steps = dict(steps)
    for name, error in new.items():
        whole = error.cut()
        fitting = whole if whole.size <= room else shortened(error, before.task_id)
        room -= fitting.size
        cut_steps[name] = replace(cut_steps[name], error=fitting)
    return cut_steps


def _fitting_ending(ending: Termination | None) -> Termination | None:
    """The ending with its texts cut to what fits in the record."""
    if ending is None:
        return None
    error = ending.error and ending.error.cut()
    return replace(ending, why=cut(ending.why, LONGEST_WHY), error=error)
