"""Whose turn it is among the orders that a limit counts (`roundsman.model.order_limit`).

The row of a key lists the turns under way. An order takes its turn before the decision that begins
it is stored, and the end of its turn is owed by the decision that ends it. Both are one conditional
write of the row, which may be repeated, so a death in between loses no turn and none is taken
twice. The end of a turn wakes the order that has waited for longest. Which one that is is read in
an index, which may lag behind the table; so an order that begins to wait is noted in the row, on
condition that no other one has ended since, and is woken as well.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from roundsman.errors import TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.order_limit import LimitRow, Turn, order_of, turn_of, waits_for_turn
from roundsman.model.task import Task
from roundsman.ports import LimitStore, Outbox, TaskStore

RACES = 10
"""Attempts to store a row when other writes come first."""

INDEX_SHOWS_WITHIN = 2 * SECOND
"""An order that the index may not show yet is woken after this time in ms."""


@dataclass(frozen=True, slots=True)
class OrderLimits:
    """Gives orders their turns, and notes the end of turns."""

    rows: LimitStore
    tasks: TaskStore
    outbox: Outbox

    def turn_of(self, task: Task, at_once: int) -> Turn:
        """Return whether it is the order's turn. If so, the order is under way from now on."""
        limit = _key(task)
        for _ in range(RACES):
            found = self.tasks.waiting(limit, at_once + 2)
            waiting = [(one.since, one.task_id) for one in found]
            row = self.rows.read(limit)
            turn = turn_of(row, task, waiting, at_once)
            after = row.beginning(task.turn)
            if not turn.free or after == row or self.rows.write(limit, row, after):
                return turn
        raise TryAgain(f"{task.task_id}: other orders of its limit came first {RACES} times")

    def ended(self, order: str, limit: str, *turns: str) -> None:
        """Note that turns of the order have ended, and wake the one that follows.

        Raises TryAgain and CallRefused: it can be repeated.
        """
        before = self._change(limit, order, lambda row: row.without(*turns))
        self._wake(limit, before.without(*turns), order, before.last)

    def _wake(self, limit: str, row: LimitRow, order: str, last: str | None) -> None:
        """Wake the order that has waited for longest, and the last one, which may be unseen yet."""
        found = self.tasks.waiting(limit, len(row.orders) + 2)
        waiting = [one.task_id for one in found if one.task_id not in row.orders | {order}]
        woken = dict.fromkeys(waiting[:1], 0)
        if last is not None and last not in row.orders | {order, *woken}:
            woken[last] = INDEX_SHOWS_WITHIN
        if woken:
            self.outbox.send_inspects(list(woken.items()))

    def look_back(self, before: Task, task: Task, at_once: int, now: int) -> None:
        """After a decision is stored: note an order that waits, and end what has no task any more.

        An order that waits although there is room looks again: another one may have ended before
        the decision was stored, and have woken nobody.
        """
        limit = _key(task)
        if before.ended and task.ended:  # a turn may have been taken for what was never stored
            held = [one for one in self.rows.read(limit).holders if order_of(one) == task.task_id]
            if stale := [one for one in held if one != task.turn]:
                self.ended(task.task_id, limit, *stale)
            return
        checks = _checks(task)
        if task.has_turn or task.ended or not checks:
            return
        for _ in range(RACES):
            row = self.rows.read(limit)
            if task.turn in row.holders or len(row.holders) < at_once:
                if min(checks) > now + MINUTE:
                    self.outbox.send_inspects([(task.task_id, INDEX_SHOWS_WITHIN)])
                return
            after = replace(row, last=task.task_id)
            if after == row or self.rows.write(limit, row, after):
                return
        raise TryAgain(f"{task.task_id}: other orders of its limit came first {RACES} times")

    def lost_race(self, task: Task, now: int) -> None:
        """End the turn that was taken for a decision that was not stored, if its task is over."""
        if task.limit is not None and self._is_over(task.turn, task.limit, now):
            self.ended(task.task_id, task.limit, task.turn)

    def compare(self, task: Task, now: int) -> None:
        """Compare what is stored of the turns with the tasks, at a look at one of them.

        A turn that the row has lost is listed again. If the task waits, and was not woken until its
        own check, the turns of tasks that have ended, or are gone, are removed.
        """
        limit, checks = _key(task), _checks(task)
        if task.has_turn and not task.ended:
            row = self.rows.read(limit)
            if task.turn not in row.holders:
                self.rows.write(limit, row, row.beginning(task.turn))
                self.lost_race(task, now)  # it may have ended since it was read
        elif checks and min(checks) <= now:
            row = self.rows.read(limit)
            gone = [turn for turn in row.holders if self._is_over(turn, limit, now)]
            if gone:
                self.ended(task.task_id, limit, *gone)

    def let_begin(self, task: Task) -> None:
        """Let the order begin whatever its limit says: it is under way from its next Start on."""
        self._change(_key(task), task.task_id, lambda row: row.beginning(task.turn))

    def _change(self, limit: str, order: str, change: Callable[[LimitRow], LimitRow]) -> LimitRow:
        """Change the row. Returns it as it was before."""
        for _ in range(RACES):
            row = self.rows.read(limit)
            after = change(row)
            if after == row or self.rows.write(limit, row, after):
                return row
        raise TryAgain(f"{order}: other orders of its limit came first {RACES} times")

    def _is_over(self, turn: str, limit: str, now: int) -> bool:
        task = self.tasks.load(order_of(turn), now)
        return task is None or task.ended or task.limit != limit or task.turn != turn


def _checks(task: Task) -> list[int]:
    """When the steps that wait for the turn look again (epoch ms)."""
    return [one.not_before or 0 for one in task.steps.values() if waits_for_turn(one)]


def _key(task: Task) -> str:
    if task.limit is None:
        raise ValueError(f"{task.task_id} has no limit")
    return task.limit
