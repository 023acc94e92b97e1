"""Bulk runs of tables that were restored to an earlier instant.

Whatever people asked of a run after the instant is lost, also that it stops. So a run that would go
on is paused before a supervisor runs, and a person decides whether it resumes.
"""

from contextlib import suppress
from dataclasses import dataclass

from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.errors import UnreadableRecord
from roundsman.model.bulk_run import (
    BulkRecord,
    ListedRun,
    RequestAction,
    RunRequest,
    RunState,
    requested,
)
from roundsman.model.instants import MINUTE
from roundsman.wire.limits import wire_text
from roundsman_console.acts.bulk.start import bulk_runs_of, own_principal
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.base.errors import InspectorError

CLOCKS_DIFFER = 5 * MINUTE
"""ms by which the clock of a person's machine may be ahead. Tables are restored to an instant that
is at least as long ago, so nobody has decided in that time since."""


@dataclass(frozen=True, slots=True)
class RestoredRun:
    """A bulk run that would go on with the restored tables."""

    record: BulkRecord
    seen: int
    """When the last request about the run was made, in epoch ms; 0 if there is none."""


def restored_runs(stack: DeployedStack, restored_to: int) -> list[RestoredRun]:
    """Return the runs that a supervisor would carry on although nobody has decided it since.

    A run is left out if a person started it or asked something of it more than CLOCKS_DIFFER after
    `restored_to` (epoch ms), or if it cannot be read: no supervisor carries out such a run. Raises
    TryAgain or CallRefused if ControlTable cannot be read.
    """
    runs = bulk_runs_of(stack)
    found = []
    for listed in runs.open_runs():
        if max(listed.started_at, listed.asked_at) > restored_to + CLOCKS_DIFFER:
            continue
        with suppress(UnreadableRecord):
            record = _as_requested(runs, listed)
            if record is not None and record.state is RunState.RUNNING:
                found.append(RestoredRun(record, listed.asked_at))
    return found


def _as_requested(runs: DynamoBulkRuns, listed: ListedRun) -> BulkRecord | None:
    """The run as it is once the request that waits is carried out."""
    record = runs.load(listed.run_id, listed.starter)
    if record is None or listed.asked_at <= record.asked_at:
        return record
    request = runs.request(listed)
    return record if request is None else requested(record, request, now())


def pause_restored(stack: DeployedStack, found: RestoredRun, *, by: str, reason: str) -> None:
    """Ask for a pause of the run; the supervisor carries it out before it sends anything.

    Raises InspectorError if somebody else has asked for something since the run was read.
    """
    request = RunRequest(
        RequestAction.PAUSE, wire_text(by), own_principal(), wire_text(reason), now()
    )
    if not bulk_runs_of(stack).ask(found.record.run.id, request, seen=found.seen):
        raise InspectorError(f"Somebody has just asked for a change of {found.record.run.id}.")
