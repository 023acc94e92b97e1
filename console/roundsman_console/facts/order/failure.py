"""What failed in an order, and how often? From its ending, its records and its history. Pure.

The record of a step that was undone has no error. Of the step for which the order was undone, the
ending has it; of another one, only the history has it, in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from roundsman.engine.agent_holds import HELD
from roundsman.model.events import HistoryRow
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, StepError, StepRecord
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts
from roundsman_console.facts.order.step_times import ENDS_AN_ATTEMPT, FAILURES, retry_at

_FAILED = (ProcessState.ERROR, ProcessState.UNDO_ERROR)
_TRIED_AGAIN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)
_UNDOES = (ProcessState.UNDOING, ProcessState.UNDONE, ProcessState.UNDO_ERROR)


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderFailure:
    """An error and the steps that failed with it. Instants are epoch ms."""

    steps: tuple[str, ...]
    """The steps that failed so, in the order of the plan; none if the order failed as a whole."""
    error: StepError
    """The error; its type is empty if only the history has it, in words."""
    undo: bool = False
    """Whether the undo of the steps failed."""
    tried_again: bool = False
    """Whether it did not fail for good: another attempt follows, or goes on."""
    attempts: int = 0
    """How many attempts of the first of the steps failed, as far as is known."""
    most: int | None = None
    """How many attempts it has; None if their number is not limited, or not known."""
    first_at: int | None = None
    """When an attempt of one of the steps failed first, since the order was resubmitted last."""
    last_at: int | None = None
    """When one failed last."""
    agents: tuple[str, ...] = ()
    """The agents of the steps."""

    @property
    def attempts_left(self) -> bool:
        """Whether it failed for good although some attempts were left: none could help."""
        return not self.tried_again and self.most is not None and self.attempts < self.most


def failures(facts: OrderFacts) -> list[OrderFailure]:
    """Return what failed and was not mended since, the worst first.

    These are: the undo of a step, a step that failed for good (undone since or not), the order as a
    whole, and a step whose last attempt failed and which is tried again. What was left out of a
    fan-out has not failed. Of an order that has completed, nothing has.
    """
    rows, ending = rows_by_step(facts.history), facts.task.ending
    found: dict[object, OrderFailure] = {}
    for step in facts.steps:
        for one in _failures(step, rows.get(step.name, ())):
            like = (one.undo, one.tried_again, one.error)
            found[like] = _together(found[like], one) if like in found else one
    every = [*found.values()]
    if ending is not None and ending.error is not None and ending.step is None:
        every.append(OrderFailure(steps=(), error=ending.error, last_at=facts.task.ended_at))
    cause = ending.step if ending else None
    return sorted(every, key=lambda one: (one.tried_again, not one.undo, cause not in one.steps))


def failed_attempts(record: StepRecord, rows: Sequence[HistoryRow]) -> int:
    """Return how many attempts of a step failed, also the one after which none followed.

    `rows` are those of the step in `rows_by_step`. The record does not count an attempt that its
    agent refused; the history has the number of each attempt that failed. Of a step that was
    undone, the attempts to perform it are counted.
    """
    state = record.process_state
    undo_fails = state is ProcessState.UNDOING and record.failure_count > 0
    return _attempts(record, rows, undo=undo_fails or state is ProcessState.UNDO_ERROR)


def rows_by_step(history: Sequence[HistoryRow]) -> Mapping[str, Sequence[HistoryRow]]:
    """Return the rows of each step since the order was resubmitted last, the oldest first."""
    ordered = sorted(history, key=lambda one: one.seq)
    # The command's own row comes after those of what it has caused.
    again = max((row.seq for row in ordered if row.kind == "resubmit"), default=-1)
    found: dict[str, list[HistoryRow]] = {}
    for row in ordered:
        if row.step is not None and row.seq > again:
            found.setdefault(row.step, []).append(row)
    return found


def _attempts(record: StepRecord, rows: Sequence[HistoryRow], *, undo: bool) -> int:
    """How many attempts to undo the step failed, or to perform it.

    An operation that is over has as many as the number of the last one that failed.
    """
    current = (record.operation == UNDO) == undo
    counted = record.failure_count if current else 0
    if current and record.process_state not in _FAILED:
        return counted
    numbers = [row.attempt or 0 for row in _of(rows, undo=undo) if row.kind in FAILURES]
    return max(counted, *numbers[-1:], 0)


def _of(rows: Sequence[HistoryRow], *, undo: bool) -> list[HistoryRow]:
    """The rows of the attempts that failed: to undo the step, or else to perform it."""
    return [row for row in rows if row.kind in ENDS_AN_ATTEMPT and undo == _is_of_undo(row)]


def _is_of_undo(row: HistoryRow) -> bool:
    return row.kind == "undo failed" or row.reason.startswith(f"{row.step} (undo)")


def _failures(step: StepFacts, rows: Sequence[HistoryRow]) -> Iterator[OrderFailure]:
    for one in _what_failed(step, rows):
        failed = _of(rows, undo=one.undo)
        last = failed[-1].at if failed else step.record.finished_at
        yield replace(
            one,
            attempts=_attempts(step.record, rows, undo=one.undo),
            most=step.step.attempts_of(UNDO if one.undo else PERFORM) if step.step else None,
            first_at=failed[0].at if failed else last,
            last_at=last,
            agents=(step.agent,) if step.agent else (),
        )


def _what_failed(step: StepFacts, rows: Sequence[HistoryRow]) -> Iterator[OrderFailure]:
    """The failures of a step, with nothing but their errors. A step and its undo may both fail."""
    name, record, task = step.name, step.record, step.order.task
    state, ending, error = record.process_state, task.ending, record.error
    unknown = StepError("", f"{name} failed; its record has no error")
    if state is ProcessState.UNDO_ERROR:
        yield OrderFailure(steps=(name,), error=error or unknown, undo=True)
    if ending is not None and ending.why.startswith(f"{name} (undo):"):
        return  # what was left out, or is not needed, was to be undone, and nothing else failed
    if ending is not None and ending.step == name and ending.error is not None:
        yield OrderFailure(steps=(name,), error=ending.error)
    elif state is ProcessState.ERROR:
        yield OrderFailure(steps=(name,), error=error or unknown)
    elif state in _UNDOES and ending is not None:
        refusal = _refusal(rows)
        if refusal is not None:
            yield OrderFailure(steps=(name,), error=StepError("", refusal))
    goes_on = state in _TRIED_AGAIN and record.failure_count > 0 and not task.ended
    if goes_on and error is not None and error.type != HELD:
        undo = record.operation == UNDO
        yield OrderFailure(steps=(name,), error=error, undo=undo, tried_again=True)


def _refusal(rows: Sequence[HistoryRow]) -> str | None:
    """The failure after which the step was not tried again, in the words of the history."""
    for row, after in zip_longest(rows, rows[1:]):
        final = row.kind == "failed" and retry_at(row.reason) is None and not _is_of_undo(row)
        if final and (after is None or after.kind == "undo"):
            return row.reason
    return None


def _together(one: OrderFailure, other: OrderFailure) -> OrderFailure:
    """One failure of several steps."""
    firsts = [at for at in (one.first_at, other.first_at) if at is not None]
    lasts = [at for at in (one.last_at, other.last_at) if at is not None]
    return replace(
        one,
        steps=(*one.steps, *other.steps),
        first_at=min(firsts, default=None),
        last_at=max(lasts, default=None),
        agents=tuple(dict.fromkeys((*one.agents, *other.agents))),
    )
