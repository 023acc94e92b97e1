"""`roundsman watch`: shows the stack's numbers and newest failures repeatedly until Ctrl-C.

On a terminal, the display is updated in place. Otherwise, each reading is printed after the one
before; with `--json`, as one object per line.
"""

import json
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from roundsman.errors import TryAgain
from roundsman.model.instants import format_duration, second
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now, pause
from roundsman_console.base.result import document_of, filled_from
from roundsman_console.faces.cli.errors import complain, sentences
from roundsman_console.faces.cli.inert_text import plain
from roundsman_console.faces.cli.stack_option import StackOption
from roundsman_console.faces.cli.target import announced_stack
from roundsman_console.faces.commands.stats import stats_view
from roundsman_console.facts.order.documents import order_summary
from roundsman_console.facts.overview.stats import (
    Stats,
    WatchReading,
    newest_failures,
    read_stats,
    stats_reading,
)


def watch_command(
    every: Annotated[
        float, typer.Option(min=1, max=3600, help="Seconds from one update to the next.")
    ] = 5,
    times: Annotated[
        int | None,
        typer.Option(min=1, help="Number of updates; without it, until Ctrl-C."),
    ] = None,
    stack: StackOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per update, each on one line.")
    ] = False,
) -> None:
    """Show the stack's numbers and newest failures, updated. Example: roundsman watch --every 10"""
    with sentences():
        found = announced_stack(stack)
        try:
            if as_json or not sys.stdout.isatty():
                _print(found, every, times, as_json=as_json)
            else:
                _live(found, every, times)
        except KeyboardInterrupt:
            return  # the normal way to end the command


def _live(stack: DeployedStack, every: float, times: int | None) -> None:
    seen: RenderableType = Text("Looking...")
    with Live(seen, auto_refresh=False, screen=times is None) as live:
        looks = 0
        while times is None or looks < times:
            if looks:
                pause(every)
            try:
                stats, failed = read_stats(stack), newest_failures(stack)
                seen = _view(stack, stats, failed, every)
                live.update(seen, refresh=True)
            except TryAgain as error:
                # Throttled or disconnected: keep the last display until the next reading.
                live.update(Group(seen, plain(error, "red")), refresh=True)
            looks += 1


def _print(stack: DeployedStack, every: float, times: int | None, *, as_json: bool) -> None:
    console = Console(highlight=False)
    looks = 0
    while times is None or looks < times:
        if looks:
            pause(every)
        looks += 1
        try:
            stats, failed = read_stats(stack), newest_failures(stack)
        except TryAgain as error:
            if times is not None and looks == times:
                raise
            complain(f"{error}.")
            continue
        if as_json:
            newest = [*map(order_summary, failed)]
            reading = filled_from(stats_reading(stats), WatchReading, newest_failures=newest)
            print(json.dumps(document_of(reading)), flush=True)
        else:
            console.print(_view(stack, stats, failed, every))


def _view(stack: DeployedStack, stats: Stats, failed: Sequence[Task], every: float) -> Group:
    heading = plain(f"{stack.name}  {second(stats.at)}, every {every:g} s", "bold")
    busy = [queue for queue in stats.queues if not queue.empty]
    parts = [heading, *stats_view(stats, busy)]
    if failed:
        parts += [Text(), _failures(failed)]
    return Group(*parts)


def _failures(tasks: Sequence[Task]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("Failed", no_wrap=True)
    for heading in ("Order", "Group", "Reason"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "Group")
    at = now()
    for task in tasks:
        ago = format_duration(max(0, at - (task.ended_at or task.created_at)))
        table.add_row(
            plain(f"{ago} ago"),
            plain(task.task_id),
            plain(task.failure or ""),
            plain(task.ending.why if task.ending else "", "red"),
        )
    return table
