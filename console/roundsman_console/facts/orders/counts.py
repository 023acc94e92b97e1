"""Counting the tasks by lane and by state, at a bounded cost.

A count that exceeds its bound is reported as "more than" the bound. Lanes are counted with the due
index alone. The states within a lane are in the records, and at most LOADED records of a lane are
read: the open tasks that are due first, and the ended tasks that ended last. A lane that ends
before LOADED entries were read is not counted again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from roundsman.engine.due import Lane, lane_key
from roundsman.model.states import TaskState
from roundsman.ports import DueEntry
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.orders.open_orders import entries_of

MOST = 10_000
"""The maximum number of tasks that are counted in a lane; this costs 125 read capacity units."""

LOADED = 500
"""The maximum number of records that are read in a lane for their states. Each costs at least half
a read capacity unit."""


@dataclass(frozen=True, slots=True)
class Count:
    """A number of tasks, exact or a lower bound."""

    count: int = 0
    more: bool = False
    """There are more than `count`, or there may be; counting stopped at a bound."""

    def __str__(self) -> str:
        return f"{'more than ' if self.more else ''}{self.count:,}"


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """The numbers of tasks by lane and by state. Instants are epoch ms."""

    lanes: Mapping[Lane, Count]
    states: Mapping[TaskState, Count]
    oldest_due: int | None = None
    """The earliest due entry of an open task; None if no task is open."""
    oldest_archived: int | None = None
    """When the first archived task ended; None if no task is archived."""
    left_out: Count = Count()
    """The number of completed tasks that have left out an item."""


def count_tasks(stack: DeployedStack) -> TaskCounts:
    """Count the tasks with the due index, which may lag behind the tasks by about a second."""
    firsts = {lane: _first(stack, lane) for lane in Lane}
    lanes = {lane: _count(stack, lane, firsts[lane]) for lane in Lane}
    soonest, newest = firsts[Lane.OPEN][:LOADED], firsts[Lane.DONE][:LOADED]
    states, left_out = stack.records.states([entry.task_id for entry in (*soonest, *newest)])
    archived, first_archived = lanes[Lane.ARCHIVED], next(iter(firsts[Lane.ARCHIVED]), None)
    found = {state: Count(states[state], state in _unsure(lanes)) for state in TaskState}
    owing = states[TaskState.ARCHIVED]  # archived tasks whose entries are still in the open lane
    found[TaskState.ARCHIVED] = Count(archived.count + owing, archived.more)
    return TaskCounts(
        lanes,
        found,
        soonest[0].due_at if soonest else None,
        first_archived.due_at if first_archived else None,
        Count(left_out, found[TaskState.COMPLETED].more),
    )


_OVER = frozenset({TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED})


def _unsure(lanes: Mapping[Lane, Count]) -> frozenset[TaskState]:
    """Return the states of lanes in which not all records were read."""
    of_lane = {
        Lane.OPEN: frozenset(TaskState) - _OVER - {TaskState.ARCHIVED},
        Lane.DONE: _OVER,
    }
    return frozenset().union(
        *(states for lane, states in of_lane.items() if lanes[lane].count > LOADED)
    )


def _first(stack: DeployedStack, lane: Lane) -> list[DueEntry]:
    """The first LOADED entries of a lane, and one more if there are more."""
    entries = entries_of(stack, lane, newest_first=lane is Lane.DONE)
    return list(islice(entries, LOADED + 1))


def _count(stack: DeployedStack, lane: Lane, first: Sequence[DueEntry]) -> Count:
    """Count a lane whose first entries were read."""
    if len(first) <= LOADED:
        return Count(len(first))
    found = 0
    for shard in stack.every_shard:
        found += stack.records.count(lane_key(lane, shard), MOST - found)
        if found > MOST:
            return Count(MOST, more=True)
    return Count(found)
