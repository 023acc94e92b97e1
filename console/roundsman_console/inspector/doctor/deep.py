"""The deep look: reads every row of the tasks and orders tables, page by page, at a bounded rate.

It finds what the lanes of the index do not show: tasks in no lane, orders without a task and tasks
without an order. It scans both tables and is charged for that, so it is made only on request.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from roundsman.aws.clock import now
from roundsman.aws.dynamodb.settled import is_row
from roundsman.aws.errors import aws_errors
from roundsman_console.inspector.doctor.checks import findings_of_tasks
from roundsman_console.inspector.doctor.facts import Finding, OrphanOrder, StackFacts, TaskSeen
from roundsman_console.inspector.doctor.gather_tasks import (
    AT_ONCE,
    batch_get,
    dynamodb_client,
    is_over,
    read_plans,
    tasks_seen,
)
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import ScanInputTypeDef


@dataclass(slots=True)
class Deep:
    """The result of the deep look."""

    findings: list[Finding] = field(default_factory=list)
    rows: int = 0
    """The number of rows that were read, of both tables."""
    shortest: int | None = None
    """The shortest retention of a task, in ms; None if no task was read."""


def look_deep(stack: DeployedStack, facts: StackFacts, rate: int, looking: Looking) -> Deep:
    """Read both tables, at most `rate` rows per second, and run the checks of tasks on them.

    The findings include those of the tasks that were read by lane.
    """
    found = Deep()
    plans, broken = dict(facts.plans), dict(facts.unreadable_plans)
    client = dynamodb_client()
    tasks_table = stack.output("TasksTableName")
    with looking.at("the rows of the tasks table"):
        for page in _pages(client, tasks_table, None, rate):
            records = [item for item in page if not is_row(item)]
            tasks = _with_orders(client, stack, tasks_seen(client, tasks_table, records))
            there = [seen for seen in tasks if not is_over(seen, now())]
            named = [s for s in there if s.task and s.task.plan not in (*plans, *broken)]
            more, worse = read_plans(stack, named, looking)
            plans, broken = {**plans, **more}, {**broken, **worse}
            found.findings += findings_of_tasks(
                replace(facts, now=now(), tasks=there, plans=plans, unreadable_plans=broken)
            )
            found.shortest = _shortest(found.shortest, there)
            found.rows += len(page)
            looking.tell(f"{found.rows} rows read")
    with looking.at("the rows of the orders table"):
        for page in _pages(client, stack.output("OrdersTableName"), "OrderID, CreatedAt", rate):
            at = replace(facts, now=now(), tasks=(), shortest_retention=found.shortest)
            found.findings += findings_of_tasks(replace(at, orphans=_orphans(client, stack, page)))
            found.rows += len(page)
            looking.tell(f"{found.rows} rows read")
    return found


def _pages(
    client: "DynamoDBClient", table: str, only: str | None, rate: int
) -> "Iterator[list[Mapping[str, Value]]]":
    """Yield the pages of a table's items; sleep between pages so that `rate` is not exceeded.

    `only` is the projection; None for all attributes.
    """
    wanted: ScanInputTypeDef = {"TableName": table, "Limit": AT_ONCE}
    if only is not None:
        wanted["ProjectionExpression"] = only
    while True:
        began = time.monotonic()
        with aws_errors(f"reading the rows of {table}"):
            page = client.scan(**wanted)
        yield list(page["Items"])
        last = page.get("LastEvaluatedKey")
        if not last:
            return
        wanted["ExclusiveStartKey"] = last
        time.sleep(max(0.0, len(page["Items"]) / rate - (time.monotonic() - began)))


def _with_orders(
    client: "DynamoDBClient", stack: DeployedStack, tasks: list[TaskSeen]
) -> list[TaskSeen]:
    """Return the tasks with `ordered` set: whether their order row exists."""
    ids = [seen.task_id for seen in tasks]
    rows = _there(client, stack.output("OrdersTableName"), "OrderID", ids)
    return [replace(seen, ordered=seen.task_id in rows) for seen in tasks]


def _orphans(
    client: "DynamoDBClient", stack: DeployedStack, page: "list[Mapping[str, Value]]"
) -> list[OrphanOrder]:
    stored = {
        row["OrderID"]["S"]: int(float(row.get("CreatedAt", {}).get("N", "0"))) for row in page
    }
    tasks = _there(client, stack.output("TasksTableName"), "TaskId", list(stored))
    return [OrphanOrder(one, at) for one, at in stored.items() if one not in tasks]


def _there(client: "DynamoDBClient", table: str, key: str, ids: list[str]) -> set[str]:
    found = batch_get(client, table, key, ids, only=key) if ids else []
    return {item[key]["S"] for item in found}


def _shortest(before: int | None, tasks: list[TaskSeen]) -> int | None:
    kept = [seen.task.retain_for for seen in tasks if seen.task is not None]
    return min([*kept, *([] if before is None else [before])], default=None)
