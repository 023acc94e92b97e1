"""Checks every record against the invariants at the moment when it is written."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain

from roundsman.alerts.group import AlertKind
from roundsman.engine.due import settled
from roundsman.model.failure import Group
from roundsman.model.plan import Plan
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.testing.invariants.claims import Claims
from roundsman.testing.invariants.looks import Looks
from roundsman.testing.invariants.rules import (
    NEVER,
    Broken,
    Invariant,
    of_alert,
    of_change,
    of_effects,
    of_ended,
    of_knowledge,
)
from roundsman.testing.ledger import Ledger
from roundsman.wire.alert import Alert

BEGUN_ANEW = (TaskState.UNDONE, TaskState.CANCELLED)
"""The end states that only `resubmit --again` reopens."""


class InvariantWatch:
    """Follows the tasks of a world and collects broken invariants.

    `tasks` holds the last record of each task; `due` the due entries of open tasks (epoch ms);
    `broken` the broken invariants so far. `on_write` is a hook for the store. It does not raise,
    because the caller could take the exception for a failure of the store.

    `on_reopened` is called with the id of each task that goes on after its end. `groups` returns
    the failure groups that are stored now.
    """

    def __init__(
        self,
        plan_of: Callable[[str], Plan | None],
        ledger: Ledger,
        clock: Callable[[], int],
        *,
        interval: int,
        slack: int = 0,
    ) -> None:
        """Start without tasks.

        `interval` is the time between two passes of the supervisors, in ms. `slack` is how late a
        due entry may be because clocks differ, in ms.
        """
        self._slack = slack
        self._plan_of = plan_of
        self._ledger = ledger
        self._clock = clock
        self._dirty: dict[str, None] = {}
        self.claims = Claims()
        self.looks = Looks(interval)
        self.tasks: dict[str, Task] = {}
        self.due: dict[str, int] = {}
        self.broken: list[Broken] = []
        self.on_reopened: Callable[[str], None] = lambda _: None
        self.groups: Callable[[], Sequence[Group]] = tuple
        self._open: set[str] = set()
        self._failed: dict[str, set[str]] = {}
        self._alerted: set[str] = set()
        self._begun_anew: dict[str, dict[str, int]] = {}

    def on_write(self, task: Task) -> None:
        """Check a record that is stored, or removed instead of being stored."""
        before = self.tasks.get(task.task_id)
        self.tasks[task.task_id] = task
        if before is not None and before.ended and not task.ended:
            self.on_reopened(task.task_id)
        if task.lane.startswith("open#"):
            self.due[task.task_id] = task.due_at
        else:
            self.due.pop(task.task_id, None)
        self._dirty[task.task_id] = None
        if task.failure is not None:
            self._failed.setdefault(task.failure, set()).add(task.task_id)
        plan, now = self._plan_of(task.plan), self._clock()
        self.looks.written(plan, task, now, is_open=task.task_id in self.due)
        if plan is not None:
            self.broken += of_change(plan, before, task, now, slack=self._slack)
        self.broken += self.claims.of_change(before, task, now)
        if before is not None and before.state in BEGUN_ANEW and not task.ended:
            rounds = {name: record.round for name, record in task.steps.items()}
            self._begun_anew[task.task_id] = rounds

    def touched(self, task_id: str) -> None:
        """Note that an effect of this task may have been performed or undone."""
        self._dirty[task_id] = None

    def on_load(self, task_id: str) -> None:
        """Note that a scheduler or a supervisor read this task."""
        self.broken += self.looks.looked(task_id, self._clock())

    def on_alert(self, alert: Alert) -> None:
        """Check an alert when it is published, because the stored tasks may change right after."""
        group = alert.attributes.get("group", "")
        if not group:
            return  # about the sender of a command, and no failure
        self.broken += of_alert(alert, self._failed.get(group, ()), self._standing_in(group))
        if alert.attributes.get("news") == AlertKind.CLEAR:
            self._alerted.discard(group)
        else:
            self._alerted.add(group)

    def look(self, told: Mapping[str, Collection[str]]) -> None:
        """Check each task that changed since the last call against its effects and statuses.

        Called after each event. `told` maps each task to the names of the statuses sent for it.
        """
        groups = self.groups()
        is_open = {group.id for group in groups if group.closed_at is None}
        for closed in self._open - is_open:
            self._dirty.update(dict.fromkeys(self._standing_in(closed)))
            self._alerted.discard(closed)
        self._open = is_open
        for group in groups:
            if group.id in is_open - self._alerted and group.told_at is not None:
                what = f"{group.id} counts as told, and no alert was sent"
                self.broken.append(Broken(Invariant.ALERTED, group.opened_by, what))
        for task_id in self._dirty:
            task = self.tasks.get(task_id)
            plan = self._plan_of(task.plan) if task is not None else None
            if task is None or plan is None:
                continue
            standing = self._ledger.standing(task_id)
            self.broken += chain(
                of_effects(plan, task, standing, self._begun_anew.get(task_id, NEVER)),
                of_knowledge(task, standing),
                of_ended(task, told.get(task_id, ()), is_open),
            )
            self.broken += [
                Broken(Invariant.ONCE, task_id, f"{effect.key} came about {count} times")
                for effect in standing
                if (count := self._ledger.count[effect.key]) > 1
            ]
        self._dirty.clear()

    def _standing_in(self, group: str) -> list[str]:
        """The Archived tasks that are in this failure group and owe nothing."""
        return [
            task.task_id
            for task in (self.tasks.get(task_id) for task_id in self._failed.get(group, ()))
            if task is not None and task.failure == group and settled(task)
            if task.state is TaskState.ARCHIVED
        ]

    def open_tasks(self) -> list[Task]:
        """The tasks that have not ended."""
        return [task for task in self.tasks.values() if not task.ended]
