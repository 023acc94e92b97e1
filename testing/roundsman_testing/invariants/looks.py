"""Checks that each task is looked at in time, independently of its due entry (LOOKED_AT).

A task that is parked by a hold needs a look once the hold has ended, and each day also before, in
case its wake is lost.
"""

from collections.abc import Iterable, Iterator

from roundsman.definition.plan import Plan
from roundsman.engine.due import parked_for
from roundsman.model.instants import DAY, MINUTE, format_duration
from roundsman.model.task import Task
from roundsman.model.wakes import EndedHolds
from roundsman_console.facts.audit.needs import needs
from roundsman_testing.invariants.rules import Broken, Invariant

WITHIN = 15 * MINUTE
"""The time (ms), plus one interval, within which a task must be looked at after a need is due or
after the last failed call, whichever is later."""

OWN_LOOK_WITHIN = DAY + DAY // 10
"""The time (ms), plus the bound of a look, within which a parked task checks its hold itself."""


class Looks:
    """When each open task needs a look, and when a scheduler or supervisor last read it."""

    def __init__(self, interval: int) -> None:
        """`interval` is the time between two passes of the supervisors, in ms."""
        self._bound = WITHIN + interval
        self._needed: dict[str, int] = {}
        self._looked: dict[str, int] = {}
        self._parked: dict[str, tuple[str, int]] = {}
        self._ended: dict[str, tuple[str, int]] = {}
        self._wakes_are_lost = False
        self._quiet_since = 0

    def failed(self, until: int) -> None:
        """Note that a call failed, or that nobody looks until then.

        The consequences take time, so the bound starts again.
        """
        self._quiet_since = max(self._quiet_since, until)

    def wakes_are_lost(self) -> None:
        """Note that the end of a hold wakes nobody: a parked task is looked at by its own check."""
        self._wakes_are_lost = True

    def needed_since(self) -> int | None:
        """Since when (epoch ms) a task needs to be looked at while no call fails; it may be in the
        future. None if no task needs it.
        """
        first = min(self._needed.values(), default=None)
        return None if first is None else max(first, self._quiet_since)

    def written(self, plan: Plan | None, task: Task, now: int, *, is_open: bool) -> None:
        """Note that a record is stored."""
        found = [need.at for need in needs(task, now, plan)] if is_open else []
        if found:
            self._needed[task.task_id] = min(found)
        else:
            self._needed.pop(task.task_id, None)
        parked = parked_for(task) if is_open else None
        if parked is not None:
            self._parked[task.task_id] = parked.target, now
        else:
            self._parked.pop(task.task_id, None)

    def holds_ended(self, ended: Iterable[EndedHolds], now: int) -> None:
        """Note on which targets no hold is in force now.

        The orders that wait for one are to be looked at. The circuit of an agent has not ended
        while an order tries it.
        """
        self._ended = {
            one.target: was
            if (was := self._ended.get(one.target, ("", 0)))[0] == one.of
            else (one.of, now)
            for one in ended
            if not one.on_trial
        }

    def looked(self, task_id: str, now: int) -> Iterator[Broken]:
        """Note that a scheduler or supervisor reads the task. Yields LOOKED_AT if it is late."""
        yield from self._late(task_id, now)
        self._looked[task_id] = now

    def late(self, now: int) -> Iterator[Broken]:
        """Yields LOOKED_AT for each task that is late now; once for each delay."""
        for task_id in {**self._needed, **self._parked}:
            for broken in self._late(task_id, now):
                self._looked[task_id] = now
                yield broken

    def _late(self, task_id: str, now: int) -> Iterator[Broken]:
        looked = self._looked.get(task_id, 0)
        needs = [self._needed.get(task_id), self._woken_at(task_id)]
        if task_id in self._parked:
            needs.append(max(self._parked[task_id][1], looked) + OWN_LOOK_WITHIN)
        needed = min((at for at in needs if at is not None), default=None)
        if needed is None:
            return
        since = max(needed, looked, self._quiet_since)
        if now - since > self._bound:
            what = f"nobody looked at it for {format_duration(now - since)}"
            yield Broken(Invariant.LOOKED_AT, task_id, what)

    def _woken_at(self, task_id: str) -> int | None:
        """When the hold that a parked task waits for had ended; None if nobody wakes it."""
        target, parked_at = self._parked.get(task_id, ("", 0))
        if target not in self._ended or self._wakes_are_lost:
            return None
        return max(parked_at, self._ended[target][1])
