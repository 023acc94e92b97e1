"""How many orders with one value of a field are under way at once, and whose turn it is.

A workflow may have a limit (`roundsman.definition.workflow.Limit`). The orders that are under way
with one value are listed in one row, the limit's row, under a hash of the value. An order that may
not begin yet is parked, and costs nothing while it waits. Those with one value wait in a lane of
their own in the `parked` index, and the one that has waited longest is woken by the end of another.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from roundsman.model.instants import SECOND
from roundsman.model.situations import TURN, Parked
from roundsman.model.task import StepRecord, Task

LOOKS_AGAIN_IN = 30 * SECOND
"""After this time in ms an order looks again that lets another one begin before it, although there
is room for both: the other one may have begun already, or its wake may be lost."""


@dataclass(frozen=True, slots=True)
class LimitRow:
    """The orders with one value that are under way."""

    holders: tuple[str, ...] = ()
    """The turns (`Task.turn`) of the orders under way, in the order in which they began."""
    last: str | None = None
    """The id of the order that was the last to begin to wait; None if none has since an order
    ended. The index may not show it yet."""

    @property
    def orders(self) -> frozenset[str]:
        """The ids of the orders that are under way."""
        return frozenset(map(order_of, self.holders))

    def beginning(self, turn: str) -> "LimitRow":
        """Return the row with this turn under way."""
        return self if turn in self.holders else replace(self, holders=(*self.holders, turn))

    def without(self, *turns: str) -> "LimitRow":
        """Return the row after the end of these turns."""
        return LimitRow(tuple(one for one in self.holders if one not in turns))


@dataclass(frozen=True, slots=True)
class Turn:
    """Whether an order may begin now, and why."""

    free: bool
    why: str
    again_in: int | None = None
    """After how many ms it looks again; None if the end of another order wakes it."""
    wakes: str | None = None
    """The id of another order that may begin now, and is woken."""


def order_of(turn: str) -> str:
    """Return the id of the order whose turn this is."""
    return turn.partition("#")[0]


def waits_for_turn(record: StepRecord) -> bool:
    """Whether the step waits only because it is not its order's turn."""
    return isinstance(record.situation, Parked) and record.situation.held_for == TURN


def waits_since(task: Task) -> int | None:
    """Return since when the order has waited for its turn (epoch ms); None if it does not."""
    waits = (one.situation for one in task.steps.values() if waits_for_turn(one))
    return min((one.since for one in waits if isinstance(one, Parked)), default=None)


def turn_of(row: LimitRow, task: Task, waiting: Iterable[tuple[int, str]], at_once: int) -> Turn:
    """Return whether the order may begin.

    `waiting` are the first orders of the same value that wait, each by the instant since which it
    has (epoch ms) and its id, in this order. `at_once` is how many may be under way by the plan of
    the order. No order begins before one that has waited for longer.
    """
    under_way = len(row.holders)
    if task.turn in row.holders:
        return Turn(True, "it is its turn")
    if under_way >= at_once:
        return Turn(False, f"waits for its turn: {under_way} of at most {at_once} are under way")
    others = [one for one in waiting if one[1] not in row.orders | {task.task_id}]
    since = waits_since(task)
    before = [one for one in others if since is None or one < (since, task.task_id)]
    if before:
        why = "waits for its turn: another order has waited for longer"
        return Turn(False, why, LOOKS_AGAIN_IN, before[0][1])
    follows = others[0][1] if others and under_way + 1 < at_once else None
    return Turn(True, f"it is its turn: {under_way + 1} of {at_once}", wakes=follows)
