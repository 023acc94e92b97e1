"""Does each order have its task? Reads every row of the orders and tasks tables, at a bounded rate.

Both rows of an order are written in one transaction, so one without the other shows that a table
was restored without the other. The scan of both tables is charged, so it is made only on request.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import text
from roundsman.aws.dynamodb.settled import is_row
from roundsman.aws.errors import aws_errors
from roundsman.errors import TryAgain
from roundsman.model.instants import SECOND, format_duration, iso
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base.clock import now
from roundsman_console.facts.finding.report import Finding, Looking
from roundsman_console.facts.finding.table import FindingKind

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import KeysAndAttributesTypeDef, ScanInputTypeDef

AT_ONCE = 100  # the maximum of BatchGetItem
TRIES = 8  # reads of the keys that a batch left unprocessed


def look_deep(stack: DeployedStack, rate: int, looking: Looking) -> tuple[list[Finding], int]:
    """Return the orders without a task, the tasks without an order, and how many rows were read.

    At most `rate` rows are read per second.
    """
    client, found, rows = stack.dynamodb, list[Finding](), 0
    orders, tasks = stack.output("OrdersTableName"), stack.output("TasksTableName")
    shortest: int | None = None
    with looking.at("the rows of the tasks table"):
        for page in _pages(client, tasks, ("TaskId", "CreatedAt", "RetainFor", "ExpiresAt"), rate):
            kept = {item["TaskId"]["S"]: item for item in page if not _is_over(item)}
            for item in kept.values():
                retained = _number(item, "RetainFor")
                shortest = retained if shortest is None else min(shortest, retained)
            ordered = existing(client, orders, "OrderID", list(kept))
            found += [
                Finding(
                    FindingKind.TASK_WITHOUT_ORDER,
                    task_id,
                    f"submitted at {iso(_number(item, 'CreatedAt'))}",
                )
                for task_id, item in kept.items()
                if task_id not in ordered
            ]
            rows += len(page)
            looking.progress(f"{rows} rows read")
    with looking.at("the rows of the orders table"):
        for page in _pages(client, orders, ("OrderID", "CreatedAt"), rate):
            stored = {row["OrderID"]["S"]: _number(row, "CreatedAt") for row in page}
            there = existing(client, tasks, "TaskId", list(stored))
            for order_id, created_at in stored.items():
                if order_id not in there:
                    found += order_without_task(order_id, created_at, shortest, now())
            rows += len(page)
            looking.progress(f"{rows} rows read")
    return found, rows


def order_without_task(
    order_id: str, created_at: int, shortest: int | None, at: int
) -> Iterator[Finding]:
    """Find an order whose task is missing too early, at `at` (epoch ms).

    `shortest` is the shortest retention of all tasks in ms: the task of an older order may have
    expired. If it is not known, no order is a finding.
    """
    age = at - created_at
    if shortest is not None and age < shortest:
        evidence = (
            f"stored at {iso(created_at)}, {format_duration(age)} ago; every task is kept for at "
            f"least {format_duration(shortest)}"
        )
        yield Finding(FindingKind.ORDER_WITHOUT_TASK, order_id, evidence)


def _is_over(item: "Mapping[str, Value]") -> bool:
    """Whether an item is no task, or its retention has ended; readers treat it as deleted."""
    return is_row(item) or ("ExpiresAt" in item and _number(item, "ExpiresAt") * SECOND <= now())


def _number(item: "Mapping[str, Value]", name: str) -> int:
    return int(float(item.get(name, {}).get("N", "0")))


def _pages(
    client: "DynamoDBClient", table: str, names: Sequence[str], rate: int
) -> "Iterator[list[Mapping[str, Value]]]":
    """Yield the pages of a table's items, with these attributes, at most `rate` items a second."""
    wanted: ScanInputTypeDef = {
        "TableName": table,
        "Limit": AT_ONCE,
        "ProjectionExpression": ", ".join(names),
    }
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


def existing(client: "DynamoDBClient", table: str, key: str, ids: Sequence[str]) -> set[str]:
    """Return those of at most AT_ONCE ids that the table has, by a consistent read.

    `key` is the name of the hash key. Raises TryAgain if DynamoDB still leaves keys unprocessed
    after TRIES reads.
    """
    if not ids:
        return set()
    found = set[str]()
    wanted: KeysAndAttributesTypeDef = {
        "Keys": [{key: text(one)} for one in ids],
        "ConsistentRead": True,
        "ProjectionExpression": key,
    }
    for _ in range(TRIES):
        with aws_errors(f"reading {table}"):
            answer = client.batch_get_item(RequestItems={table: wanted})
        found |= {item[key]["S"] for item in answer["Responses"].get(table, [])}
        unread = answer.get("UnprocessedKeys", {}).get(table)
        if not unread:
            return found
        wanted = {**wanted, "Keys": unread["Keys"]}
    raise TryAgain(f"items of {table} were left out {TRIES} times")
