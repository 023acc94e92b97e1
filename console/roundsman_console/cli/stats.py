"""`roundsman stats`: counts tasks by state, and shows queues, agents and the recovery lag."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from roundsman.aws.clock import now
from roundsman.engine.due import Lane
from roundsman.model.instants import format_duration, iso
from roundsman.model.json import Json
from roundsman.model.states import TaskState
from roundsman_console.cli_errors import sentences
from roundsman_console.read.agents import AgentNow, find_agents
from roundsman_console.read.counts import Count, TaskCounts, count_tasks
from roundsman_console.read.queues import MARKS, Queue, find_queues
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack
from roundsman_console.sanitize import plain
from roundsman_console.views.agents import agent_document, agents_table
from roundsman_console.views.task_view import STATE_STYLES, second


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


def stats_command(
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Count tasks, queues and what is overdue; say who takes work. Example: roundsman stats"""
    with sentences():
        found = gather(find_stack(stack))
        if as_json:
            print(json.dumps(stats_document(found)))
            return
        console = Console(highlight=False)
        for part in stats_view(found, found.queues):
            console.print(part)


def gather(stack: DeployedStack) -> Stats:
    """Read the numbers from the stack. Raises TryAgain or CallRefused if it cannot be read."""
    at = now()
    tasks = count_tasks(stack)
    agents = find_agents(stack)
    queues = find_queues(stack, stack.board.agents(), at)
    visits = [lease.visited_at for lease in stack.leases.read().by_shard.values()]
    return Stats(at, tasks, queues, agents, max(visits, default=0) or None)


def stats_view(stats: Stats, queues: Sequence[Queue]) -> Iterator[RenderableType]:
    """Yield the numbers for people, part by part, with these queues only."""
    yield _states(stats.tasks)
    yield _recovery(stats)
    if queues:
        yield Text()
        yield _queues(queues)
        yield from _ages_told_by(queues)
    if stats.agents:
        yield Text()
        yield agents_table(list(stats.agents))


def _states(tasks: TaskCounts) -> Text:
    """Return the number of tasks in each state, as one text. States without tasks are dimmed."""
    said = Text()
    for state in TaskState:
        count = tasks.states[state]
        if said:
            said.append("  ")
        said.append(f"{state} {count}", STATE_STYLES.get(state, "") if count.count else "dim")
    return said


def _recovery(stats: Stats) -> Text:
    lag = f"overdue by {format_duration(stats.lag)} at most" if stats.lag else "nothing is overdue"
    seen = "no supervisor has ever been by"
    if stats.visited_at is not None:
        seen = f"a supervisor was by {format_duration(max(0, stats.at - stats.visited_at))} ago"
    first = stats.tasks.oldest_archived
    waits = f"; the oldest Archived waits since {second(first)}" if first is not None else ""
    return plain(f"{lag}; {seen}{waits}", "yellow" if stats.lag else "")


def _queues(queues: Sequence[Queue]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Queue", overflow="fold")
    for heading in ("Waiting", "In flight", "Delayed", "Oldest"):
        table.add_column(heading, justify="right", no_wrap=True)
    for queue in queues:
        table.add_row(
            plain(queue.name, "" if queue.waiting else "dim"),
            *(plain(f"{n:,}") for n in (queue.waiting, queue.in_flight, queue.delayed)),
            plain(_age(queue)),
        )
    return table


def _age(queue: Queue) -> str:
    if queue.oldest is None:
        return "?" if queue.waiting else ""
    return f"{format_duration(queue.oldest)}{'*' if queue.told_by == MARKS else ''}"


def _ages_told_by(queues: Sequence[Queue]) -> Iterator[Text]:
    said = []
    if any(queue.told_by == MARKS for queue in queues):
        said.append("* by what the agent read last")
    if any(queue.waiting and queue.oldest is None for queue in queues):
        said.append("? not told by CloudWatch, which is a minute or two late")
    if said:
        yield plain("; ".join(said), "dim")


def stats_document(stats: Stats) -> dict[str, Json]:
    """Return the JSON object that --json prints. Ages are in seconds."""
    tasks = stats.tasks
    oldest = tasks.oldest_archived
    return {
        "at": iso(stats.at),
        "states": {state.value: _count(tasks.states[state]) for state in TaskState},
        "lanes": {lane.value: _count(tasks.lanes[lane]) for lane in Lane},
        "oldestArchivedAt": None if oldest is None else iso(oldest),
        "recoveryLag": stats.lag / 1000,
        "supervisorSeenAt": None if stats.visited_at is None else iso(stats.visited_at),
        "queues": [_queue(queue) for queue in stats.queues],
        "agents": [agent_document(agent) for agent in stats.agents],
    }


def _count(count: Count) -> dict[str, Json]:
    return {"count": count.count, "more": count.more}


def _queue(queue: Queue) -> dict[str, Json]:
    return {
        "queue": queue.name,
        "waiting": queue.waiting,
        "inFlight": queue.in_flight,
        "delayed": queue.delayed,
        "oldest": None if queue.oldest is None else queue.oldest / 1000,
        "oldestToldBy": queue.told_by,
    }
