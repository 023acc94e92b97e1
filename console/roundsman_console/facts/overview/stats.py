"""The numbers of a stack: its tasks, queues, agents and what is overdue."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Annotated

from roundsman.aws.clock import now
from roundsman.engine.due import Lane
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.result import EPOCH_MS, MS, Shown
from roundsman_console.facts.agent.documents import AgentDocument, agent_document
from roundsman_console.facts.agent.reading import AgentNow, find_agents
from roundsman_console.facts.course.course import OrdersOverTime
from roundsman_console.facts.order.documents import TaskSummaryDocument
from roundsman_console.facts.order.lookup import shown_tasks
from roundsman_console.facts.orders.counts import Count, TaskCounts, count_tasks
from roundsman_console.facts.orders.open_orders import entries_of
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsReading:
    """The numbers of a stack: its tasks, queues and agents, and what is overdue."""

    at: Annotated[int, Shown(unit=EPOCH_MS)]
    """When the numbers were read."""
    states: Mapping[TaskState, Count]
    """The number of tasks by state."""
    lanes: Mapping[Lane, Count]
    """The number of tasks by lane of the due index."""
    left_out: Count
    """The number of completed tasks that have left out an item of a fan-out."""
    oldest_archived_at: Annotated[int | None, Shown(unit=EPOCH_MS)]
    recovery_lag: Annotated[int, Shown(unit=MS)]
    """How long the oldest due entry of an open task has been overdue, in seconds."""
    supervisor_seen_at: Annotated[int | None, Shown(unit=EPOCH_MS)]
    """When the last complete visit of a shard by a supervisor began."""
    queues: Sequence[Queue]
    agents: Sequence[AgentDocument]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatsAndCourse(StatsReading):
    """The numbers of a stack, and its orders over the last three hours."""

    course: OrdersOverTime
    """The orders over time, and what was done meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchReading(StatsReading):
    """One reading of the stack: its numbers and the newest failures."""

    newest_failures: Sequence[TaskSummaryDocument]
    """The tasks that were archived last, the newest first."""


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
    return load_failures(stack, [entry.task_id for entry in newest])


def load_failures(stack: DeployedStack, ids: Sequence[str]) -> list[Task]:
    """Read these archived tasks, as they are shown."""
    tasks = stack.records.load_many(ids, now()).tasks
    return [*shown_tasks(stack, (tasks[one] for one in ids if one in tasks))]


def stats_reading(stats: Stats) -> StatsReading:
    """Return the numbers for scripts."""
    tasks = stats.tasks
    return StatsReading(
        at=stats.at,
        states={state: tasks.states[state] for state in TaskState},
        lanes={lane: tasks.lanes[lane] for lane in Lane},
        left_out=tasks.left_out,
        oldest_archived_at=tasks.oldest_archived,
        recovery_lag=stats.lag,
        supervisor_seen_at=stats.visited_at,
        queues=stats.queues,
        agents=[agent_document(agent) for agent in stats.agents],
    )
