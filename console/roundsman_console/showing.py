"""`roundsman show`: one order, its task and its steps."""

import json
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from roundsman.aws.clock import now
from roundsman.messages import TASK_ID
from roundsman.plan import Plan
from roundsman.task import Task
from roundsman.values import clock_time, iso
from roundsman_console.inert import inert, plain
from roundsman_console.sentences import NOT_FOUND, ConsoleError, sentences
from roundsman_console.stack import Stack, StackOption, find_stack
from roundsman_console.task_view import STATE_STYLES, STEP_STYLES, step_names, task_document


def show_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show where an order stands, step by step. Example: roundsman show ord-1001"""
    with sentences():
        found = find_stack(stack)
        task = _task(found, order)
        plan = found.plans.plan(task.plan)
        if as_json:
            print(json.dumps(task_document(task, plan)))
        else:
            _print(task, plan)


def _task(stack: Stack, order_id: str) -> Task:
    if not TASK_ID.fullmatch(order_id):
        raise ConsoleError(
            "An order's id is 1 to 128 of A-Z, a-z, 0-9 and . _ ~ -, so there is no order "
            f"{inert(order_id)[:200]!r}.",
            NOT_FOUND,
        )
    task = stack.tasks.load(order_id, now())
    if task is not None:
        return task
    row = stack.tasks.order(order_id)
    if row is None:
        raise ConsoleError(
            f"There is no order {inert(order_id)} in {stack.name}; "
            "was its event rejected, or is it still in the SubmissionQueue?",
            NOT_FOUND,
        )
    raise ConsoleError(
        f"Order {inert(order_id)} was stored at {iso(row.created_at)}; its task is over, and "
        "its retention too.",
        NOT_FOUND,
    )


def _print(task: Task, plan: Plan | None) -> None:
    console = Console(highlight=False)
    console.print(plain(f"{task.task_id}  {task.workflow}  "), end="")
    console.print(plain(task.state, STATE_STYLES.get(task.state, "")))
    console.print(plain(f"submitted {iso(task.created_at)}, complete by {iso(task.complete_by)}"))
    if task.ending:
        console.print(plain(task.ending.why, "red"))
    if plan is None:
        console.print(plain(f"Its plan {task.plan} is not stored.", "red"))
    console.print(steps_table(task, plan))


def steps_table(task: Task, plan: Plan | None) -> Table:
    """The steps, one a row."""
    table = Table(box=None, pad_edge=False)
    for heading in ("Step", "State", "Failures", "Locked by", "Complete by", "Last error"):
        table.add_column(heading, overflow="fold")
    for name in step_names(task, plan):
        record = task.step(name)
        error = f"{record.error.type}: {record.error.message}" if record.error else ""
        table.add_row(
            plain(name),
            plain(record.process_state, STEP_STYLES.get(record.process_state, "")),
            plain(record.failure_count),
            plain(record.locked_by or ""),
            plain(clock_time(record.complete_by) if record.complete_by else ""),
            plain(error),
        )
    return table
