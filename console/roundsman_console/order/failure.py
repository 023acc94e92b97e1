"""What failed in an order, and how often? From its ending, its records and its history. Pure.

The record of a step that was undone has no error. Of the step for which the order was undone, the
ending has it; of another one, only the history has it, in words.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from roundsman.definition.plan import Plan
from roundsman.engine.agent_holds import HELD
from roundsman.model.events import HistoryRow
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, Operation, StepError, StepRecord, Task
from roundsman_console.order.step_times import ENDS_AN_ATTEMPT, FAILURES, retry_at
from roundsman_console.order.view import step_names

How: TypeAlias = Literal["undo failed", "failed", "tried again"]
_WORST_FIRST: Sequence[How] = ("undo failed", "failed", "tried again")
_UNDONE = (ProcessState.UNDOING, ProcessState.UNDONE)
_FAILED = (ProcessState.ERROR, ProcessState.UNDO_ERROR)
_TRIED_AGAIN = (ProcessState.PENDING, ProcessState.PROCESSING, ProcessState.UNDOING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An error and the steps that failed with it. Instants are epoch ms."""

    how: How
    """Whether a step or its undo failed for good, or is tried again."""
    steps: tuple[str, ...]
    """The steps that failed so, in the order of the plan; none if the order failed as a whole."""
    error: StepError
    """The error; its type is empty if only the history has it, in words."""
    attempts: int = 0
    """How many attempts of the first of the steps failed, as far as is known."""
    most: int | None = None
    """How many attempts it has; None if their number is not limited, or not known."""
    first_at: int | None = None
    """When an attempt of one of the steps failed first, in the present time of the order."""
    last_at: int | None = None
    """When one failed last."""
    agents: tuple[str, ...] = ()
    """The agents of the steps."""

    @property
    def for_good(self) -> bool:
        """Whether no other attempt follows although some were left: another cannot help."""
        return self.how != "tried again" and self.most is not None and self.attempts < self.most


def failures(task: Task, plan: Plan | None, history: Sequence[HistoryRow]) -> list[Failure]:
    """Return what failed and was not mended since, the worst first.

    These are: the undo of a step, a step that failed for good (undone since or not), the order as a
    whole, and a step whose last attempt failed and which is tried again. What was left out of a
    fan-out has not failed. Of an order that has completed, nothing has.
    """
    rows = rows_by_step(history)
    found = dict[object, Failure]()
    for name in step_names(task, plan):
        one = _failure(name, task, plan, rows.get(name, ()))
        if one is None:
            continue
        like = (one.how, one.error)
        found[like] = _together(found[like], one) if like in found else one
    ending = task.ending
    if ending is not None and ending.error is not None and ending.step is None:
        whole = Failure(how="failed", steps=(), error=ending.error, last_at=task.ended_at)
        found[whole] = whole
    cause = ending.step if ending else None
    return sorted(
        found.values(),
        key=lambda one: (_WORST_FIRST.index(one.how), cause not in one.steps),
    )


def failed_attempts(record: StepRecord, rows: Sequence[HistoryRow]) -> int:
    """Return how many attempts of a step failed, also those after which it was not tried again.

    `rows` are those of the step in `rows_by_step`. The record does not count an attempt that its
    agent refused; the history has the number of each attempt that failed. Of a step that was
    undone, the attempts to perform it are counted.
    """
    state, counted = record.process_state, record.failure_count
    if state not in (*_FAILED, *_UNDONE) or (state is ProcessState.UNDOING and counted):
        return counted
    numbers = [row.attempt or 0 for row in _of_operation(record, rows) if row.kind in FAILURES]
    return max(0 if state in _UNDONE else counted, *numbers[-1:], 0)


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


def _of_operation(record: StepRecord, rows: Sequence[HistoryRow]) -> list[HistoryRow]:
    """The rows of the failures to perform the step, or of those to undo it if its undo failed."""
    undo_failed = record.process_state is ProcessState.UNDO_ERROR
    return [row for row in rows if row.kind in ENDS_AN_ATTEMPT and undo_failed == _is_of_undo(row)]


def _is_of_undo(row: HistoryRow) -> bool:
    return row.kind == "undo failed" or row.reason.startswith(f"{row.step} (undo)")


def _failure(
    name: str, task: Task, plan: Plan | None, rows: Sequence[HistoryRow]
) -> Failure | None:
    record = task.step(name)
    how, error = _what_failed(name, task, record, rows)
    if error is None:
        return None
    failed = _of_operation(record, rows)
    step = plan.steps.get(name) if plan else None
    operation: Operation = UNDO if how == "undo failed" else PERFORM
    agent = record.agent or (step.agent if step else None)
    last = failed[-1].at if failed else record.finished_at
    return Failure(
        how=how,
        steps=(name,),
        error=error,
        attempts=failed_attempts(record, rows),
        most=step.attempts_of(operation) if step else None,
        first_at=failed[0].at if failed else last,
        last_at=last,
        agents=(agent,) if agent else (),
    )


def _what_failed(
    name: str, task: Task, record: StepRecord, rows: Sequence[HistoryRow]
) -> tuple[How, StepError | None]:
    state, ending = record.process_state, task.ending
    unknown = StepError("", f"{name} failed; its record has no error")
    if state is ProcessState.UNDO_ERROR:
        return "undo failed", record.error or unknown
    if ending is not None and ending.step == name and ending.error is not None:
        return "failed", ending.error
    if state is ProcessState.ERROR:
        return "failed", record.error or unknown
    if state in _UNDONE and ending is not None:
        return "failed", next(_refusals(rows), None)
    if state in _TRIED_AGAIN and record.failure_count and not task.ended:
        held = record.error is not None and record.error.type == HELD
        return "tried again", None if held else record.error
    return "failed", None


def _refusals(rows: Sequence[HistoryRow]) -> Iterator[StepError]:
    """The failure after which the step was not tried again, in the words of the history."""
    for row, after in zip(rows, [*rows[1:], None], strict=True):
        final = row.kind == "failed" and retry_at(row.reason) is None and not _is_of_undo(row)
        if final and (after is None or after.kind == "undo"):
            yield StepError("", row.reason)


def _together(one: Failure, other: Failure) -> Failure:
    """One failure of several steps."""
    instants = [at for at in (one.first_at, other.first_at) if at is not None]
    ends = [at for at in (one.last_at, other.last_at) if at is not None]
    return Failure(
        how=one.how,
        steps=(*one.steps, *other.steps),
        error=one.error,
        attempts=one.attempts,
        most=one.most,
        first_at=min(instants, default=None),
        last_at=max(ends, default=None),
        agents=tuple(dict.fromkeys((*one.agents, *other.agents))),
    )
