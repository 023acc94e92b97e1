"""A record of a step in each situation."""

from collections.abc import Mapping

from roundsman.model.situations import (
    Asleep,
    AtAgent,
    AwaitsCallback,
    AwaitsSignal,
    End,
    Ended,
    Parked,
    Ready,
    WaitsUntil,
)
from roundsman.model.states import SituationName as S
from roundsman.model.task import UNDO, LeftOut, StepRecord
from tests.support.machine_world import T0

_READY = Ready(claim_by=T0)
_WAITS = WaitsUntil(not_before=T0, claim_by=T0)
_PARKED = Parked(not_before=T0, claim_by=T0, since=T0)
_AT_AGENT = AtAgent(lock="lock.1", until=T0)

RECORDS: Mapping[S, StepRecord] = {
    S.NOT_BEGUN: StepRecord(),
    S.READY: StepRecord(situation=_READY),
    S.WAITS: StepRecord(situation=_WAITS),
    S.PARKED: StepRecord(situation=_PARKED),
    S.ASLEEP: StepRecord(situation=Asleep(until=T0, since=T0)),
    S.AWAITS_SIGNAL: StepRecord(situation=AwaitsSignal(until=T0, since=T0)),
    S.AT_AGENT: StepRecord(situation=_AT_AGENT),
    S.AWAITS_CALLBACK: StepRecord(situation=AwaitsCallback(lock="lock.1", until=T0)),
    S.PROCESSED: StepRecord(situation=Ended(how=End.SUCCEEDED)),
    S.AWAITS_RESULT: StepRecord(
        situation=Ended(how=End.AWAITS_RESULT), left_out=LeftOut("it is too long")
    ),
    S.SKIPPED: StepRecord(situation=Ended(how=End.SKIPPED)),
    S.FAILED: StepRecord(situation=Ended(how=End.FAILED)),
    S.UNDO_READY: StepRecord(operation=UNDO, situation=_READY),
    S.UNDO_WAITS: StepRecord(operation=UNDO, situation=_WAITS),
    S.UNDO_PARKED: StepRecord(operation=UNDO, situation=_PARKED),
    S.UNDO_AT_AGENT: StepRecord(operation=UNDO, situation=_AT_AGENT),
    S.UNDONE: StepRecord(operation=UNDO, situation=Ended(how=End.SUCCEEDED)),
    S.UNDO_FAILED: StepRecord(operation=UNDO, situation=Ended(how=End.FAILED)),
}
