"""Which orders are open? The entries of a lane in order, and the open orders that are due first."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from roundsman.engine.due import Lane, lane_key
from roundsman.model.task import Task
from roundsman.ports import DueEntry
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import AT_ONCE
from roundsman_console.base.clock import now
from roundsman_console.facts.order.lookup import shown_tasks

READ = 300
"""The number of open orders that are read, those that are due first."""


@dataclass(frozen=True, slots=True)
class OpenOrders:
    """Open orders, those that are due first, as they are shown to a person."""

    tasks: tuple[Task, ...] = ()
    whole: bool = True
    """Whether these are all open orders."""


def entries_of(
    stack: DeployedStack,
    lane: Lane,
    *,
    since: int = 0,
    newest_first: bool = False,
    shards: Iterable[int] | None = None,
) -> Iterator[DueEntry]:
    """Yield the entries of a lane from `since` (epoch ms) on by their instants, read lazily.

    None are all shards that may contain tasks, of which the leases say how many there are.
    """
    of_shards = (
        stack.records.entries(
            lane_key(lane, shard), since=since, newest_first=newest_first, first=AT_ONCE
        )
        for shard in (stack.every_shard if shards is None else shards)
    )
    return heapq.merge(*of_shards, key=lambda entry: entry.due_at, reverse=newest_first)


def read_open_orders(stack: DeployedStack, most: int = READ) -> OpenOrders:
    """Read at most `most` open orders, those that are due first.

    A record that cannot be read is left out.
    """
    found = list(islice(entries_of(stack, Lane.OPEN), most + 1))
    ids = [entry.task_id for entry in found[:most]]
    return load_open(stack, ids, whole=len(found) <= most)


def load_open(stack: DeployedStack, ids: Sequence[str], *, whole: bool) -> OpenOrders:
    """Read those of these orders that are open. `whole` is whether these are all open orders."""
    tasks = stack.records.load_many(ids, now()).tasks
    opened = (tasks[one] for one in ids if one in tasks and not tasks[one].ended)
    return OpenOrders(shown_tasks(stack, opened), whole)
