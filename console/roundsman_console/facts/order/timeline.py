"""The timeline of a task, from its record and its history.

The record has the last attempt of each step. The history has failed attempts, recoveries, undos and
commands.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass

from roundsman.engine.history import ANSWERED
from roundsman.model.events import HistoryRow
from roundsman.model.instants import SECOND, clock_time, format_duration, iso
from roundsman.model.json import canonical_json
from roundsman.model.states import ProcessState
from roundsman.model.task import UNDO, StepRecord, Task
from roundsman_console.base.constraints import RUN_ID, Count
from roundsman_console.base.result import EpochMs, filled_from
from roundsman_console.facts.order.not_needed import not_needed_words
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts
from roundsman_console.facts.order.step_text import agent_words, error_words, reminder_words

SUBMITTED, TIME_COME, RETRIED, STARTED, HEARD, FINISHED, SKIPPED, ENDED = (
    "submitted",
    "time has come",
    "retried",
    "started",
    "heard of",
    "finished",
    "skipped",
    "ended",
)
"""The kinds of entries that come from the record. Entries from the history have the rows' kinds."""

MAY_START = "the task may start"
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
    """One entry of a timeline."""

    at: EpochMs
    what: str
    """`submitted`, `time has come`, `retried`, `started`, `heard of`, `finished`, `skipped` or
    `ended`; for an entry from the history, the kind of its row."""
    step: str | None = None
    """The step; null if the entry is about the whole task."""
    attempt: Count | None = None
    by: str | None = None
    """Who sent the command, as it says itself; null if the entry is about no command."""
    sender: str | None = None
    """The principal that sent the command, as AWS authenticated it; null if it is not known."""
    _: KW_ONLY
    why: str


def happenings(facts: OrderFacts) -> list[Happening]:
    """Return the timeline until now, the oldest entry first.

    Of two entries at the same ms, the cause comes before its effect.
    """
    ends = _ends_in(facts.history)
    happened = [
        *_beginnings(facts.task, facts.history),
        *(happening for one in facts.steps for happening in _of_step(one, ends)),
        *(of_row(row) for row in sorted(facts.history, key=lambda row: row.seq)),
        *_end(facts.task),
    ]
    # The sort is stable: entries at the same ms keep the order above.
    return sorted((one for one in happened if one.at <= facts.at), key=lambda one: one.at)


def not_known(facts: OrderFacts) -> list[str]:
    """Return sentences about the facts that the timeline does not contain."""
    records = facts.task.steps.values()
    if not facts.history:
        return [NO_HISTORY] if any(one.started_at is not None for one in records) else []
    found = [ONLY_THE_LAST]
    if any(record.operation == UNDO for record in records):
        found.append(NO_STARTS_BEFORE_UNDO)
    return found


def _beginnings(task: Task, history: Sequence[HistoryRow]) -> Iterator[Happening]:
    tenant = f" for {task.tenant}" if task.tenant else ""
    yield Happening(task.created_at, SUBMITTED, why=f"{task.workflow}, {task.priority}{tenant}")
    if task.start_at > task.created_at:
        # A command that lets a task go on starts its time limit again; its row says who sent it.
        again = any(row.at == task.start_at and row.command_id is not None for row in history)
        what, why = (RETRIED, "its time limit starts again") if again else (TIME_COME, MAY_START)
        yield Happening(task.start_at, what, why=why)


def _of_step(one: StepFacts, ends: Collection[tuple[str | None, int]]) -> Iterator[Happening]:
    """Yield what the record of a step says, without an end that is among the `ends` of rows."""
    name, record = one.name, one.record
    if record.started_at is not None:
        agent = agent_words(record, one.step) or one.agent
        what = "undo request sent to" if record.operation == UNDO else "request sent to"
        why = f"{name}: {what} {'its agent' if agent is None else agent}"
        yield Happening(record.started_at, STARTED, name, _attempt(record), why=why)
    if record.under_way and record.heard_at is not None:
        waits = f"waits for a callback{reminder_words(one)}"
        why = f"{name}: {waits if record.waiting else 'the agent reported progress'}"
        yield Happening(record.heard_at, HEARD, name, _attempt(record), why=why)
    finished = record.finished_at
    if finished is not None and (name, finished) not in ends:
        what, why = _finish(one)
        yield Happening(finished, what, name, why=f"{name}: {why}")


def _attempt(record: StepRecord) -> int | None:
    return record.failure_count + 1 if record.under_way else None


def _finish(one: StepFacts) -> tuple[str, str]:
    record = one.record
    if record.process_state is ProcessState.SKIPPED:
        return SKIPPED, ", ".join(filter(None, ("skipped", not_needed_words(one))))
    if record.process_state is ProcessState.PROCESSED:
        return FINISHED, "done"
    error = record.error
    said = f": {error_words(error.type, error.message)}" if error else ""
    return FINISHED, f"{record.process_state}{said}"


def _ends_in(history: Sequence[HistoryRow]) -> set[tuple[str | None, int]]:
    """The steps and instants of the rows that may be the end of a step; they have more detail."""
    return {(row.step, row.at) for row in history if row.by is None and row.kind != ANSWERED}


def of_row(row: HistoryRow) -> Happening:
    """Return the entry of a row of the history; that of a signal has its data."""
    why = row.reason
    if row.signal is not None:
        why = f"{why}; its data: {canonical_json(row.signal.data)}"
    return filled_from(row, Happening, what=row.kind, why=why)


def _end(task: Task) -> Iterator[Happening]:
    if task.ended_at is None:
        return
    why = f": {task.ending.why}" if task.ending else ""
    kept = f", kept until {iso(task.expires_at)}" if task.expires_at is not None else ""
    yield Happening(task.ended_at, ENDED, why=f"{task.state}{why}{kept}")


_RUN = re.compile(rf"\(bulk ({RUN_ID.pattern})\)")
"""How the reason of a command names the bulk run that sent it (`BulkRun.event_for`)."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One row of the history."""

    happening: Happening
    later: int | None
    """The time in ms since the row before it in the order of time; None for the first row."""
    moment: str
    """Its instant in UTC: the time of day, with the date if the row above is of another day."""
    run: str | None = None
    """The bulk run that sent the command; None if none did."""

    @property
    def later_words(self) -> str:
        """The time since the row before it: `+250 ms`, `+12.5 s`; empty for the first row."""
        return later_words(self.later)

    @property
    def around_run(self) -> tuple[str, str]:
        """The reason before and after the id of the bulk run."""
        before, _, after = self.happening.why.partition(self.run or "\0")
        return before, after


def entries(happened: Sequence[Happening]) -> list[HistoryEntry]:
    """Return the rows of the history, the newest first. `happened` is in the order of time."""
    found = list[HistoryEntry]()
    for place in range(len(happened) - 1, -1, -1):
        one, before = happened[place], happened[place - 1] if place else None
        above = found[-1].happening.at if found else None
        later = None if before is None else one.at - before.at
        beside = [away for away in (later, above and above - one.at) if away]
        exact = min(beside, default=SECOND) < SECOND
        found.append(HistoryEntry(one, later, moment(one.at, above, exact=exact), _run_of(one)))
    return found


def later_words(later: int | None) -> str:
    """Return the time (ms) between two rows: `+250 ms`, `+12.5 s`; empty for None."""
    if later is None:
        return ""
    tenths = SECOND <= later < 100 * SECOND
    return f"+{later / SECOND:.1f} s" if tenths else f"+{format_duration(later)}"


def moment(instant: int, beside: int | None = None, *, exact: bool = False) -> str:
    """Return an instant (epoch ms) in UTC: `2027-01-15 08:00:12`, `exact`: `... 08:00:12.250`.

    The date is left out if it is the one of the instant `beside`.
    """
    date = iso(instant)[:10]
    same = beside is not None and iso(beside)[:10] == date
    time = f"{clock_time(instant)}.{instant % SECOND:03}" if exact else clock_time(instant)
    return time if same else f"{date} {time}"


def _run_of(one: Happening) -> str | None:
    found = _RUN.search(one.why) if one.by is not None else None
    return found[1] if found else None
