"""Backups of a world's tables, and what a restore of them needs beside the tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.bulk_run import RequestAction, RunRequest, RunState, requested
from roundsman.model.task import Task
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.ledger import EffectKey
from roundsman_testing.memory import MemoryBulkRuns
from roundsman_testing.world.queues import OPERATOR_SENDER


@dataclass(frozen=True, slots=True)
class Backup:
    """The four tables of a world at one instant, for `World.restore`."""

    at: int
    """The instant, in epoch ms."""
    tables: Mapping[str, Sequence[Item]]
    """The items, by table."""
    tasks: Mapping[str, Task]
    """The last record of each task, also of those that were removed by then."""
    status_names: Mapping[str, frozenset[str]]
    """The names of the statuses that were sent, by task."""
    effects: Mapping[str, Sequence[EffectKey]]
    """The effects that stood at the services, by task."""


def pause_runs(runs: MemoryBulkRuns, now: int) -> None:
    """Ask for a pause of each bulk run that would go on, as `roundsman reconcile` does."""
    for listed in runs.open_runs():
        record = runs.load(listed.run_id, listed.starter)
        if record is None:
            continue
        asked = runs.request(listed) if listed.asked_at > record.asked_at else None
        if asked is not None:
            record = requested(record, asked, now)
        if record.state is RunState.RUNNING:
            pause = RunRequest(
                RequestAction.PAUSE, "operator", OPERATOR_SENDER, "the tables were restored", now
            )
            runs.ask(listed.run_id, pause, seen=listed.asked_at)
