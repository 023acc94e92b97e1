"""When did each attempt of a step begin and end, and for what did it wait between them? Pure.

The record has the start and the end of the last attempt. The history has the end of each attempt
that failed, the start and the end of each undo, and the start of each hold. What neither of them
has is not made up: such a time has `since_known` or `until_known` False.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from typing import Literal, TypeAlias

from roundsman.model.events import HistoryRow
from roundsman.model.instants import read_instant
from roundsman.model.situations import WithoutAgent
from roundsman.model.states import DONE, ProcessState, TaskState
from roundsman.model.task import UNDO, StepRecord
from roundsman_console.facts.order.order_facts import OrderFacts, StepFacts

TimeKind: TypeAlias = Literal["attempt", "undo", "wait", "held"]
TimeEnd: TypeAlias = Literal["done", "failed", "not known", "goes on"]

FAILURES = ("failed", "waits", "undo failed")
"""The kinds of rows of the history that say that an attempt failed and was counted."""
ENDS_AN_ATTEMPT = (*FAILURES, "requeued", "wait ended")
"""The kinds of rows that say that an attempt ended without success."""

_LATER = re.compile(r"(?:; retried|its undo begins) at ([0-9TZ:.-]+Z)")
_FOR_GOOD = re.compile(r"[^ ]+(?: \(undo\))?: failed for good:")


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTime:
    """An attempt, an undo, a wait or a hold of a step. Instants are epoch ms."""

    kind: TimeKind
    since: int
    until: int
    since_known: bool = True
    """Whether it began at `since`; otherwise it began then at the earliest."""
    until_known: bool = True
    """Whether it ended at `until`; otherwise it ended then at the latest."""
    end: TimeEnd = "done"
    """How an attempt or an undo ended; of a wait or a hold, `goes on` or `done`."""
    attempt: int | None = None
    """The number of the attempt, from 1; None if it is not known."""
    round: int | None = None
    """The round of the idempotency key; None if it is not known."""
    why: str = ""
    """The reason in the history; empty if there is none."""


class RowsByStep:
    """The rows of a history by their step, for an order whose steps are all looked at."""

    def __init__(self, history: Sequence[HistoryRow]) -> None:
        self.ends: list[HistoryRow] = []
        """The rows that end an attempt, as they were stored."""
        self._of: dict[str | None, list[HistoryRow]] = {}
        for row in sorted(history, key=lambda row: row.seq):
            self._of.setdefault(row.step, []).append(row)
            if row.kind in ENDS_AN_ATTEMPT:
                self.ends.append(row)

    def about(self, step: str) -> Iterator[HistoryRow]:
        """Yield the rows of a step and of commands on the order, as they were stored."""
        return merge(self._of.get(step, ()), self._of.get(None, ()), key=lambda row: row.seq)


def step_times(one: StepFacts, at: int, rows: RowsByStep | None = None) -> list[StepTime]:
    """Return the times of one step until `at` (epoch ms), in the order in which they began.

    `rows` are those of the order's history; None to sort them for this step alone.
    """
    name, rows = one.name, RowsByStep(one.order.history) if rows is None else rows
    waits = one.step is not None and not one.step.agents
    created = one.order.task.created_at
    walk = _Walk(name, created, _ends_before(one), _later(one, rows.ends), only_waits=waits)
    for row in rows.about(name):
        if row.step == name:
            walk.over_row(row)
        else:
            walk.over_command(row)
    walk.over_record(one.record, at)
    cut = (replace(time, until=min(time.until, at)) for time in walk.found if time.since <= at)
    return sorted(cut, key=lambda time: (time.since, time.until))


def retry_at(reason: str) -> int | None:
    """Return when the step is tried again, as a row of the history says, to the second.

    None if the row does not say it. What comes after the message of an error counts, since a
    service may have written anything.
    """
    found = [] if _FOR_GOOD.match(reason) else _LATER.findall(reason)
    if not found:
        return None
    try:
        return read_instant(found[-1])
    except ValueError:  # a text from outside that only looks like an instant
        return None


def open_times(facts: OrderFacts, at: int) -> list[StepTime]:
    """Return when the order was open, until `at`: until it ended, and from each resubmission.

    The end of an earlier time is that of the last row before the resubmission: the record keeps
    only the last end.
    """
    task = facts.task
    found, since, last, why = list[StepTime](), task.created_at, None, ""
    for row in sorted(facts.history, key=lambda one: one.seq):
        if row.kind == "resubmit" and last is not None:
            ended = StepTime(
                kind="attempt", since=since, until=last, until_known=False, end="failed", why=why
            )
            found.append(ended)
            since, why = row.at, row.reason
        if row.kind != "refused":
            last = row.at
    done = task.state is TaskState.COMPLETED
    end: TimeEnd = "goes on" if task.ended_at is None else "done" if done else "failed"
    until = at if task.ended_at is None else task.ended_at
    found.append(StepTime(kind="attempt", since=since, until=max(until, since), end=end, why=why))
    return found


def _ends_before(one: StepFacts) -> list[int]:
    """When the steps before it ended, as far as their records say: it began after that."""
    befores = map(one.order.task.step, one.after)
    ends = (before.finished_at for before in befores if before.process_state in DONE)
    return [end for end in ends if end is not None]


def _later(one: StepFacts, ends: Sequence[HistoryRow]) -> list[int]:
    """When steps that come after it had begun, by the `ends` of attempts: it was done before."""
    if one.order.plan is None or one.step is None or not ends:
        return []
    after = one.order.plan.after_any((one.name,))
    return [row.at for row in ends if row.step in after]


class _Walk:
    """Goes over what is known of a step in the order of time."""

    def __init__(
        self,
        name: str,
        created: int,
        ends_before: Sequence[int],
        later: Sequence[int],
        *,
        only_waits: bool,
    ) -> None:
        self.found: list[StepTime] = []
        self._undo_words = f"{name} (undo)"
        self._ends_before = ends_before
        self._later = later
        self._only_waits = only_waits
        self._since = created
        """When what comes next can begin first."""
        self._undoes = False
        self._closed: int | None = None
        """When the last attempt ended of which the history has the end."""
        self._over = False
        """Whether the operation has failed for good, as far as the history says."""
        self._resolved: int | None = None
        """When a person stated its outcome."""

    def over_row(self, row: HistoryRow) -> None:
        """Go over a row about the step."""
        if row.kind in ENDS_AN_ATTEMPT:
            self._end_wait(row.at)
            self._failed(row)
        elif row.kind == "held":
            self._end_wait(row.at)
            self.found.append(_wait("held", row, row.at))
        elif row.kind == "undo":
            self._end_wait(row.at)
            self._undo_begins(row)
        elif row.kind == "undone" or (row.kind == "rerouted" and self._undoes):
            self._end_wait(row.at)
            self._close("undo", row, "done")
            self._undoes = "its undo goes on" in row.reason
            self._over = False
        elif row.kind == "resolve":
            self._end_wait(row.at)
            self._restart(row.at)
            self._resolved = row.at

    def over_command(self, row: HistoryRow) -> None:
        """Go over a row about the whole order."""
        if row.kind in ("resubmit", "run", "undo", "undo-part", "cancel"):
            self._end_wait(row.at)
        if row.kind in ("resubmit", "run"):
            self._restart(row.at)

    def over_record(self, record: StepRecord, at: int) -> None:
        """Go over the record, which has the last attempt."""
        started, finished = record.started_at, record.finished_at
        # The history has no row for an attempt that goes on, nor for one that succeeded.
        processed = record.process_state is ProcessState.PROCESSED and finished != self._resolved
        of_its_own = record.under_way or processed
        if started is not None and (of_its_own or not self._begins(started)):
            self._last(record, started, at)
        if isinstance(record.situation, WithoutAgent):
            self._goes_on("wait", record.situation.since, at)
        elif self._only_waits and processed and finished is not None:
            self._waited(finished)
        if record.held_since is not None:
            self._goes_on("held", record.held_since, at)
        elif record.not_before is not None and not record.under_way and finished is None:
            self._goes_on("wait", self._closed if self._closed is not None else started, at)

    def _waited(self, finished: int) -> None:
        """Add a wait without an agent that is over: it began once the steps before it were done."""
        since = max([self._since, *(end for end in self._ends_before if end <= finished)])
        self.found.append(
            StepTime(kind="wait", since=min(since, finished), until=finished, since_known=False)
        )

    def _failed(self, row: HistoryRow) -> None:
        undo = row.kind == "undo failed" or row.reason.startswith(self._undo_words)
        # A step that was never sent to its agent fails without an attempt.
        if row.attempt is not None:
            self._close("undo" if undo else "attempt", row, "failed")
        self._undoes = undo
        later = retry_at(row.reason)
        self._over = later is None and row.kind != "requeued"
        if later is not None and later > row.at:
            self.found.append(_wait("wait", row, later))
            self._since = later

    def _undo_begins(self, row: HistoryRow) -> None:
        if not self._undoes and not self._over and self._since <= row.at:
            self._close("attempt", row, "not known")
        self._undoes, self._over, self._since = True, False, row.at
        later = retry_at(row.reason)
        if later is not None and later > row.at:
            self.found.append(_wait("wait", row, later))
            self._since = later

    def _close(self, kind: TimeKind, row: HistoryRow, end: TimeEnd) -> None:
        # An end that is later than this one is of a later time of the order.
        befores = [end for end in self._ends_before if end <= row.at and kind == "attempt"]
        self.found.append(
            StepTime(
                kind=kind,
                since=min(max([self._since, *befores]), row.at),
                until=row.at if end != "not known" else self._done_by(row.at),
                since_known=False,
                until_known=end != "not known",
                end=end,
                attempt=row.attempt,
                why=row.reason,
            )
        )
        self._since = self._closed = row.at

    def _done_by(self, at: int) -> int:
        """Until when it was done at the latest, if its undo began at `at`."""
        return min([at, *(one for one in self._later if one >= self._since)])

    def _restart(self, at: int) -> None:
        self._since, self._over = at, False

    def _end_wait(self, at: int) -> None:
        """End the wait or the hold that was under way, at the latest at `at`."""
        if not self.found or self.found[-1].end != "goes on":
            return
        last = self.found[-1]
        until, known = at, False
        if last.kind == "wait":
            until, known = min(last.until, at), True
            self._since = min(self._since, at)
        self.found[-1] = replace(last, until=until, until_known=known, end="done")

    def _begins(self, started: int) -> bool:
        """Give the last attempt in which it lies the start that the record has."""
        for place in range(len(self.found) - 1, -1, -1):
            one = self.found[place]
            if one.kind in ("wait", "held") or not one.since <= started <= one.until:
                continue
            if not one.since_known:
                self.found[place] = replace(one, since=started, since_known=True)
                before = self.found[place - 1] if place else None
                if before is not None and before.kind == "held" and before.until > started:
                    self.found[place - 1] = replace(before, until=started, until_known=True)
            return True
        return False

    def _last(self, record: StepRecord, started: int, at: int) -> None:
        """Add the attempt of the record, which the history does not have."""
        until = at if record.under_way else record.finished_at
        if until is None:
            return
        self._end_wait(started)
        failed = record.process_state in (ProcessState.ERROR, ProcessState.UNDO_ERROR)
        undo = record.operation == UNDO
        self.found.append(
            StepTime(
                kind="undo" if undo else "attempt",
                since=started,
                until=max(started, until),
                end="goes on" if record.under_way else "failed" if failed else "done",
                attempt=record.failure_count + 1 if record.under_way else None,
                round=None if undo else record.round,
            )
        )

    def _goes_on(self, kind: TimeKind, since: int | None, at: int) -> None:
        """The step waits now: what the history has of that goes on until now."""
        if self.found and self.found[-1].kind == kind and self.found[-1].end == "goes on":
            self.found[-1] = replace(self.found[-1], until=at)
        elif since is not None and since <= at:
            self._end_wait(since)
            self.found.append(StepTime(kind=kind, since=since, until=at, end="goes on"))


def _wait(kind: TimeKind, row: HistoryRow, until: int) -> StepTime:
    return StepTime(
        kind=kind,
        since=row.at,
        until=until,
        end="goes on",
        attempt=row.attempt,
        why=row.reason,
    )
