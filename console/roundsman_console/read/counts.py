"""How many tasks there are in each state, at a bounded cost: beyond the bound, "more than" it.

Lanes are counted by the index alone. The states within a lane are in the records, of which the
first few hundred are read: what is due soonest of the open ones, the newest of what is over.
"""

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from roundsman.engine.due import Lane, lane_key
from roundsman.model.states import TaskState
from roundsman.ports import DueEntry
from roundsman_console.read.stack import DeployedStack

MOST = 10_000
"""How many tasks of a lane are counted at most; 125 read units."""

LOADED = 500
"""How many of a lane's records are looked at for their states; as many half read units or more."""


@dataclass(frozen=True, slots=True)
class Count:
    """So many; where `more`, at least so many."""

    count: int = 0
    more: bool = False

    def __str__(self) -> str:
        return f"{'more than ' if self.more else ''}{self.count:,}"


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Tasks by lane and by state. Instants are epoch ms.

    `oldest_due` is the earliest due entry of an open task, `oldest_archived` when the first of the
    archived ended; None where there is none.
    """

    lanes: Mapping[Lane, Count]
    states: Mapping[TaskState, Count]
    oldest_due: int | None = None
    oldest_archived: int | None = None


def count_tasks(stack: DeployedStack) -> TaskCounts:
    """The counts as the index has them, which may lag by a second."""
    lanes = {lane: _count(stack, lane) for lane in Lane}
    soonest = list(islice(_entries(stack, Lane.OPEN), LOADED))
    newest = list(islice(_entries(stack, Lane.DONE, newest_first=True), LOADED))
    first_archived = next(_entries(stack, Lane.ARCHIVED), None)
    states = stack.records.states([entry.task_id for entry in (*soonest, *newest)])
    archived = lanes[Lane.ARCHIVED]
    found = {state: Count(states[state], state in _unsure(lanes)) for state in TaskState}
    owing = states[TaskState.ARCHIVED]  # those that have not left their open lane yet
    found[TaskState.ARCHIVED] = Count(archived.count + owing, archived.more)
    return TaskCounts(
        lanes,
        found,
        soonest[0].due_at if soonest else None,
        first_archived.due_at if first_archived else None,
    )


_OVER = frozenset({TaskState.COMPLETED, TaskState.UNDONE, TaskState.CANCELLED})


def _unsure(lanes: Mapping[Lane, Count]) -> frozenset[TaskState]:
    """The states of which there may be more than were looked at."""
    of_lane = {
        Lane.OPEN: frozenset(TaskState) - _OVER - {TaskState.ARCHIVED},
        Lane.DONE: _OVER,
    }
    return frozenset().union(
        *(states for lane, states in of_lane.items() if lanes[lane].count > LOADED)
    )


def _count(stack: DeployedStack, lane: Lane) -> Count:
    found = 0
    for shard in stack.every_shard:
        found += stack.records.count(lane_key(lane, shard), MOST - found)
        if found > MOST:
            return Count(MOST, more=True)
    return Count(found)


def _entries(stack: DeployedStack, lane: Lane, *, newest_first: bool = False) -> Iterator[DueEntry]:
    shards = (
        stack.records.entries(lane_key(lane, shard), newest_first=newest_first)
        for shard in stack.every_shard
    )
    return heapq.merge(*shards, key=lambda entry: entry.due_at, reverse=newest_first)
