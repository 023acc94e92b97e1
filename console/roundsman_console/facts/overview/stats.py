"""The numbers of a stack: its tasks, queues, agents and what is overdue."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from roundsman.aws.clock import now
from roundsman.engine.due import Lane
from roundsman.model.instants import iso
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.agent.reading import AgentNow, find_agents
from roundsman_console.facts.agent.view import agent_document
from roundsman_console.facts.order.lookup import shown_tasks
from roundsman_console.facts.orders.counts import Count, TaskCounts, count_tasks
from roundsman_console.facts.orders.open_orders import entries_of
from roundsman_console.facts.overview.documents import CountDocument, QueueDocument, StatsDocument
from roundsman_console.facts.overview.queues import Queue, find_queues

NEWEST = 8
"""The number of tasks that `newest_failures` returns."""


@dataclass(frozen=True, slots=True)
class Stats:
    """The numbers of the stack at one instant."""

    at: int
    """When the numbers were read (epoch ms)."""
    tasks: TaskCounts
    queues: Sequence[Queue]
    agents: Sequence[AgentNow]
    visited_at: int | None
    """When the last complete visit of a shard by a supervisor began (epoch ms).

    None if there was none.
    """

    @property
    def lag(self) -> int:
        """How long the oldest due entry of an open task has been overdue (ms); 0 if none is."""
        due = self.tasks.oldest_due
        return 0 if due is None else max(0, self.at - due)


def read_stats(stack: DeployedStack) -> Stats:
    """Read the numbers from the stack. Raises TryAgain or CallRefused if it cannot be read."""
    at = now()
    tasks = count_tasks(stack)
    agents = find_agents(stack)
    queues = find_queues(stack, at)
    visits = [lease.visited_at for lease in stack.leases.read().by_shard.values()]
    return Stats(at, tasks, queues, agents, max(visits, default=0) or None)


def newest_failures(stack: DeployedStack) -> list[Task]:
    """Return the NEWEST tasks that were archived last, newest first, as they are shown."""
    newest = islice(entries_of(stack, Lane.ARCHIVED, newest_first=True), NEWEST)
    ids = [entry.task_id for entry in newest]
    tasks = stack.records.load_many(ids, now()).tasks
    return [*shown_tasks(stack, (tasks[one] for one in ids if one in tasks))]


def stats_document(stats: Stats) -> StatsDocument:
    """Return the JSON object that --json prints. Ages are in seconds."""
    tasks = stats.tasks
    oldest = tasks.oldest_archived
    return {
        "at": iso(stats.at),
        "states": {state: _count(tasks.states[state]) for state in TaskState},
        "lanes": {lane: _count(tasks.lanes[lane]) for lane in Lane},
        "leftOut": _count(tasks.left_out),
        "oldestArchivedAt": None if oldest is None else iso(oldest),
        "recoveryLag": stats.lag / 1000,
        "supervisorSeenAt": None if stats.visited_at is None else iso(stats.visited_at),
        "queues": [_queue(queue) for queue in stats.queues],
        "agents": [agent_document(agent) for agent in stats.agents],
    }


def _count(count: Count) -> CountDocument:
    return {"count": count.count, "more": count.more}


def _queue(queue: Queue) -> QueueDocument:
    return {
        "queue": queue.name,
        "waiting": queue.waiting,
        "inFlight": queue.in_flight,
        "delayed": queue.delayed,
        "oldest": None if queue.oldest is None else queue.oldest / 1000,
        "oldestToldBy": queue.age_source,
    }
