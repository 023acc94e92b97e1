"""The stored form of a step: one flat map, in which a situation is a set of attributes.

The attributes are those of the first records, so `CompleteBy` has the time limit of each situation:
until when an attempt waits, or by when a ready step is to be claimed. Values that a situation does
not have are not read. If that limit is missing, the last instant that is known of the step stands
for it, so that the step is looked at.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Any, Final, TypeAlias

from roundsman.model.instants import LONG_OVER
from roundsman.model.json import Json
from roundsman.model.situations import (
    Asleep,
    AtAgent,
    Attempt,
    AwaitsCallback,
    AwaitsSignal,
    End,
    Ended,
    NotBegun,
    Parked,
    Ready,
    Situation,
    ToBegin,
    UnderWay,
    WaitsUntil,
    WithoutAgent,
)
from roundsman.model.states import ProcessState
from roundsman.model.task import (
    PERFORM,
    UNDO,
    AfterUndo,
    Effect,
    LeftOut,
    Operation,
    StepError,
    StepRecord,
)

_ENDS: Final[Mapping[ProcessState, tuple[Operation, End]]] = {
    ProcessState.PROCESSED: (PERFORM, End.SUCCEEDED),
    ProcessState.SKIPPED: (PERFORM, End.SKIPPED),
    ProcessState.ERROR: (PERFORM, End.FAILED),
    ProcessState.UNDONE: (UNDO, End.SUCCEEDED),
    ProcessState.UNDO_ERROR: (UNDO, End.FAILED),
}


@dataclass(slots=True)
class StoredStep:
    """The attributes of a step as they are stored (`roundsman.aws.dynamodb.codec.STEP`).

    Those that the situation does not decide have the meaning that they have in StepRecord.
    """

    process_state: ProcessState = ProcessState.PENDING
    """The state of the step. What it does or waits for follows from it and from the attributes of
    the situation: `locked_by`, `complete_by`, `not_before`, `held_since`, `waiting`,
    `asleep_since` and `awaits_since`."""
    locked_by: str | None = None
    """The lock token of the attempt; None if no attempt is under way."""
    complete_by: int | None = None
    """The time limit of the situation. At the agent: until when the attempt waits for its reply;
    the request may be allowed to act for longer (`roundsman.engine.request_deadlines`). Awaits its
    callback, or its signal: until when. Ready, waits or parked: when the step should have been
    claimed. Asleep: when the sleep ends. Processed or Error: until when the last attempt would have
    waited."""
    not_before: int | None = None
    """While the step waits: the earliest start of the next attempt. While it is parked: when its
    agent is looked at again."""
    held_since: int | None = None
    """Since when the step is parked, or was before it became ready: until it is claimed."""
    held_for: str | None = None
    """While the step is parked: whose hold it waits for (`roundsman.model.situations.Parked`)."""
    asleep_since: int | None = None
    """While the step is asleep: when its sleep began."""
    awaits_since: int | None = None
    """While the step awaits its signal: when its wait began."""
    heartbeat_by: int | None = None
    """When the attempt is overdue if it shows no progress; None if it needs no heartbeat."""
    heard_at: int | None = None
    """When the agent last reported on the attempt (progress, or waiting for a callback)."""
    waiting: bool = False
    """The attempt waits for a callback."""
    remind_every: int = 0
    """While the attempt waits for a callback: the time in ms between two reminders; 0 for none."""
    remind_at: int | None = None
    """When the next reminder is due; None if no reminders are sent."""
    reminded_by: str | None = None
    """The token of the last reminder. It identifies the message that caused it, as `locked_by` does
    for a claim, so that a redelivery of that message sends it again."""
    extra: int = 0
    """Time in ms that a person added to the attempt under way."""
    late_since: int | None = None
    """While an attempt is under way: since when it is late, if its reply may wait in its queue.
    While the step is ready: since when Starts of it have been late."""
    awaits_result: bool = False
    """Of a step that is Processed: what comes after it waits for its result."""
    read_past_at: int | None = None
    """While an attempt is late: when it was first known that a reply was read that was sent after
    the attempt's end; None if it is not known."""

    round: int = 1
    agent: str | None = None
    tried: tuple[str, ...] = ()
    corrections: int = 0
    reminders: int = 0
    polls: int = 0
    polled_since: int | None = None
    poll_until: int | None = None
    started_at: int | None = None
    acts_until: int | None = None
    effect: Effect | None = None
    outcome_unknown: bool = False
    wait_ended_at: int | None = None
    key_since: int | None = None
    key_until: int | None = None
    failure_count: int = 0
    retry_until: int | None = None
    unexpected_since: int | None = None
    waits: int = 0
    uncounted_timeouts: int = 0
    uncounted_calls: int = 0
    granted: int = 0
    finished_at: int | None = None
    result: Json = None
    left_out: LeftOut | None = None
    signal: str | None = None
    error: StepError | None = None
    after_undo: AfterUndo | None = None


_LASTING: Final = tuple(
    one.name for one in fields(StepRecord) if one.name not in ("operation", "situation")
)
"""The attributes that do not depend on the situation."""
_lasting: Final = attrgetter(*_LASTING)
Values: TypeAlias = dict[str, Any]


def stored_step(record: StepRecord) -> StoredStep:
    """Return the step as it is stored."""
    lasting = dict(zip(_LASTING, _lasting(record), strict=True))
    return StoredStep(record.process_state, **_values(record.situation), **lasting)


def _values(situation: Situation) -> Values:
    """Return the attributes of the situation, without those at their defaults."""
    values: Values = {}
    match situation:
        case NotBegun():
            pass
        case Ready():
            values = {"late_since": situation.late_since, "held_since": situation.parked_since}
        case WaitsUntil():
            values = {"not_before": situation.not_before}
        case Parked():
            values = {
                "not_before": situation.not_before,
                "held_since": situation.since,
                "held_for": situation.held_for,
            }
        case Asleep():
            values = {"asleep_since": situation.since, "complete_by": situation.until}
        case AwaitsSignal():
            values = {"awaits_since": situation.since, "complete_by": situation.until}
        case AtAgent():
            values = {**_of_attempt(situation), "heartbeat_by": situation.heartbeat_by}
        case AwaitsCallback():
            values = {
                **_of_attempt(situation),
                "waiting": True,
                "remind_every": situation.remind_every,
                "remind_at": situation.remind_at,
                "reminded_by": situation.reminded_by,
            }
        case Ended():
            awaits = situation.how is End.AWAITS_RESULT
            values = {"complete_by": situation.until, "awaits_result": awaits}
    if isinstance(situation, ToBegin):
        values["complete_by"] = situation.claim_by
    return values


def _of_attempt(attempt: UnderWay) -> Values:
    return {
        "locked_by": attempt.lock,
        "complete_by": attempt.until,
        "heard_at": attempt.heard_at,
        "extra": attempt.extra,
        "late_since": attempt.late_since,
        "read_past_at": attempt.read_past_at,
    }


def step_record(found: StoredStep) -> StepRecord:
    """Return the step that is stored so."""
    operation, situation = _situation(found)
    lasting: Values = dict(zip(_LASTING, _lasting(found), strict=True))
    if not isinstance(situation, UnderWay | Ended):
        # Older code keeps the time that was added until the next claim.
        lasting["granted"] = found.granted + found.extra
    return StepRecord(operation=operation, situation=situation, **lasting)


def _situation(found: StoredStep) -> tuple[Operation, Situation]:
    state = found.process_state
    if state in _ENDS:
        operation, how = _ENDS[state]
        if how is End.SUCCEEDED and operation == PERFORM and found.awaits_result:
            how = End.AWAITS_RESULT
        request_may_act = operation == PERFORM and how is not End.SKIPPED
        return operation, Ended(how=how, until=found.complete_by if request_may_act else None)
    if state is ProcessState.PROCESSING:
        return PERFORM, _under_way(found)
    if state is ProcessState.PENDING:
        return PERFORM, _without_agent(found) or _idle(found) or NotBegun()
    if found.locked_by is not None:
        return UNDO, _at_agent(found)
    return UNDO, _idle(found) or Ready(claim_by=_limit(found))


def _limit(found: StoredStep) -> int:
    """The time limit; if it is missing, the last instant that is known of the step."""
    known = (found.complete_by, found.not_before, found.finished_at, found.started_at)
    return next((at for at in known if at is not None), LONG_OVER)


def _without_agent(found: StoredStep) -> WithoutAgent | None:
    if found.asleep_since is not None:
        return Asleep(until=_limit(found), since=found.asleep_since)
    if found.awaits_since is not None:
        return AwaitsSignal(until=_limit(found), since=found.awaits_since)
    return None


def _idle(found: StoredStep) -> ToBegin | None:
    by = _limit(found)
    if found.not_before is None:
        if found.complete_by is None:
            return None
        return Ready(claim_by=by, late_since=found.late_since, parked_since=found.held_since)
    if found.held_since is None:
        return WaitsUntil(not_before=found.not_before, claim_by=by)
    return Parked(
        not_before=found.not_before,
        claim_by=by,
        since=found.held_since,
        held_for=found.held_for,
    )


def _under_way(found: StoredStep) -> Attempt:
    if not found.waiting:
        return _at_agent(found)
    return AwaitsCallback(
        lock=found.locked_by or "",
        until=_limit(found),
        heard_at=found.heard_at,
        extra=found.extra,
        late_since=found.late_since,
        read_past_at=found.read_past_at,
        remind_every=found.remind_every,
        remind_at=found.remind_at,
        reminded_by=found.reminded_by,
    )


def _at_agent(found: StoredStep) -> AtAgent:
    return AtAgent(
        lock=found.locked_by or "",
        until=_limit(found),
        heard_at=found.heard_at,
        extra=found.extra,
        late_since=found.late_since,
        read_past_at=found.read_past_at,
        heartbeat_by=found.heartbeat_by,
    )
