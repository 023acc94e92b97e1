"""`roundsman stats`: counts tasks by state, and shows queues, agents and the recovery lag."""

import json
from collections.abc import Iterator, Sequence
from typing import Annotated

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from roundsman.model.instants import format_duration, second
from roundsman.model.states import TaskState
from roundsman_console.base.clock import now
from roundsman_console.base.result import document_of, filled_from
from roundsman_console.faces.cli.errors import sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.cli.terminal import results
from roundsman_console.faces.cli.text.agent import agents_table
from roundsman_console.faces.cli.text.states import STATE_STYLES
from roundsman_console.facts.course.course import SPANS, USUAL
from roundsman_console.facts.course.reading import read_stack_course
from roundsman_console.facts.orders.counts import TaskCounts
from roundsman_console.facts.overview.queues import MARKS, Queue
from roundsman_console.facts.overview.stats import (
    Stats,
    StatsAndCourse,
    read_stats,
    stats_reading,
)


def stats_command(
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show the task and queue counts, what is overdue, and the agents. Example: roundsman stats"""
    with sentences():
        deployed = announced_stack(stack)
        found = read_stats(deployed)
        if as_json:
            course = read_stack_course(deployed, found.at, SPANS[USUAL])
            read = filled_from(stats_reading(found), StatsAndCourse, course=course)
            print(json.dumps(document_of(read)))
            return
        console = results()
        for part in stats_view(found, found.queues):
            console.print(part)


def stats_view(stats: Stats, queues: Sequence[Queue]) -> Iterator[RenderableType]:
    """Yield the numbers for people, part by part, with these queues only."""
    yield _states(stats.tasks)
    yield _recovery(stats)
    if queues:
        yield Text()
        yield _queues(queues)
        yield from _notes_on_ages(queues)
    if stats.agents:
        yield Text()
        yield agents_table(list(stats.agents), now())


def _states(tasks: TaskCounts) -> Text:
    """Return the number of tasks in each state, as one text. States without tasks are dimmed."""
    line = Text()
    for state in TaskState:
        count = tasks.states[state]
        if line:
            line.append("  ")
        line.append(f"{state} {count}", STATE_STYLES.get(state, "") if count.count else "dim")
        if state is TaskState.COMPLETED and tasks.left_out.count:
            line.append(f" ({tasks.left_out} with items left out)", "yellow")
    return line


def _recovery(stats: Stats) -> Text:
    lag = f"overdue by {format_duration(stats.lag)} at most" if stats.lag else "nothing is overdue"
    seen = "no supervisor pass yet"
    if stats.visited_at is not None:
        seen = f"last supervisor pass {format_duration(max(0, stats.at - stats.visited_at))} ago"
    first = stats.tasks.oldest_archived
    waits = (
        f"; the oldest Archived task has waited since {second(first)}" if first is not None else ""
    )
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
    return f"{format_duration(queue.oldest)}{'*' if queue.age_source == MARKS else ''}"


def _notes_on_ages(queues: Sequence[Queue]) -> Iterator[Text]:
    notes = []
    if any(queue.age_source == MARKS for queue in queues):
        notes.append("* estimated from the message that was read last")
    if any(queue.waiting and queue.oldest is None for queue in queues):
        notes.append("? not yet in CloudWatch, which is a minute or two late")
    if notes:
        yield plain("; ".join(notes), "dim")
