"""The invariants: what holds in every state, by name.

Those of a record and of what stands for it are the ones of the test kit. Here is what they cannot
see: an undo's place in the order, effects that come after their undo, and, since here it is known
what was sent, that an end which is not reported is owed. That every task comes to its end once
faults stop is in `course`.
"""

from collections.abc import Iterator

from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, start_interval
from roundsman.engine.newly_owed import end_status
from roundsman.model.instants import SKEW
from roundsman.model.situations import WithoutAgent
from roundsman.model.states import DONE, OVER, ProcessState, TaskState
from roundsman.model.task import AfterUndo, Effect, StepRecord, Task
from roundsman_console.facts.audit.checks import CHECKS
from roundsman_console.facts.audit.stored_order import StandingEffect, StoredOrder
from roundsman_testing.invariants.rules import (
    Invariant,
    found_by,
    is_enough,
    of_effects,
    of_record,
)
from tests.exploration.canonical import T0, Records
from tests.exploration.state import State
from tests.support.steps import stored_step

UNDO_IN_ORDER = "an undo begins once what came after it is finished"
FINAL = "no perform lands after its undo"
ONE_STANDS = "at most one effect of a step stands, whichever agent or round it is of"
KNOWN = "no effect stands of a step of which it is known that nothing happened"
LOOKED_AT = (
    "what is ready or under way is looked at within 30 s of when it could go on, and what nobody "
    "claims once it is late for as long again, or for 5 minutes"
)
GIVEN_ONCE = "a lock is given once"
CANCELLED = "a task that was cancelled with undo has nothing standing that can be undone"


class Rules:
    """Checks states; what depends on the record and on what stands alone is remembered."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._plan = records.plan
        # An instant that is over is kept by so much longer where a request may act after it.
        kept_by = [SKEW + records.patience(name) for name in records.bounded]
        kept_by.append(records.late_floor)
        self._slack = max(kept_by, default=0)
        self._known: dict[tuple[int, frozenset[tuple[str, str]]], str | None] = {}

    def broken(self, state: State) -> str | None:
        """The first invariant that the state breaks."""
        task = self._records.tasks[state.record]
        known = state.record, state.standing
        if known not in self._known:
            self._known[known] = next(self._stored(task, state), None)
        if any(key in state.spent for _, key in state.standing):
            return FINAL
        return self._known[known] or _unreported_end(task, state)

    def _stored(self, task: Task, state: State) -> Iterator[str]:
        for broken in of_record(task, T0, slack=self._slack):
            yield broken.invariant.value
        order = StoredOrder(task=task, at=T0, plan=self._plan)
        for broken in found_by(CHECKS[Invariant.TAKEN_BACK], Invariant.TAKEN_BACK, order):
            yield broken.invariant.value
        effects = [StandingEffect(step, key) for step, key in sorted(state.standing)]
        for broken in of_effects(self._plan, task, effects):
            yield broken.invariant.value
        plan = self._plan.for_task(task)
        if not _starts_in_order(plan, task):
            yield Invariant.IN_ORDER.value
        if not _undoes_in_order(plan, task):
            yield UNDO_IN_ORDER
        undoes = task.ending is not None and task.ending.undo
        defined = {name: self._plan.defined(name) for name, _ in state.standing}
        compensated = {name for name, step in defined.items() if step and step.compensation}
        if task.state is TaskState.CANCELLED and undoes and compensated:
            yield CANCELLED
        if not _at_most_one_stands(state):
            yield ONE_STANDS
        if self._records.outcomes and any(
            is_called_without_effect(task.step(step)) for step, _ in state.standing
        ):
            yield KNOWN
        if task.lane.startswith(Lane.OPEN) and not task.ended:
            by = min(looked_at_by(plan, task, T0), default=task.due_at)
            if task.due_at > by:
                yield LOOKED_AT


def _starts_in_order(plan: Plan, task: Task) -> bool:
    return all(
        _may_follow(plan, task, name, before)
        for name, record in task.steps.items()
        if record.process_state is ProcessState.PROCESSING
        or (isinstance(record.situation, WithoutAgent) and task.ending is None)
        for before in plan.before(name)
    )


def _may_follow(plan: Plan, task: Task, name: str, before: str) -> bool:
    """Whether a step may begin as far as this one is concerned, which it comes after."""
    if task.closes(name):
        return task.step(before).process_state in OVER
    return _is_done(task.step(before)) or is_enough(plan, task, before)


def _is_done(record: StepRecord) -> bool:
    """Whether a step that comes after it may begin: each of these has an agent, which reads all."""
    return record.process_state in DONE and record.left_out is None


def _undoes_in_order(plan: Plan, task: Task) -> bool:
    return all(
        _is_settled(plan, name, task.step(name))
        for undoing, record in task.steps.items()
        if record.process_state is ProcessState.UNDOING and record.under_way
        # What comes after one of many that is left out has begun without it.
        if not (undoing in plan.quorums and record.after_undo is AfterUndo.SKIPPED)
        for name in plan.steps
        if undoing in plan.before(name)
    )


def _is_settled(plan: Plan, name: str, record: StepRecord) -> bool:
    """What came after it: undone, or never begun; or, of an item, left out for good."""
    if record.started_at is None or plan.steps[name].compensation is None:
        return not record.under_way
    if record.process_state is ProcessState.SKIPPED and record.after_undo is not None:
        return True
    return record.process_state in (ProcessState.UNDONE, ProcessState.UNDO_ERROR)


CLOSING = ("tell",)
"""The closing steps of the configurations: one stands once for each end of its task."""


def _at_most_one_stands(state: State) -> bool:
    once = [step for step, _ in state.standing if step not in CLOSING]
    return len(once) == len({*once})


def is_called_without_effect(record: StepRecord) -> bool:
    """Whether a repair by a person, or another agent, may take it that nothing happened."""
    if record.effect is Effect.NONE:
        return True
    failed = record.process_state is ProcessState.ERROR and not record.outcome_unknown
    return failed and record.effect is not Effect.STANDS


def could_go_on(plan: Plan, task: Task, now: int) -> Iterator[tuple[str, int]]:
    """The steps, each with the instant at which it can be claimed, woken or reminded of, or is
    overdue.

    By the plan and the states of the steps alone: not by what the record says of looking at it.
    """
    if task.closing is not None:
        yield "closing", max(now, task.closing.by)
    for name in plan.steps:
        record = task.step(name)
        if record.under_way:
            reminds = record.remind_at if task.performs(name) else None
            ends = (stored_step(record).complete_by, record.heartbeat_by, reminds)
            yield name, max(now, min(at for at in ends if at is not None))
        elif isinstance(record.situation, WithoutAgent):
            if task.ending is None:
                yield name, max(now, record.situation.until)
        elif _is_ready(plan, task, name):
            yield name, max(now, record.not_before or 0)


def looked_at_by(plan: Plan, task: Task, now: int) -> Iterator[int]:
    """By when each of these must be looked at; of what was late before, the longer the rarer."""
    for name, at in could_go_on(plan, task, now):
        record = task.step(name)
        since = record.late_since if task.steps else task.start_at
        if record.under_way:
            since = record.remind_at if task.performs(name) else None
        late_for = max(now - since, 0) if since is not None and at <= now else 0
        yield at + start_interval(late_for)


def _is_ready(plan: Plan, task: Task, name: str) -> bool:
    """Whether only time can keep the step from being claimed."""
    state = task.step(name).process_state
    if state is ProcessState.PENDING and task.performs(name):
        return all(_may_follow(plan, task, name, one) for one in plan.steps[name].after)
    if state is not ProcessState.UNDOING:
        return False
    later = (task.step(other) for other in plan.steps if name in plan.before(other))
    return not any(r.under_way or r.process_state is ProcessState.UNDOING for r in later)


def _unreported_end(task: Task, state: State) -> str | None:
    """An end is owed until it is reported."""
    if not task.ended:
        return None
    if task.signals and task.state is not TaskState.ARCHIVED:
        return Invariant.ACCOUNTED.value
    owed = {(each.kind, each.name) for each in task.owed}
    alerted = ("alert", "task_archived") in owed or "alert" in state.reported
    if task.state is TaskState.ARCHIVED and not alerted:
        return Invariant.ALERTED.value
    if ("status", end_status(task)) not in owed and "status" not in state.reported:
        return Invariant.REPORTED.value
    return None
