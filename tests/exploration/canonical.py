"""Task records made comparable: two that no decision distinguishes become one.

A canonical record is a real `Task` that the engine could have stored at the instant T0, and is
what the engine is given. Three things are taken off a record:

- *The present.* Instants are moved so that now is T0. One that is over is moved up to the latest
  instant that is as much over to every reader: an end of a right to act counts for SKEW longer,
  something owed is old after START_WITHIN, all else is over when it is reached.
- *Names.* The nonces in lock tokens become n0, n1, ... in the order of the steps, and the version
  in them 0: a token that is given later has a later version, and is never taken for one of these.
- *What no decision reads*, named below beside each field.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from functools import cache
from hashlib import sha256
from typing import TypeAlias

from roundsman.definition.plan import Plan, StepPlan
from roundsman.engine.agent_holds import MAX_VIEW_AGE
from roundsman.engine.due import BRIEFLY_LATE, START_WITHIN, Lane
from roundsman.engine.request_deadlines import key_until, patience_of, time_of
from roundsman.engine.timeouts import LONGEST_CHECK_AFTER
from roundsman.model.instants import SKEW
from roundsman.model.polling import Polling
from roundsman.model.retry_window import CLOSED, RetryWindow
from roundsman.model.situations import (
    Asleep,
    AtAgent,
    AwaitsCallback,
    AwaitsSignal,
    Ended,
    NotBegun,
    Parked,
    Ready,
    Situation,
    UnderWay,
    WaitsUntil,
    WithoutAgent,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import PERFORM, UNDO, Owed, StepError, StepRecord, Task, step_of

T0 = 1_800_000_000_000
NOTICED = MAX_VIEW_AGE + 5_000
"""How long after a step began to be held the end of the hold may be noticed, rounded up to the 5 s
that all other times here are multiples of."""

VERSION = 10
"""Of every canonical record: only how many have come since matters, and readings say that."""

INSTANCE = "s"
UNEXPECTED = StepError("Failed", "", unexpected=True)
SETTLED = (
    ProcessState.PROCESSED,
    ProcessState.SKIPPED,
    ProcessState.ERROR,
    ProcessState.UNDONE,
)
INSTANTS = (
    *("claim_by", "late_since", "parked_since", "not_before", "since"),
    *("until", "heartbeat_by", "remind_at"),
)
"""The instants of situations that decide something."""
Key: TypeAlias = tuple[object, ...]


@cache
def nonce(name: str) -> str:
    """The nonce that the scheduler makes of a message of that id."""
    return sha256(name.encode()).hexdigest()[:10]


FRESH = "fresh"
"""The id of a message that is handled for the first time: no record knows its nonce yet."""

NAMES = tuple(f"n{number}" for number in range(40))
NONCES = {nonce(name): name for name in (FRESH, *NAMES)}


@cache
def name_of(token: str) -> str:
    """Which nonce a canonical token is of: `n0`; of any other, its nonce as it is."""
    found = token.partition(".")[0].rpartition("-")[2]
    return NONCES.get(found, found)


@cache
def token_of(name: str, token: str) -> str:
    """The token with the nonce of another name. The version is distinguished before this."""
    attempt, _, version = token.partition(".")[2].partition(".")
    return f"{INSTANCE}-{nonce(name)}.{attempt}{'.0' if version else ''}"


def over(instant: int | None, now: int, floor: int = 0) -> int | None:
    """The instant with now at T0; one that is over by `floor` is over for all."""
    return None if instant is None else max(T0 + instant - now, T0 - floor)


class Records:
    """Canonical records of one plan, by number; equal ones have one number.

    `bounded` are the plan's steps of which it is asked how long requests may act.
    """

    def __init__(
        self,
        plan: Plan,
        *,
        near_end: bool,
        outcomes: bool = False,
        holds: bool = True,
        looks: bool = False,
        awaits: bool = True,
    ) -> None:
        """`near_end`: the task's own complete-by is within reach; else it must never come.

        `outcomes`: what is known of effects decides something, as it does where a step has several
        agents or a person may ask for a fresh key. `holds`: a step may be parked. `looks`: an
        attempt may be extended, for as long again as it has been late. `awaits`: a step may come to
        await its result.
        """
        self.plan = plan
        self.tasks: list[Task] = []
        self._numbers: dict[Key, int] = {}
        self._near_end = near_end
        self._awaits = awaits
        self._holds = holds or awaits
        self.late_floor = LONGEST_CHECK_AFTER if looks else 0
        """How long ago an attempt may have become overdue, in ms, to make a difference:
        that decides when it is checked again, where it may be extended."""
        self.outcomes = outcomes
        self.bounded = frozenset(
            name
            for name, step in (*plan.steps.items(), *plan.kinds.items())
            if outcomes or is_bounded(step)
        )

    def is_bounded(self, name: str) -> bool:
        """Whether it matters how long requests to perform the step, or the item, may act."""
        return step_of(name) in self.bounded

    def patience(self, name: str) -> int:
        """How much later than its record's complete-by a request to perform the step ends."""
        step = self.plan.defined(name)
        assert step is not None
        return patience_of(step, PERFORM)

    def steps(self, task: Task) -> Iterable[str]:
        """The names of the task's records, in the order of their definition."""
        known = [name for name in self.plan.for_task(task).steps if name in task.steps]
        return known + sorted(task.steps.keys() - set(known))

    def number(self, task: Task) -> int:
        """The canonical record's number."""
        key = _key(task)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self.tasks)
            self.tasks.append(task)
        return found

    def canonical(self, task: Task, now: int) -> tuple[int, Mapping[str, str]]:
        """The number of the record as it is at `now`, and the names of the nonces it holds."""
        names: dict[str, str] = {}
        steps = {name: self._step(name, task.steps[name], now, names) for name in self.steps(task)}
        return self.number(self._task(task, steps, now)), names

    def renamed(self, number: int, names: Mapping[str, str]) -> int:
        """The record with other names for its nonces."""
        return self.number(_with_locks(self.tasks[number], lambda name: names.get(name, name)))

    def locks(self, number: int) -> set[str]:
        """The locks that the record has."""
        return {r.locked_by for r in self.tasks[number].steps.values() if r.locked_by}

    def names(self, number: int) -> Iterable[str]:
        """The nonces that the record holds, in the order of its steps."""
        attempts = (record.situation for record in self.tasks[number].steps.values())
        under_way = (one for one in attempts if isinstance(one, UnderWay))
        tokens = (token for one in under_way for token in (one.lock, one.sent_by) if token)
        return list(dict.fromkeys(map(name_of, tokens)))

    def instants(self, number: int) -> set[int]:
        """The instants ahead at which the record begins to be something else to a decision."""
        task = self.tasks[number]
        found = {task.due_at}
        if self._near_end:
            found.add(task.complete_by)
        for name, record in task.steps.items():
            found |= {record.claim_by or 0, record.last_until or 0}
            found |= {record.not_before or 0, record.heartbeat_by or 0}
            found.add(record.remind_at or 0)
            found |= {record.retry_window.until or 0, record.polling.until if record.polling else 0}
            if isinstance(record.situation, WithoutAgent):
                found.add(record.situation.until)
            if record.held_since is not None:
                found.add(record.held_since + NOTICED)
            step = self.plan.defined(name)
            if step is not None and (until := key_until(step, record)) is not None:
                undo_by = until - time_of(step, UNDO)
                found |= {until, undo_by, undo_by - SKEW, undo_by - SKEW - time_of(step, PERFORM)}
            if self.is_bounded(name):
                ends_by = record.last_until and record.last_until + self.patience(name)
                found |= {at + SKEW for at in (ends_by, record.acts_until) if at}
        found |= {owed.at + START_WITHIN for owed in task.owed}
        return {at for at in found if at > T0}

    def _step(self, name: str, record: StepRecord, now: int, names: dict[str, str]) -> StepRecord:
        bounded = self.is_bounded(name)
        settled = record.process_state in SETTLED
        acts_until = over(record.acts_until, now, SKEW) if bounded else None
        step = self.plan.defined(name)
        forgotten_at = None if step is None else key_until(step, record)
        return StepRecord(
            operation=record.operation,
            situation=self._situation(name, record, now, names),
            # Every move out of these states sets it to 0.
            failure_count=0 if settled else record.failure_count,
            # Only whether it was ever claimed is asked, where no backlog is known; and whether that
            # was before the end of its retries, where there is one.
            started_at=_started_at(record, now),
            # Nothing waits for the end of a right to act that a service fences.
            acts_until=None if acts_until is not None and acts_until <= T0 - SKEW else acts_until,
            round=record.round,
            agent=record.agent,
            tried=record.tried,
            after_undo=record.after_undo,
            outcome_unknown=self.outcomes and record.outcome_unknown,
            # Under a key that is forgotten, a proof lets the step begin a new round.
            effect=record.effect if self.outcomes or forgotten_at is not None else None,
            # Which number a reminder has is for people and for services.
            # No backlog is known here, and no story is so long that calls in vain would count.
            granted=record.granted,
            corrections=record.corrections,
            retry_window=CLOSED if settled else self._retry_window(record, now),
            # Only whether it is polled, and until when: how often and since when is for people.
            polling=_polling(record, now),
            # Only whether its answer is still to come is asked.
            wait_ended_at=None if record.wait_ended_at is None else T0,
            signal=record.signal,
            error=UNEXPECTED if not settled and _fails_unexpectedly(record) else None,
            # Since when the key is known is asked only where it is not stored until when.
            key_until=over(forgotten_at, now),
            left_out=record.left_out,
            unanswered=record.unanswered,
            # Of one that awaits its result, only whether there is time to be given back is asked.
            finished_at=over(record.finished_at, now, 1) if record.awaits_result else None,
            # When others finished, result and other errors are for people and for probes.
        )

    def _retry_window(self, record: StepRecord, now: int) -> RetryWindow:
        """One wait for a result is another failure than errors that began before it."""
        since = record.retry_window.unexpected_since
        return replace(
            record.retry_window,
            until=_retry_until(record, now),
            unexpected_since=over(since, now, 1 if self._awaits else 0),
        )

    def _situation(  # noqa: PLR0911  # one for each situation
        self, name: str, record: StepRecord, now: int, names: dict[str, str]
    ) -> Situation:
        bounded = self.is_bounded(name)
        acts_for = SKEW + self.patience(name) if bounded else 0
        # How late it is decides only between the short interval and the long one.
        late_floor = max(BRIEFLY_LATE, self.late_floor)

        def at(instant: int, floor: int = 0) -> int:
            return max(T0 + instant - now, T0 - floor)

        match record.situation:
            case NotBegun():
                return NotBegun()
            case Ready() as ready:
                return Ready(
                    claim_by=at(ready.claim_by, acts_for),
                    late_since=over(ready.late_since, now, late_floor),
                    parked_since=_held_since(record, now),
                )
            case WaitsUntil() as wait:
                return WaitsUntil(
                    not_before=at(wait.not_before), claim_by=at(wait.claim_by, acts_for)
                )
            case Parked() as parked:
                return Parked(
                    not_before=at(parked.not_before),
                    claim_by=at(parked.claim_by, acts_for),
                    # Only whether the hold began so long ago that its end would be known.
                    since=_held_since(record, now) or T0,
                    held_for=parked.held_for,
                )
            case Asleep() as asleep:
                return Asleep(until=at(asleep.until), since=T0)  # since when is for people
            case AwaitsSignal() as wait:
                # Of its begin, only for how long it waits in all is asked.
                until = at(wait.until)
                return AwaitsSignal(until=until, since=until - (wait.until - wait.since))
            case AtAgent() as attempt:
                return AtAgent(
                    lock=_lock(attempt.lock, names),
                    until=at(attempt.until, max(acts_for, self.late_floor)),
                    # Only whether the attempt was ever heard of is asked.
                    heard_at=None if attempt.heard_at is None else T0,
                    heartbeat_by=over(attempt.heartbeat_by, now, self.late_floor),
                    extra=attempt.extra,
                    late_since=over(attempt.late_since, now, late_floor),
                    # No queue of these explorations is known: none was read past an attempt's end.
                )
            case AwaitsCallback() as wait:
                return AwaitsCallback(
                    lock=_lock(wait.lock, names),
                    until=at(wait.until, max(acts_for, self.late_floor)),
                    heard_at=None if wait.heard_at is None else T0,
                    extra=wait.extra,
                    late_since=over(wait.late_since, now, late_floor),
                    remind_every=wait.remind_every,
                    remind_at=over(wait.remind_at, now, BRIEFLY_LATE),
                    reminded_by=wait.reminded_by and _lock(wait.reminded_by, names),
                )
            case Ended() as ended:
                # Until when a request may act, where that is asked.
                return Ended(
                    how=ended.how, until=over(ended.until, now, acts_for) if bounded else None
                )

    def _task(self, task: Task, steps: Mapping[str, StepRecord], now: int) -> Task:
        is_open = task.lane.startswith(Lane.OPEN)
        far = T0 + self.plan.complete_within
        complete_by = max(T0 + task.complete_by - now, T0) if self._near_end else far
        start_at = complete_by - self.plan.complete_within
        if not task.steps and not task.ended:  # only for how long its Start is late is asked
            start_at = max(T0 + task.start_at - now, T0 - BRIEFLY_LATE)
        assert not (self._near_end and task.credited_until), (
            "what is given back moves the complete-by"
        )
        credited_until = None
        if self._holds and task.ending is None and (task.credited_until or 0) >= now:
            # One that is over decides nothing: a step that was parked, or has awaited its result,
            # since before now has something to give back, and how much moves only the complete-by.
            credited_until = over(task.credited_until, now)
        assert self._near_end or task.complete_by - now > self.plan.complete_within // 2
        ending, closing = task.ending, task.closing
        if closing is not None:
            by = T0 if task.ended else max(T0 + closing.by - now, T0)
            closing = replace(closing, by=by)
        return replace(
            task,
            closing=closing,
            version=VERSION,
            created_at=T0,
            # What a resubmitted task has again is the difference of the two.
            start_at=start_at,
            complete_by=complete_by,
            lane=task.lane,
            due_at=max(T0 + task.due_at - now, T0) if is_open else T0,
            steps=steps,
            owed=_owed(task.owed, now),
            # What it failed of is for people; nothing is decided by it.
            ending=ending and replace(ending, why="", step=None, error=None),
            failure=None if task.ended else task.failure,
            ended_at=None if task.ended_at is None else T0,
            signals=tuple(replace(one, at=T0) for one in task.signals),
            # Only whether the contents were erased is asked.
            erased_at=None if task.erased_at is None else T0,
            credited_until=credited_until,
            # Retention is longer than any story here.
            expires_at=None if task.expires_at is None else T0 + task.retain_for,
        )


def is_bounded(step: StepPlan) -> bool:
    """Whether no request to perform the step may act after its complete-by, clocks aside."""
    return step.compensation is not None and not step.compensation.fences_late_performs


def moved(task: Task, by: int) -> Task:
    """The record as it was seen when now was `by` ms later: its instants are moved, none cut."""

    def at(instant: int | None) -> int | None:
        return None if instant is None else instant + by

    steps = {
        name: replace(
            record,
            situation=_moved(record.situation, by),
            acts_until=at(record.acts_until),
            retry_window=record.retry_window.later(by),
            polling=record.polling and record.polling.later(by),
            key_until=at(record.key_until),
            started_at=at(record.started_at) if record.retry_window.until else record.started_at,
            finished_at=at(record.finished_at),
        )
        for name, record in task.steps.items()
    }
    return replace(
        task,
        steps=steps,
        closing=task.closing and replace(task.closing, by=task.closing.by + by),
        start_at=task.start_at + by,
        complete_by=task.complete_by + by,
        due_at=task.due_at + by,
        credited_until=at(task.credited_until),
        owed=tuple(replace(owed, at=owed.at + by) for owed in task.owed),
    )


def _moved(situation: Situation, by: int) -> Situation:
    found = {
        field.name: getattr(situation, field.name) + by
        for field in fields(situation)
        if field.name in INSTANTS and getattr(situation, field.name) is not None
    }
    return replace(situation, **found)


def _fails_unexpectedly(record: StepRecord) -> bool:
    return record.error is not None and record.error.unexpected


def _held_since(record: StepRecord, now: int) -> int | None:
    if record.held_since is None or record.retry_window.until is None:
        return over(record.held_since, now, NOTICED)
    return T0 + record.held_since - now


def _started_at(record: StepRecord, now: int) -> int | None:
    """T0, or, of an attempt that may be the last one in its time, when it began."""
    if record.started_at is None:
        return None
    if record.retry_window.until is None or not record.under_way:
        return T0
    return T0 + record.started_at - now


def _retry_until(record: StepRecord, now: int) -> int | None:
    """The end of the step's retries, as much before or after the beginning of the attempt.

    That of a parked step moves by the whole time for which it was parked.
    """
    if record.retry_window.until is not None and record.held_since is not None:
        return T0 + record.retry_window.until - now
    if record.retry_window.until is None or not record.under_way or record.started_at is None:
        return over(record.retry_window.until, now)
    began = T0 + record.started_at - now
    return max(T0 + record.retry_window.until - now, began)


def _polling(record: StepRecord, now: int) -> Polling | None:
    """The step's polling. Its end in a parked step is as long after the parking as it was."""
    if record.polling is None:
        return None
    until, parked_since = record.polling.until, _held_since(record, now)
    if record.held_since is None or parked_since is None:
        end = over(until, now) or T0
    else:
        end = parked_since + max(0, until - record.held_since)
    return Polling(count=1, since=T0, until=end)


def _lock(token: str, names: dict[str, str]) -> str:
    name = names.setdefault(name_of(token), NAMES[len(names)])
    return token_of(name, token)


def _with_locks(task: Task, rename: Callable[[str], str]) -> Task:
    def renamed(token: str) -> str:
        return token_of(rename(name_of(token)), token)

    steps = dict[str, StepRecord]()
    for name, record in task.steps.items():
        attempt = record.situation
        if isinstance(attempt, AtAgent | AwaitsCallback):
            attempt = replace(attempt, lock=renamed(attempt.lock))
        if isinstance(attempt, AwaitsCallback) and attempt.reminded_by:
            attempt = replace(attempt, reminded_by=renamed(attempt.reminded_by))
        steps[name] = replace(record, situation=attempt)
    return replace(task, steps=steps)


def _owed(owed: tuple[Owed, ...], now: int) -> tuple[Owed, ...]:
    """Which is older, and whether it is old enough to be sent by others; not what it says."""
    numbers = sorted({each.seq for each in owed})
    rank = {seq: VERSION - len(numbers) + 1 + place for place, seq in enumerate(numbers)}
    return tuple(
        replace(each, seq=rank[each.seq], at=max(T0 + each.at - now, T0 - START_WITHIN), detail="")
        for each in owed
    )


def _key(task: Task) -> Key:
    return (
        task.state,
        task.start_at,
        task.complete_by,
        task.lane,
        task.due_at,
        task.owed,
        task.ending,
        task.closing,
        task.ended_early is None,
        task.command_ids,
        tuple(task.fan_outs.items()),
        tuple(task.added.items()),
        task.signals,
        task.signals_left,
        task.credited_until,
        task.failure,
        task.corrections,
        task.erased_at,
        tuple(sorted(task.used_rounds.items())),
        *((name, record) for name, record in task.steps.items()),
    )
