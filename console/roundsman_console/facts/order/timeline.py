"""The timeline of a task, from its record and its history.

The record has the last attempt of each step. The history has failed attempts, recoveries, undos and
commands.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roundsman.definition.plan import Plan
from roundsman.engine.history import ANSWERED
from roundsman.model.events import HistoryRow
from roundsman.model.instants import iso
from roundsman.model.json import canonical_json
from roundsman.model.states import ProcessState
from roundsman.model.task import UNDO, StepRecord, Task
from roundsman_console.facts.order.documents import TimelineDocument
from roundsman_console.facts.order.step_text import agent_words, reminder_words
from roundsman_console.facts.order.view import step_names

SUBMITTED, TIME_COME, STARTED, HEARD, FINISHED, SKIPPED, ENDED = (
    "submitted",
    "time has come",
    "started",
    "heard of",
    "finished",
    "skipped",
    "ended",
)
"""The kinds of entries that come from the record. Entries from the history have the rows' kinds."""

NO_HISTORY = (
    "A healthy order has no history. For each step, the record has the start and the end of "
    "the last attempt, not when the request was read or the reply accepted."
)
ONLY_THE_LAST = (
    "For each step, the record has only the start of the last attempt; the history has the "
    "earlier failed attempts, but not when they began."
)
NO_STARTS_BEFORE_UNDO = (
    "For a step whose undo has begun, the record has the start of the undo instead of the "
    "start of the step."
)


@dataclass(frozen=True, slots=True)
class Happening:
    """One entry of the timeline."""

    at: int
    """Epoch ms."""
    what: str
    """The kind of the entry."""
    why: str
    """The description, for people."""
    step: str | None = None
    """The step; None if the entry is about the whole task."""
    attempt: int | None = None
    """The number of the attempt, from 1; None if it is not known or the entry is about none."""
    by: str | None = None
    """Who sent the command, as it says itself; None if the entry is about no command."""
    sender: str | None = None
    """The principal that sent it, as AWS authenticated it; None if it is not known."""


def happenings(
    task: Task, plan: Plan | None, history: Sequence[HistoryRow], at: int
) -> list[Happening]:
    """Return the timeline until `at` (epoch ms), the oldest entry first.

    Of two entries at the same ms, the cause comes before its effect.
    """
    happened = [
        *_beginnings(task),
        *(
            happening
            for name in step_names(task, plan)
            for happening in _of_step(name, task, plan, history)
        ),
        *(of_row(row) for row in sorted(history, key=lambda row: row.seq)),
        *_end(task),
    ]
    # The sort is stable: entries at the same ms keep the order above.
    return sorted((one for one in happened if one.at <= at), key=lambda one: one.at)


def not_known(task: Task, history: Sequence[HistoryRow]) -> list[str]:
    """Return sentences about the facts that the timeline does not contain."""
    if not history:
        return (
            [NO_HISTORY] if any(one.started_at is not None for one in task.steps.values()) else []
        )
    found = [ONLY_THE_LAST]
    if any(record.operation == UNDO for record in task.steps.values()):
        found.append(NO_STARTS_BEFORE_UNDO)
    return found


def _beginnings(task: Task) -> Iterator[Happening]:
    tenant = f" for {task.tenant}" if task.tenant else ""
    yield Happening(task.created_at, SUBMITTED, f"{task.workflow}, {task.priority}{tenant}")
    if task.start_at > task.created_at:
        yield Happening(task.start_at, TIME_COME, "the task may start")


def _of_step(
    name: str, task: Task, plan: Plan | None, history: Sequence[HistoryRow]
) -> Iterator[Happening]:
    record = task.step(name)
    undoes = record.operation == UNDO
    if record.started_at is not None:
        step = plan.steps.get(name) if plan else None
        agent = agent_words(record, step) or record.agent or (step.agent if step else "its agent")
        what = "undo request sent to" if undoes else "request sent to"
        why = f"{name}: {what} {agent}"
        yield Happening(record.started_at, STARTED, why, name, _attempt(record))
    if record.under_way and record.heard_at is not None:
        waits = f"waits for a callback{reminder_words(task, record)}"
        why = f"{name}: {waits if record.waiting else 'the agent reported progress'}"
        yield Happening(record.heard_at, HEARD, why, name, _attempt(record))
    if record.finished_at is not None and not _is_in_history(name, record.finished_at, history):
        what, why = _finish(record)
        yield Happening(record.finished_at, what, f"{name}: {why}", name)


def _attempt(record: StepRecord) -> int | None:
    return record.failure_count + 1 if record.under_way else None


def _finish(record: StepRecord) -> tuple[str, str]:
    if record.process_state is ProcessState.SKIPPED:
        return SKIPPED, "skipped"
    if record.process_state is ProcessState.PROCESSED:
        return FINISHED, "done"
    error = f": {record.error.type}: {record.error.message}" if record.error else ""
    return FINISHED, f"{record.process_state}{error}"


def _is_in_history(name: str, at: int, history: Sequence[HistoryRow]) -> bool:
    """Whether the history has a row for this end of the step; the row has more detail."""
    return any(
        row.step == name and row.at == at and row.by is None and row.kind != ANSWERED
        for row in history
    )


def of_row(row: HistoryRow) -> Happening:
    """Return the entry of a row of the history; that of a signal has its data."""
    why = row.reason
    if row.signal is not None:
        why = f"{why}; its data: {canonical_json(row.signal.data)}"
    return Happening(row.at, row.kind, why, row.step, row.attempt, row.by, row.sender)


def _end(task: Task) -> Iterator[Happening]:
    if task.ended_at is None:
        return
    why = f": {task.ending.why}" if task.ending else ""
    kept = f", kept until {iso(task.expires_at)}" if task.expires_at is not None else ""
    yield Happening(task.ended_at, ENDED, f"{task.state}{why}{kept}")


def timeline_document(
    task: Task, happened: Sequence[Happening], gaps: Sequence[str]
) -> TimelineDocument:
    """Return the events of the task and the gaps in them as JSON for scripts."""
    return {
        "orderId": task.task_id,
        "workflow": task.workflow,
        "state": task.state,
        "happened": [
            {
                "at": iso(one.at),
                "what": one.what,
                "step": one.step,
                "attempt": one.attempt,
                "by": one.by,
                "sender": one.sender,
                "why": one.why,
            }
            for one in happened
        ],
        "notKnown": list(gaps),
    }
