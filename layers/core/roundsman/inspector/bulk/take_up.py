"""Finding a bulk run, and taking up one that was stopped or interrupted."""

import re
from dataclasses import replace

from roundsman.aws.clock import now
from roundsman.inspector.bulk.documents import is_carried_on, resume_command
from roundsman.inspector.bulk.run import RunState, resumed
from roundsman.inspector.bulk.store import HELD_FOR, DynamoBulks, Holder, StoredRun
from roundsman.inspector.errors import InspectorError, NotFound
from roundsman.inspector.sanitize import inert
from roundsman.inspector.views.task_view import second

_RUN = re.compile(r"b-[0-9a-f]{8}", re.ASCII)


def find_run(bulks: DynamoBulks, run_id: str) -> StoredRun:
    """Return the run with this id. Raises NotFound."""
    if not _RUN.fullmatch(run_id):
        raise NotFound(
            f"{inert(run_id[:50])!r} is not a bulk run id: b- and eight of 0-9 and a-f. List "
            "the runs with: roundsman bulk ls",
        )
    record = bulks.load(run_id)
    if record is None:
        raise NotFound(f"There is no bulk run {run_id}, or it was removed after 90 days.")
    return record


def take_up(
    bulks: DynamoBulks, record: StoredRun, at: int, holder: Holder, reason: str
) -> StoredRun:
    """Store that `holder` resumes the run at `at` (epoch ms), and return the stored record.

    Raises InspectorError if another process performs the run, or if it is finished.
    """
    _check_free(record)
    taken = bulks.save(
        replace(
            record,
            state=RunState.RUNNING,
            why="",
            on_hold=False,
            progress=resumed(record.progress, at),
            holder=replace(holder, until=at + HELD_FOR),
            carried_on=(
                *record.carried_on,
                f"{holder.by} from {holder.host} at {second(now())}"
                + (f": {reason}" if reason else ""),
            ),
        ),
        fresh=True,
    )
    if taken is None:
        raise InspectorError(f"Another process has just resumed {record.run.id}.")
    return taken


def _check_free(record: StoredRun) -> None:
    """Raise InspectorError if another process performs the run, or if the run is finished."""
    if is_carried_on(record, now()) and record.holder is not None:
        raise InspectorError(
            f"{record.holder.by} on {record.holder.host} already runs {record.run.id}; "
            f"progress was last saved at {second(record.saved_at)}. Stop it with: roundsman "
            f"bulk stop {record.run.id}"
        )
    if resume_command(record, now()) is None:
        raise InspectorError(f"{record.run.id} is finished: there is nothing to resume.")
