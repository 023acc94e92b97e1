"""A record of a step in each situation."""

from collections.abc import Mapping

from roundsman.model.states import ProcessState as P
from roundsman.model.states import Situation as S
from roundsman.model.task import StepRecord
from tests.support.machine_world import T0

RECORDS: Mapping[S, StepRecord] = {
    S.NOT_BEGUN: StepRecord(),
    S.READY: StepRecord(complete_by=T0),
    S.WAITS: StepRecord(not_before=T0),
    S.PARKED: StepRecord(not_before=T0, held_since=T0),
    S.AT_AGENT: StepRecord(process_state=P.PROCESSING, locked_by="lock.1"),
    S.AWAITS_CALLBACK: StepRecord(process_state=P.PROCESSING, locked_by="lock.1", waiting=True),
    S.PROCESSED: StepRecord(process_state=P.PROCESSED),
    S.SKIPPED: StepRecord(process_state=P.SKIPPED),
    S.FAILED: StepRecord(process_state=P.ERROR),
    S.UNDO_READY: StepRecord(process_state=P.UNDOING),
    S.UNDO_WAITS: StepRecord(process_state=P.UNDOING, not_before=T0),
    S.UNDO_PARKED: StepRecord(process_state=P.UNDOING, not_before=T0, held_since=T0),
    S.UNDO_AT_AGENT: StepRecord(process_state=P.UNDOING, locked_by="lock.1"),
    S.UNDONE: StepRecord(process_state=P.UNDONE),
    S.UNDO_FAILED: StepRecord(process_state=P.UNDO_ERROR),
}
