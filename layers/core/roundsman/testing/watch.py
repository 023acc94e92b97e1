"""Holds every record against the invariants at the very moment it is written."""

from collections.abc import Callable
from itertools import chain

from roundsman.plan import Plan
from roundsman.task import Task, operation_of
from roundsman.testing.invariants import (
    Broken,
    Invariant,
    of_change,
    of_effects,
    of_ended,
)
from roundsman.testing.post import PostOffice
from roundsman.testing.services import Ledger


class Watch:
    """What is stored of each task now, when it is to be looked at, and what was found broken.

    `on_write` is for the store. What it finds is kept in `broken`: raised from within a call to
    the store it might be taken for a fault of the store.
    """

    def __init__(
        self,
        plan_of: Callable[[str], Plan | None],
        ledger: Ledger,
        clock: Callable[[], int],
        *,
        slack: int = 0,
    ) -> None:
        """`slack` is how late (ms) a due entry may be where clocks differ."""
        self._slack = slack
        self._plan_of = plan_of
        self._ledger = ledger
        self._clock = clock
        self._dirty: dict[str, None] = {}
        self._locks: dict[tuple[str, str, str], list[str]] = {}
        self.tasks: dict[str, Task] = {}
        self.due: dict[str, int] = {}
        self.broken: list[Broken] = []
        self.on_reopened: Callable[[str], None] = lambda _: None

    def on_write(self, task: Task) -> None:
        """A record is stored, or removed as it is."""
        before = self.tasks.get(task.task_id)
        self.tasks[task.task_id] = task
        if before is not None and before.ended and not task.ended:
            self.on_reopened(task.task_id)
        if task.lane.startswith("open#"):
            self.due[task.task_id] = task.due_at
        else:
            self.due.pop(task.task_id, None)
        self._dirty[task.task_id] = None
        plan = self._plan_of(task.plan)
        if plan is not None:
            self.broken += of_change(plan, before, task, self._clock(), slack=self._slack)
        self._note_locks(before, task)

    def touched(self, task_id: str) -> None:
        """Something was done, or undone, for this task."""
        self._dirty[task_id] = None

    def _note_locks(self, before: Task | None, task: Task) -> None:
        """A lock that was given, and taken away, is never given again."""
        for name, record in task.steps.items():
            token = record.locked_by
            if token is None or (before is not None and before.step(name).locked_by == token):
                continue
            given = self._locks.setdefault((task.task_id, name, operation_of(record)), [])
            if token in given:
                what = f"{name}: the lock {token} was given before"
                self.broken.append(Broken(Invariant.ONE_LOCK, task.task_id, what))
            given.append(token)

    def look(self, post: PostOffice) -> None:
        """After an event: hold what was touched against the services and what was said."""
        for task_id in self._dirty:
            task = self.tasks.get(task_id)
            plan = self._plan_of(task.plan) if task is not None else None
            if task is None or plan is None:
                continue
            standing = self._ledger.standing(task_id)
            self.broken += chain(
                of_effects(plan, task, standing),
                of_ended(task, post.told.get(task_id, ()), post.alerted.get(task_id, ())),
            )
            self.broken += [
                Broken(Invariant.ONCE, task_id, f"{effect.key} came about {count} times")
                for effect in standing
                if (count := self._ledger.count[effect.key]) > 1
            ]
        self._dirty.clear()

    def forget(self, task_id: str) -> None:
        """Its record is gone and nobody will ask."""
        task = self.tasks.pop(task_id, None)
        self.due.pop(task_id, None)
        for name in task.steps if task is not None else ():
            for operation in ("perform", "undo"):
                self._locks.pop((task_id, name, operation), None)
        self._ledger.forget(task_id)

    def open_tasks(self) -> list[Task]:
        """Those that have not ended."""
        return [task for task in self.tasks.values() if not task.ended]
