"""`roundsman why`: explains what an order waits for, with evidence and the next command."""

import json
from typing import Annotated

import typer
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from roundsman.aws.clock import now
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.task import Task
from roundsman.wire.messages import TASK_ID
from roundsman_console.cli_errors import NOT_FOUND, ConsoleError, sentences
from roundsman_console.read.lookup import find_task, plan_of
from roundsman_console.read.stack import DeployedStack, StackOption, find_stack
from roundsman_console.sanitize import inert, plain
from roundsman_console.views.diagnosis import Diagnosis, TaskFacts, diagnose, missing, unreadable
from roundsman_console.views.task_view import STATE_STYLES


def why_command(
    order: Annotated[str, typer.Argument(help="The order's id.")],
    stack: StackOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what an order waits for now, and what to do. Example: roundsman why ord-1001"""
    with sentences():
        task, found = why(find_stack(stack), order)
        if as_json:
            print(json.dumps(_document(order, task, found)))
        else:
            _print(task, found)


def why(stack: DeployedStack, order: str) -> tuple[Task | None, Diagnosis]:
    """Return the order's task and what it waits for. The task is None if it cannot be read.

    Raises ConsoleError if the task does not exist, or no longer exists.
    """
    if not TASK_ID.fullmatch(order):
        find_task(stack, order)  # raises ConsoleError, which describes an order id
    try:
        task = stack.tasks.load(order, now())
    except (SchemaTooNew, UnreadableRecord) as error:
        return None, unreadable(order, str(error))
    row = stack.tasks.order(order)
    if task is None:
        found = missing(order, row, stack.name)
        look = f" Look with: {found.next}" if found.next else ""
        raise ConsoleError(f"{found.sentence}{look}", NOT_FOUND)
    try:
        plan = plan_of(stack, task)
    except (SchemaTooNew, UnreadableRecord) as error:
        if not task.ended:
            return task, unreadable(order, str(error))
        plan = None
    return task, diagnose(task, plan, _facts(stack, task, row is not None))


def _facts(stack: DeployedStack, task: Task, order_stored: bool) -> TaskFacts:
    if task.ended and not task.owed:
        return TaskFacts(at=now())
    leases = stack.leases.read()
    lease = leases.by_shard.get(task.shard)
    seconds = int(stack.parameters.get("SupervisorIntervalSeconds", "60"))
    return TaskFacts(
        at=now(),
        holds=stack.holds.holds(),
        agents=stack.board.agents(),
        visited_at=lease.visited_at if lease and lease.visited_at else None,
        interval=seconds * SECOND,
        to_scheduler=_to_scheduler(stack),
        order_stored=order_stored,
    )


def _to_scheduler(stack: DeployedStack) -> int | None:
    """Return about how many messages wait in the scheduler's queue; None if that is unknown."""
    try:
        found = stack.sqs.get_queue_attributes(
            QueueUrl=stack.output("SchedulerQueueUrl"),
            AttributeNames=["ApproximateNumberOfMessages"],
        )
        return int(found["Attributes"]["ApproximateNumberOfMessages"])
    except (ClientError, BotoCoreError, KeyError, ValueError):
        return None  # only evidence: the diagnosis does not depend on it


def _document(order: str, task: Task | None, found: Diagnosis) -> dict[str, Json]:
    return {
        "orderId": order,
        "state": task.state.value if task else None,
        "case": found.case,
        "sentence": found.sentence,
        "step": found.step,
        "agent": found.agent,
        "evidence": list(found.evidence),
        "next": found.next,
    }


def _print(task: Task | None, found: Diagnosis) -> None:
    console = Console(highlight=False)
    if task is not None:
        console.print(plain(f"{task.task_id}  {task.workflow}  "), end="")
        console.print(plain(task.state, STATE_STYLES.get(task.state, "")))
    console.print(plain(found.sentence, "bold"))
    for line in found.evidence:
        console.print(plain(f"- {line}"))
    if found.next is None:
        console.print("Nothing to do but to wait." if _goes_on(task) else "Nothing to do.")
    else:
        console.print(f"Next: {inert(found.next)}", markup=False, soft_wrap=True)


def _goes_on(task: Task | None) -> bool:
    return task is not None and (not task.ended or bool(task.owed))
