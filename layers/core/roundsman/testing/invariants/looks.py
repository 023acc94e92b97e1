"""Whether the tasks of a world are looked at in time, whatever their due entries say."""

from collections.abc import Iterator

from roundsman.model.instants import MINUTE, spoken
from roundsman.model.plan import Plan
from roundsman.model.task import Task
from roundsman.testing.invariants.needs import needs
from roundsman.testing.invariants.rules import Broken, Invariant

WITHIN = 15 * MINUTE
"""How long after the last fault what a task needs may stay unseen, beside one interval."""


class Looks:
    """When each open task needs to be looked at, and when a scheduler or supervisor last did."""

    def __init__(self, interval: int) -> None:
        """`interval` (ms) is the supervisors'."""
        self._bound = WITHIN + interval
        self._needed: dict[str, int] = {}
        self._looked: dict[str, int] = {}
        self._quiet_since = 0

    def failed(self, now: int) -> None:
        """A call has failed: what comes of it takes some time."""
        self._quiet_since = now

    def written(self, plan: Plan | None, task: Task, now: int, *, is_open: bool) -> None:
        """A record is stored."""
        found = [need.at for need in needs(task, now, plan)] if is_open else []
        if found:
            self._needed[task.task_id] = min(found)
        else:
            self._needed.pop(task.task_id, None)

    def looked(self, task_id: str, now: int) -> Iterator[Broken]:
        """The task is read now, by whom it is to be looked at."""
        yield from self._late(task_id, now)
        self._looked[task_id] = now

    def late(self, now: int) -> Iterator[Broken]:
        """Those that nobody has looked at, each told once."""
        for task_id in list(self._needed):
            for broken in self._late(task_id, now):
                self._looked[task_id] = now
                yield broken

    def _late(self, task_id: str, now: int) -> Iterator[Broken]:
        needed = self._needed.get(task_id)
        if needed is None:
            return
        since = max(needed, self._looked.get(task_id, 0), self._quiet_since)
        if now - since > self._bound:
            what = f"nobody looked at it for {spoken(now - since)}"
            yield Broken(Invariant.LOOKED_AT, task_id, what)
