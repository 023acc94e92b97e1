"""`roundsman ls`: tasks by state, from the due index; the table is never scanned."""

import heapq
import json
from collections.abc import Iterator
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from roundsman.aws.clock import now
from roundsman.due import Lane, lane_key
from roundsman.states import TaskState
from roundsman.task import Task
from roundsman.values import iso, spoken
from roundsman_console.inert import plain
from roundsman_console.sentences import sentences
from roundsman_console.stack import Stack, StackOption, find_stack
from roundsman_console.task_view import STATE_STYLES, task_summary

END_OF_TIME = 2**53  # epoch ms; a DynamoDB number holds it exactly, and so does JSON

_LANES = {
    TaskState.ARCHIVED: (Lane.ARCHIVED, Lane.OPEN),
    TaskState.COMPLETED: (Lane.DONE, Lane.OPEN),
    TaskState.UNDONE: (Lane.DONE, Lane.OPEN),
    TaskState.CANCELLED: (Lane.DONE, Lane.OPEN),
}


def ls_command(
    state: Annotated[TaskState | None, typer.Option(help="Only tasks in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List tasks, what needs a person first. Example: roundsman ls --state Archived"""
    with sentences():
        found = list(list_tasks(find_stack(stack), state, limit + 1))
        more, tasks = len(found) > limit, found[:limit]
        if as_json:
            print(json.dumps({"tasks": [task_summary(task) for task in tasks], "more": more}))
            return
        console = Console(highlight=False)
        console.print(_table(tasks) if tasks else "No tasks.")
        if more:
            console.print(f"There are more than these {limit}: raise --limit.")


def list_tasks(stack: Stack, state: TaskState | None, limit: int) -> Iterator[Task]:
    """Tasks in that state: archived ones first, then open ones, then finished ones, by age."""
    lanes = tuple(Lane) if state is None else _LANES.get(state, (Lane.OPEN,))
    order = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)
    for lane in sorted(lanes, key=order.index):
        shards = (
            stack.tasks.due(lane_key(lane, shard), END_OF_TIME) for shard in range(stack.shards)
        )
        for entry in heapq.merge(*shards, key=lambda entry: entry.due_at):
            task = stack.tasks.load(entry.task_id, now())
            if task is None or (state is not None and task.state is not state):
                continue
            yield task
            limit -= 1
            if not limit:
                return


def _table(tasks: list[Task]) -> Table:
    table = Table(box=None, pad_edge=False)
    for heading in ("Order", "Workflow", "State", "Age", "Reason"):
        table.add_column(heading, overflow="fold")
    at = now()
    for task in tasks:
        table.add_row(
            plain(task.task_id),
            plain(task.workflow),
            plain(task.state, STATE_STYLES.get(task.state, "")),
            plain(spoken(max(0, at - task.created_at))),
            plain(task.ending.why if task.ending else f"due {iso(task.due_at)}"),
        )
    return table
