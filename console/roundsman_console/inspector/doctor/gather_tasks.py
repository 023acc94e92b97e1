"""Reads tasks by the lanes of the due index, a hundred records per request, and their plans."""

import heapq
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import boto3

from roundsman.aws.dynamodb.codec import text
from roundsman.aws.dynamodb.settled import StoredItem, read_divided
from roundsman.aws.errors import aws_errors
from roundsman.engine.due import Lane, lane_key
from roundsman.errors import SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.plan import Plan
from roundsman.ports import DueEntry
from roundsman_console.inspector.doctor.facts import TaskSeen
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.settled_rows import with_rows
from roundsman_console.inspector.read.stack import DeployedStack
from roundsman_console.inspector.read.task_records import END_OF_TIME

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import KeysAndAttributesTypeDef

AT_ONCE = 100  # the maximum of BatchGetItem
TRIES = 8  # reads of the keys that a batch left unprocessed because its answer was too large

LANES = (Lane.OPEN, Lane.ARCHIVED)
"""The lanes that are read. Ended tasks need no check and may be a million; `--deep` reads them."""


@dataclass(slots=True)
class Walk:
    """The tasks that were read by lane."""

    tasks: list[TaskSeen] = field(default_factory=list)
    entries: Counter[str] = field(default_factory=Counter)
    """The number of index entries that were read, by lane."""
    cut: list[str] = field(default_factory=list)
    """The lanes that have more entries than were read."""


def walk(stack: DeployedStack, shards: int, limit: int, now: int, looking: Looking) -> Walk:
    """Read the `limit` tasks of each of LANES that are due first. `now` is epoch ms."""
    found, client = Walk(), dynamodb_client()
    for lane in LANES:
        with looking.at(f"{lane} tasks"):
            for part in _parts(_entries(stack, lane, shards, limit + 1)):
                left = limit - found.entries[lane]
                if len(part) > left:
                    found.cut.append(lane)
                found.tasks += read_tasks(
                    client, stack, [entry.task_id for entry in part[:left]], now
                )
                found.entries[lane] += len(part[:left])
                looking.tell(f"{found.entries[lane]} {lane} tasks read")
    return found


def _entries(stack: DeployedStack, lane: Lane, shards: int, limit: int) -> Iterator[DueEntry]:
    """Return the first `limit` entries of a lane, the earliest first."""
    of_shards = (stack.tasks.due(lane_key(lane, shard), END_OF_TIME) for shard in range(shards))
    return itertools.islice(heapq.merge(*of_shards, key=lambda entry: entry.due_at), limit)


def _parts(entries: Iterable[DueEntry]) -> Iterator[list[DueEntry]]:
    them = iter(entries)
    while part := list(itertools.islice(them, AT_ONCE)):
        yield part


def dynamodb_client() -> "DynamoDBClient":
    """Return a new client. Share it: to create one takes longer than most reads."""
    client: DynamoDBClient = boto3.client("dynamodb")
    return client


def read_tasks(
    client: "DynamoDBClient", stack: DeployedStack, ids: Sequence[str], now: int
) -> list[TaskSeen]:
    """Return the tasks with these ids, by consistent reads.

    Tasks that do not exist or are past their retention at `now` (epoch ms) are left out.
    """
    table = stack.output("TasksTableName")
    items = batch_get(client, table, "TaskId", list(dict.fromkeys(ids)))
    return [seen for seen in tasks_seen(client, table, items) if not is_over(seen, now)]


def tasks_seen(
    client: "DynamoDBClient", table: str, items: "Sequence[StoredItem]"
) -> list[TaskSeen]:
    """Parse items of the tasks table, with the rows that they list."""
    items, rows = with_rows(items, lambda keys: batch_get(client, table, "TaskId", keys))
    return [task_seen(item, rows) for item in items]


def is_over(seen: TaskSeen, now: int) -> bool:
    """Whether the task's retention has ended at `now` (epoch ms); readers treat it as deleted."""
    expires_at = seen.task.expires_at if seen.task else None
    return expires_at is not None and expires_at <= now


def task_seen(item: StoredItem, rows: "Mapping[str, StoredItem]") -> TaskSeen:
    """Parse an item of the tasks table; a record that cannot be read becomes a `problem`."""
    task_id = item["TaskId"]["S"]
    trouble = int(item.get("Trouble", {}).get("N", "0"))
    try:
        return TaskSeen(task_id, read_divided(item, rows), trouble=trouble)
    except SchemaTooNew as newer:
        return TaskSeen(task_id, None, str(newer), newer=True, trouble=trouble)
    except UnreadableRecord as broken:
        return TaskSeen(task_id, None, str(broken), trouble=trouble)


def batch_get(
    client: "DynamoDBClient", table: str, key: str, ids: Sequence[str], *, only: str | None = None
) -> "list[Mapping[str, Value]]":
    """Return the items with these ids, by consistent reads, AT_ONCE in a request.

    `key` is the name of the hash key. `only` is the one attribute to read; None for all. Raises
    TryAgain if DynamoDB still leaves keys unprocessed after TRIES reads.
    """
    found: list[Mapping[str, Value]] = []
    for first in range(0, len(ids), AT_ONCE):
        part = ids[first : first + AT_ONCE]
        wanted: KeysAndAttributesTypeDef = {
            "Keys": [{key: text(one)} for one in part],
            "ConsistentRead": True,
        }
        if only is not None:
            wanted["ProjectionExpression"] = only
        found += _batch(client, table, wanted)
    return found


def _batch(
    client: "DynamoDBClient", table: str, wanted: "KeysAndAttributesTypeDef"
) -> "Iterator[Mapping[str, Value]]":
    for _ in range(TRIES):
        with aws_errors(f"reading {table}"):
            answer = client.batch_get_item(RequestItems={table: wanted})
        yield from answer["Responses"].get(table, [])
        unread = answer.get("UnprocessedKeys", {}).get(table)
        if not unread:
            return
        wanted = {**wanted, "Keys": unread["Keys"]}
    raise TryAgain(f"items of {table} were left out {TRIES} times")


def read_plans(
    stack: DeployedStack, tasks: Iterable[TaskSeen], looking: Looking
) -> tuple[dict[str, Plan | None], dict[str, str]]:
    """Return the plans that these tasks name, and why plans cannot be read, each by hash.

    A plan is None if it is not stored.
    """
    plans: dict[str, Plan | None] = {}
    broken: dict[str, str] = {}
    for name in sorted({seen.task.plan for seen in tasks if seen.task is not None}):
        with looking.at(f"the plan {name[:12]}"):
            try:
                plans[name] = stack.plans.plan(name)
            except UnreadableRecord as problem:
                broken[name] = str(problem)
    return plans, broken
