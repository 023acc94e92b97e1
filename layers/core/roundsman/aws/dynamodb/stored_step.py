"""The stored form of a step: one flat map, in which a situation is a set of attributes.

The attributes are those of the first records, so `CompleteBy` has the time limit of each situation:
until when an attempt waits, or by when a ready step is to be claimed. Values that a situation does
not have are not read. If that limit is missing, the last instant that is known of the step stands
for it, so that the step is looked at.

The lasting values of a step are in the same map, as StepRecord declares them
(`roundsman.aws.dynamodb.codec`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from roundsman.model.field_table import Stored
from roundsman.model.instants import LONG_OVER
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
    LEFT_OUT_SCHEMA,
    PERFORM,
    SIGNALS_SCHEMA,
    UNDO,
    Operation,
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
class StoredSituation:
    """The attributes of a step that its situation decides, as they are stored."""

    process_state: ProcessState
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
    asleep_since: Annotated[int | None, Stored(since=7)] = None
    """While the step is asleep: when its sleep began."""
    awaits_since: Annotated[int | None, Stored(since=SIGNALS_SCHEMA)] = None
    """While the step awaits its signal: when its wait began."""
    heartbeat_by: int | None = None
    """When the attempt is overdue if it shows no progress; None if it needs no heartbeat."""
    heard_at: int | None = None
    """When the agent last reported on the attempt (progress, or waiting for a callback)."""
    waiting: bool = False
    """The attempt waits for a callback."""
    remind_every: Annotated[int, Stored(since=3)] = 0
    """While the attempt waits for a callback: the time in ms between two reminders; 0 for none."""
    remind_at: Annotated[int | None, Stored(since=3)] = None
    """When the next reminder is due; None if no reminders are sent."""
    reminded_by: Annotated[str | None, Stored(since=3)] = None
    """The token of the last reminder. It identifies the message that caused it, as `locked_by` does
    for a claim, so that a redelivery of that message sends it again."""
    extra: int = 0
    """Time in ms that a person added to the attempt under way."""
    late_since: Annotated[int | None, Stored("Late", since=6)] = None
    """While an attempt is under way: since when it is late, if its reply may wait in its queue.
    While the step is ready: since when Starts of it have been late."""
    awaits_result: Annotated[bool, Stored(since=LEFT_OUT_SCHEMA)] = False
    """Of a step that is Processed: what comes after it waits for its result."""
    read_past_at: Annotated[int | None, Stored("Past", since=7)] = None
    """While an attempt is late: when it was first known that a reply was read that was sent after
    the attempt's end; None if it is not known."""


Values: TypeAlias = dict[str, Any]


def stored_situation(record: StepRecord) -> StoredSituation:
    """Return the situation of the step as it is stored."""
    return StoredSituation(record.process_state, **_values(record.situation))


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


def step_record(found: StoredSituation, lasting: Values) -> StepRecord:
    """Return the step that is stored with this situation and these lasting values."""
    operation, situation = _situation(found, lasting)
    if not isinstance(situation, UnderWay | Ended):  # older code keeps the time that was added
        lasting["granted"] += found.extra  # until the next claim
    return StepRecord(operation=operation, situation=situation, **lasting)


def _situation(found: StoredSituation, lasting: Values) -> tuple[Operation, Situation]:
    state = found.process_state
    if state in _ENDS:
        operation, how = _ENDS[state]
        if how is End.SUCCEEDED and operation == PERFORM and found.awaits_result:
            how = End.AWAITS_RESULT
        request_may_act = operation == PERFORM and how is not End.SKIPPED
        return operation, Ended(how=how, until=found.complete_by if request_may_act else None)
    by = _limit(found, lasting)
    if state is ProcessState.PROCESSING:
        return PERFORM, _under_way(found, by, waiting=found.waiting)
    if state is ProcessState.PENDING:
        return PERFORM, _without_agent(found, by) or _idle(found, by) or NotBegun()
    if found.locked_by is not None:
        return UNDO, _under_way(found, by, waiting=False)
    return UNDO, _idle(found, by) or Ready(claim_by=by)


def _limit(found: StoredSituation, lasting: Values) -> int:
    """The time limit; if it is missing, the last instant that is known of the step."""
    known = (
        found.complete_by,
        found.not_before,
        lasting["finished_at"],
        lasting["started_at"],
    )
    return next((at for at in known if at is not None), LONG_OVER)


def _without_agent(found: StoredSituation, until: int) -> WithoutAgent | None:
    if found.asleep_since is not None:
        return Asleep(until=until, since=found.asleep_since)
    if found.awaits_since is not None:
        return AwaitsSignal(until=until, since=found.awaits_since)
    return None


def _idle(found: StoredSituation, by: int) -> ToBegin | None:
    if found.not_before is None:
        if found.complete_by is None:
            return None
        return Ready(claim_by=by, late_since=found.late_since, parked_since=found.held_since)
    if found.held_since is None:
        return WaitsUntil(not_before=found.not_before, claim_by=by)
    return Parked(
        not_before=found.not_before, claim_by=by, since=found.held_since, held_for=found.held_for
    )


def _under_way(found: StoredSituation, until: int, *, waiting: bool) -> Attempt:
    values: Values = {
        "lock": found.locked_by or "",
        "until": until,
        "heard_at": found.heard_at,
        "extra": found.extra,
        "late_since": found.late_since,
        "read_past_at": found.read_past_at,
    }
    if not waiting:
        return AtAgent(**values, heartbeat_by=found.heartbeat_by)
    return AwaitsCallback(
        **values,
        remind_every=found.remind_every,
        remind_at=found.remind_at,
        reminded_by=found.reminded_by,
    )
