"""Backups of a world's tables, and what a restore of them needs beside the tables."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roundsman.model.bulk_run import RequestAction, RunRequest, RunState, requested
from roundsman.model.events import Reconcile
from roundsman.model.instants import iso
from roundsman.model.task import Task
from roundsman_testing.dynamodb.expressions import Item
from roundsman_testing.ledger import EffectKey, Ledger
from roundsman_testing.memory import MemoryBulkRuns
from roundsman_testing.world.course import Course
from roundsman_testing.world.deliveries import Deliveries
from roundsman_testing.world.operator import Operator
from roundsman_testing.world.queues import (
    COMMANDS,
    EFFECTS,
    OPERATOR_SENDER,
    REPLIES,
    REQUESTS,
)
from roundsman_testing.world.simulated_stack import SimulatedStack


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


class Backups:
    """Takes backups of the tables, and puts them back as docs/runbook/restore.md says."""

    def __init__(
        self,
        stack: SimulatedStack,
        deliveries: Deliveries,
        course: Course,
        operator: Operator,
        ledger: Ledger,
    ) -> None:
        self._stack = stack
        self._deliveries = deliveries
        self._course = course
        self._operator = operator
        self._ledger = ledger

    def taken(self) -> Backup:
        """The tables as they are now."""
        tasks = dict(self._stack.processes.watch.tasks)
        return Backup(
            self._stack.clock.now,
            self._stack.processes.tables.backup(),
            tasks,
            {task_id: frozenset(names) for task_id, names in self._stack.post.status_names.items()},
            {task_id: self._ledger.standing(task_id) for task_id in tasks},
        )

    def restore(self, backup: Backup) -> None:
        """Put the tables back, and let the scheduler reconcile each open order."""
        processes, before = self._stack.processes, self._stack.processes.tables.backup()
        self._stack.queues.empty(COMMANDS, REPLIES, REQUESTS)
        processes.tables.restore(backup.tables)
        processes.forget_instances()
        _pause_runs(processes.bulk_runs, self._stack.clock.now)
        self._stack.post.status_names = {
            task_id: set(names) for task_id, names in backup.status_names.items()
        }
        late = [mail.body for mail in self._stack.queues.waiting if mail.queue == EFFECTS]
        processes.watch.begin_anew(
            backup.tasks,
            before,
            processes.tables.backup(),
            effects_unknown=[
                task_id
                for task_id in processes.watch.tasks
                if self._ledger.standing(task_id) != backup.effects.get(task_id, [])
                or any(json.dumps(task_id) in body for body in late)
            ],
        )
        self._stack.note("the tables are restored to {}", iso(backup.at))
        for task in processes.watch.open_tasks():
            asked = self._operator.asked("the tables were restored")
            self._operator.ask(task.task_id, Reconcile(asked, backup.at))
        with self._course.alone():  # the supervisor is stopped until then
            for mail in self._stack.queues.visible():
                is_left = not mail.gone and mail.visible_at <= self._stack.clock.now
                if mail.queue == COMMANDS and is_left:
                    self._deliveries.deliver_alone(mail)


def _pause_runs(runs: MemoryBulkRuns, now: int) -> None:
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
