"""Reading many tasks: index entries page by page, records in batches of 100, and counts.

The engine's store is separate, because the engine reads one task at a time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import failure_key, number, text
from roundsman.aws.dynamodb.settled import read_divided
from roundsman.aws.dynamodb.tasks import DUE_INDEX, FAILURES_INDEX
from roundsman.aws.errors import aws_errors
from roundsman.errors import SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.ports import DueEntry
from roundsman_console.clock import pause
from roundsman_console.orders.settled_rows import with_rows

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        KeysAndAttributesUnionTypeDef,
        QueryInputTypeDef,
    )

AT_ONCE = 100  # the maximum number of items in one BatchGetItem
FIRST_PAGE = 20  # entries of one shard; a list of 50 tasks needs a few from each of 16 shards
END_OF_TIME = 2**53  # epoch ms; a DynamoDB number holds it exactly, and so does JSON
_FIRST_PAUSE = 0.05  # seconds; doubled after each response without a record
_TRIES = 8  # responses in a row without a record, before a throttled read is given up


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of `Records.load_many`. A task whose retention is over is in no field."""

    tasks: Mapping[str, Task] = field(default_factory=dict)
    """The tasks by id."""
    unreadable: Mapping[str, str] = field(default_factory=dict)
    """Why a record cannot be read, by task id."""
    troubled: Mapping[str, int] = field(default_factory=dict)
    """How often the supervisor failed to handle a record since its last decision, by task id."""


class Records:
    """The tasks table, for lists. `page` is the maximum number of index entries in one Query."""

    def __init__(self, client: "DynamoDBClient", *, tasks_table: str, page: int = AT_ONCE) -> None:
        self._client = client
        self._table = tasks_table
        self._page = page

    def entries(
        self, lane: str, *, since: int = 0, newest_first: bool = False, first: int = FIRST_PAGE
    ) -> Iterator[DueEntry]:
        """The entries of one lane shard (`archived#7`) from `since` (epoch ms) on, page by page.

        `first` is the size of the first page: the number of entries that the caller expects to
        need from this shard. Each page may raise TryAgain or CallRefused.
        """
        query = self._query(lane, since, END_OF_TIME)
        query |= {"ScanIndexForward": not newest_first, "Limit": min(first, self._page)}
        while True:
            with aws_errors(f"listing {lane}"):
                page = self._client.query(**query)
            for item in page["Items"]:
                yield DueEntry(item["TaskId"]["S"], int(float(item["DueAt"]["N"])))
            last = page.get("LastEvaluatedKey")
            if not last:
                return
            query |= {"ExclusiveStartKey": last, "Limit": self._page}

    def count(self, lane: str, most: int, *, since: int = 0, until: int = END_OF_TIME) -> int:
        """Count the entries of the lane shard from `since` to `until` (epoch ms), inclusive.

        Counting stops when the count exceeds `most`. DynamoDB sends no items for a count, so it
        takes a tenth of the time of `entries`.
        """
        return self._count(self._query(lane, since, until), most, f"counting {lane}")

    def count_members(self, group: str, shard: int, most: int, at: int) -> int:
        """Count the members in one shard of a failure group at `at` (epoch ms).

        Counting stops when the count exceeds `most`.
        """
        key = failure_key(group, shard)
        query: QueryInputTypeDef = {
            "TableName": self._table,
            "IndexName": FAILURES_INDEX,
            "KeyConditionExpression": "FailureGroup = :group",
            "FilterExpression": "attribute_not_exists(ExpiresAt) OR ExpiresAt > :now",
            "ExpressionAttributeValues": {":group": text(key), ":now": number(at // SECOND)},
        }
        return self._count(query, most, f"counting the failures of {key}")

    def _count(self, query: "QueryInputTypeDef", most: int, doing: str) -> int:
        found = 0
        while found <= most:
            query |= {"Select": "COUNT", "Limit": most + 1 - found}
            with aws_errors(doing):
                page = self._client.query(**query)
            found += page["Count"]
            last = page.get("LastEvaluatedKey")
            if not last:
                break
            query["ExclusiveStartKey"] = last
        return found

    def _query(self, lane: str, since: int, until: int) -> "QueryInputTypeDef":
        return {
            "TableName": self._table,
            "IndexName": DUE_INDEX,
            "KeyConditionExpression": "Lane = :lane AND DueAt BETWEEN :since AND :until",
            "ExpressionAttributeValues": {
                ":lane": text(lane),
                ":since": number(since),
                ":until": number(until),
            },
        }

    def load_many(self, task_ids: Sequence[str], at: int) -> Loaded:
        """Load the tasks with these ids, with consistent reads in batches of 100.

        A task whose retention is over at `at` (epoch ms) is left out. Raises TryAgain if DynamoDB
        repeatedly returns no records because it is throttled, and CallRefused.
        """
        tasks: dict[str, Task] = {}
        unreadable: dict[str, str] = {}
        troubled: dict[str, int] = {}
        how: KeysAndAttributesUnionTypeDef = {"Keys": [], "ConsistentRead": True}
        found = list(self._items(list(dict.fromkeys(task_ids)), how))
        items, rows = with_rows(found, lambda keys: self._items(keys, how))
        for item in items:
            try:
                task = read_divided(item, rows)
            except (SchemaTooNew, UnreadableRecord) as error:
                unreadable[item["TaskId"]["S"]] = str(error)
                continue
            if task.expires_at is None or task.expires_at > at:
                tasks[task.task_id] = task
                if "Trouble" in item:
                    troubled[task.task_id] = int(item["Trouble"]["N"])
        return Loaded(tasks, unreadable, troubled)

    def states(self, task_ids: Sequence[str]) -> tuple[Counter[TaskState], int]:
        """Count these tasks by state, and the completed ones that have left out an item.

        The reads are eventually consistent. Raises TryAgain.
        """
        only_that: KeysAndAttributesUnionTypeDef = {
            "Keys": [],
            "ProjectionExpression": "#state, LeftOut",
            "ExpressionAttributeNames": {"#state": "State"},
        }
        items = list(self._items(list(dict.fromkeys(task_ids)), only_that))
        found = [item.get("State", {}).get("S") for item in items]
        left_out = sum(
            state == TaskState.COMPLETED and "LeftOut" in item
            for state, item in zip(found, items, strict=True)
        )
        return Counter(TaskState(one) for one in found if one in tuple(TaskState)), left_out

    def _items(
        self, task_ids: list[str], how: "KeysAndAttributesUnionTypeDef"
    ) -> "Iterator[Mapping[str, AttributeValueTypeDef]]":
        for first in range(0, len(task_ids), AT_ONCE):
            keys = [{"TaskId": text(one)} for one in task_ids[first : first + AT_ONCE]]
            wanted: Mapping[str, KeysAndAttributesUnionTypeDef] = {
                self._table: {**how, "Keys": keys}
            }
            barren = 0
            while True:
                with aws_errors("reading tasks"):
                    page = self._client.batch_get_item(RequestItems=wanted)
                found = page["Responses"].get(self._table, [])
                yield from found
                wanted = page.get("UnprocessedKeys") or {}
                barren = 0 if found else barren + 1
                if not wanted:
                    break
                if barren == _TRIES:
                    raise TryAgain("reading tasks: the table has no free capacity")
                pause(_FIRST_PAUSE * 2**barren)
