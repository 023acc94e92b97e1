"""What became of the one order of a failure group that was tried: is the cause gone? Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from roundsman.model.failure import NO_STEP, RETRIED, UNDO_FAILED
from roundsman.model.holds import hold_words
from roundsman.model.situations import Parked
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import StepRecord, Task, step_of
from roundsman_console.base.counted import counted
from roundsman_console.facts.order.order_facts import OrderFacts
from roundsman_console.facts.order.step_text import holds_of, last_error


class TrialState(StrEnum):
    """Where an order is that was tried."""

    SENT = "sent"
    """The scheduler has not carried out the command."""
    RUNNING = "running"
    """It has not come past the step that failed."""
    WAITS = "waits"
    """A hold or an open circuit keeps it from the step."""
    PASSED = "passed"
    """It is past the step that failed: the cause is gone."""
    FAILED = "failed again"
    ENDED = "ended"
    """It has ended without an answer: somebody else has ended it."""


@dataclass(frozen=True, slots=True)
class TriedOrder:
    """An order that was sent to see whether the cause of a failure group is gone."""

    order: str
    group: str
    step: str
    """The step at which the orders of the group failed, or NO_STEP."""
    how: str
    """How they failed; see `Group.how`."""
    version: int
    """The version of its task as it was sent."""
    attempts: int
    """The failed attempts of the step until then."""
    at: int
    """When it was sent, in epoch ms."""
    by: str
    reason: str


@dataclass(frozen=True, slots=True)
class Trial:
    """What became of an order that was tried."""

    tried: TriedOrder
    state: TrialState
    sentence: str

    @property
    def goes_on(self) -> bool:
        """Whether it is not known yet whether the cause is gone."""
        return self.state in (TrialState.SENT, TrialState.RUNNING, TrialState.WAITS)


def attempts_of(task: Task, step: str) -> int:
    """Return how many attempts of a step have failed; of a step for each item, of all its items."""
    return sum(record.failure_count for record in _records(task, step).values())


def trial_of(tried: TriedOrder, facts: OrderFacts) -> Trial:
    """Return what became of an order that was tried, by what is known of it now."""
    state, words = _found(tried, facts)
    return Trial(tried, state, f"{tried.order} {words}.")


def _found(tried: TriedOrder, facts: OrderFacts) -> tuple[TrialState, str]:
    task, step = facts.task, tried.step
    if task.version == tried.version:
        return TrialState.SENT, "was sent; the scheduler has not carried out the command yet"
    if task.ended:
        return _ended(tried, task)
    records = _records(task, step).values()
    if records and all(one.process_state in _done(tried) for one in records):
        what = "the undo of " if tried.how == UNDO_FAILED else ""
        return TrialState.PASSED, f"passed {what}{step}, and is {task.state} now"
    failed = [one for one in records if one.failure_count and one.error is not None]
    if tried.how == RETRIED and failed and attempts_of(task, step) > tried.attempts:
        return TrialState.FAILED, f"failed again: {last_error(failed[-1])}"
    if any(isinstance(one.situation, Parked) for one in task.steps.values()):
        return TrialState.WAITS, _waits(facts)
    return TrialState.RUNNING, _runs(tried, task, failed)


def _done(tried: TriedOrder) -> Sequence[ProcessState]:
    if tried.how == UNDO_FAILED:
        return (ProcessState.UNDONE, ProcessState.SKIPPED)  # it is skipped if it was left out
    return (ProcessState.PROCESSED, ProcessState.SKIPPED)


def _runs(tried: TriedOrder, task: Task, failed: Sequence[StepRecord]) -> str:
    if failed and tried.how != RETRIED:
        many = counted(attempts_of(task, tried.step), "attempt")
        return f"is tried again: {many} failed, {last_error(failed[-1])}"
    where = "its end" if tried.step == NO_STEP else tried.step
    return f"runs, and has not passed {where} yet"


def _records(task: Task, step: str) -> dict[str, StepRecord]:
    return {name: one for name, one in task.steps.items() if step_of(name) == step}


def _ended(tried: TriedOrder, task: Task) -> tuple[TrialState, str]:
    if task.state is TaskState.COMPLETED:
        return TrialState.PASSED, "passed, and is Completed"
    why = f": {task.ending.why}" if task.ending else ""
    if task.state is TaskState.UNDONE and tried.how == UNDO_FAILED:
        return TrialState.PASSED, "passed: its undo is done, and it is Undone"
    if task.failure is None:
        return TrialState.ENDED, f"was ended by somebody else: it is {task.state}{why}"
    same = "failed again" if task.failure == tried.group else "failed again, for another cause"
    return TrialState.FAILED, f"{same}{why}"


def _waits(facts: OrderFacts) -> str:
    """Say for what the steps wait that are parked."""
    holds = {
        f"{hold.target} {hold_words(hold)}": None
        for one in facts.steps
        if isinstance(one.record.situation, Parked)
        for hold in holds_of(facts.task, one.record, one.step, facts.holds)
    }
    return f"waits, since {'; '.join(holds)}" if holds else "waits for the end of a hold"
