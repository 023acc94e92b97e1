"""The orders that a hold has parked, in the order and at the rate in which its end wakes them.

A release wakes the first ones itself; the supervisor wakes all that wait (`supervisor.wakes`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge

from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.holds import EVERY_WORKFLOW, Hold
from roundsman.model.instants import SECOND
from roundsman.model.priority import Priority
from roundsman.model.situations import SEVERAL
from roundsman.model.wakes import Wake
from roundsman.ports import Clock, Outbox, ParkedEntry, TaskStore

A_SECOND = 30
"""The most orders of one target that are woken in a second: 100,000 in an hour."""

FIRST = 500
"""About how many orders a release wakes itself, so that they go on before the next visit of a
supervisor. Those that were parked at one instant are woken together."""

MOST_LOADED = 1_000
"""The most records that are read at once to see whether their orders go on."""

STAGES = (Priority.URGENT, Priority.NORMAL)


@dataclass(frozen=True, slots=True)
class ParkedOrders:
    """The orders that wait for a hold."""

    tasks: TaskStore
    clock: Clock
    shards: int
    """The number of shards that may contain tasks."""

    def waiting(self, target: str, priority: Priority, since: int) -> Iterator[ParkedEntry]:
        """What waits for the target, or for several, the longest waiting first."""
        lanes = [
            self.tasks.parked(each, priority, shard, after=since)
            for each in (target, SEVERAL)
            for shard in range(self.shards)
        ]
        return merge(*lanes, key=lambda entry: entry.since)

    def choose(
        self, target: str, wake: Wake, held: Sequence[Hold], most: int
    ) -> tuple[list[ParkedEntry], Wake]:
        """The next orders to wake, and how far that is; the stage after the last one is the end.

        `held` are the holds on orders that are still in force.
        """
        chosen, looked = list[ParkedEntry](), 0
        stage, since = wake.stage, wake.since
        while stage < len(STAGES):
            for entry in self.waiting(target, STAGES[stage], since):
                # Those that were parked at one instant are woken together.
                if entry.since > since and (len(chosen) >= most or looked >= MOST_LOADED):
                    return chosen, replace(wake, stage=stage, since=since)
                since = entry.since
                if held and not _may_be_in_share(entry.task_id, held):
                    continue
                looked += bool(held)
                if not held or self._goes_on(entry.task_id, held):
                    chosen.append(entry)
            stage, since = stage + 1, 0
        return chosen, replace(wake, stage=stage, since=0)

    def _goes_on(self, task_id: str, held: Sequence[Hold]) -> bool:
        """Whether none of these holds on orders is on this order.

        An order whose record cannot be read is not woken: the supervisor reports it when it is due.
        """
        try:
            task = self.tasks.load(task_id, self.clock(), latest=False)
        except (SchemaTooNew, UnreadableRecord):
            return False
        if task is None:
            return False
        return not any(hold.holds_order(task.workflow, task_id) for hold in held)


@dataclass(frozen=True, slots=True)
class FirstWoken:
    """The orders that a release has woken itself."""

    orders: tuple[str, ...] = ()
    """Their ids, in the order in which they go on."""
    more: bool = False
    """Whether others may wait, which the supervisor wakes."""


def wake_first(
    parked: ParkedOrders, outbox: Outbox, target: str, held: Sequence[Hold], begin: int
) -> FirstWoken:
    """Wake the first orders that wait for a target, from `begin` on (epoch ms).

    `held` are the holds on orders that are still in force; none is woken if all orders are held.
    Raises TryAgain or CallRefused if they cannot be read, or not all of them woken.
    """
    if any(hold.workflow == EVERY_WORKFLOW and not hold.released for hold in held):
        return FirstWoken()
    chosen, after = parked.choose(target, Wake(of="", seen_at=0), held, FIRST)
    send_wakes(outbox, chosen, begin, parked.clock())
    return FirstWoken(tuple(entry.task_id for entry in chosen), after.stage < len(STAGES))


def send_wakes(outbox: Outbox, chosen: Sequence[ParkedEntry], begin: int, now: int) -> None:
    """Send each order an Inspect that is read from `begin` on (epoch ms), A_SECOND in a second."""
    outbox.send_inspects(
        [
            (entry.task_id, max(0, begin - now) + place * SECOND // A_SECOND)
            for place, entry in enumerate(chosen)
        ]
    )


def _may_be_in_share(task_id: str, held: Sequence[Hold]) -> bool:
    """Whether the order may go on, as far as its id alone shows."""
    return not any(
        hold.workflow == EVERY_WORKFLOW and hold.holds_order(EVERY_WORKFLOW, task_id)
        for hold in held
    )
