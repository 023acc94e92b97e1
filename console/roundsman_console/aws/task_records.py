"""Reading many tasks: index entries page by page, records and orders in batches of 100, and counts.

The engine's store is separate, because the engine reads one task at a time.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import failure_key, number, read_order, text
from roundsman.aws.dynamodb.search import look_for_orders
from roundsman.aws.dynamodb.settled import read_divided
from roundsman.aws.dynamodb.tasks import DUE_INDEX, FAILURES_INDEX
from roundsman.aws.errors import aws_errors
from roundsman.errors import SchemaTooNew, TryAgain, UnreadableRecord
from roundsman.model.instants import SECOND
from roundsman.model.states import TaskState
from roundsman.model.task import Task
from roundsman.ports import DueEntry, OrderRow
from roundsman_console.aws.index_filter import EVERY_ENTRY, IndexFilter
from roundsman_console.aws.settled_rows import with_rows
from roundsman_console.base.clock import pause

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef,
        KeysAndAttributesUnionTypeDef,
        QueryInputTypeDef,
    )

AT_ONCE = 100  # the maximum number of items in one BatchGetItem
FIRST_PAGE = 20  # entries of one shard; a list of 50 tasks needs a few from each of 16 shards
FULL_PAGE = 400  # entries of one shard in the first page, if all are needed
LARGEST_PAGE = 4_000
"""Entries of one shard that DynamoDB looks at for a page if a filter of the index leaves out some
of them, or if all are needed: some half of the 1 MB at which it answers anyway."""
GROWS_BY = 10
"""How many times as many entries the next such page has: the filter may match nearly all entries,
or none."""
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


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """An entry of one shard of an index, or the end of a page of it, in the order of the index.

    At the end of a page, everything in the shard up to `at` has been looked at.
    """

    task_id: str
    """Empty at the end of a page."""
    at: int
    """The sort key of the index in epoch ms."""
    looked_at: int = 1
    """The number of entries that were looked at for this one: at the end of a page, those that a
    filter of the index left out of it."""
    workflow: str | None = None
    created_at: int | None = None
    """When the order was submitted, in epoch ms; None if the index does not have it."""
    outcome: str | None = None
    """The state in which the task ended; None if it is open, or if the index does not have it."""


@dataclass(frozen=True, slots=True)
class TaskGlance:
    """What the counts of a stack need of one task."""

    task_id: str
    lane: str
    """Its lane of the due index with the shard: `open#7`."""
    due_at: int
    """In epoch ms."""
    state: str
    left_out: bool
    """Whether it has left out an item of a fan-out."""
    group: str
    """Its failure group; empty if it is in none."""
    expires_at: int | None
    """When its retention ends, in epoch seconds; None if that is not known yet."""


_GLANCED = ("TaskId", "Lane", "DueAt", "#state", "LeftOut", "FailureGroup", "ExpiresAt")


class Records:
    """The tasks table, for lists. `page` is the maximum number of index entries in one Query.

    `orders_table` is None for a reader that needs no orders.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        tasks_table: str,
        orders_table: str | None = None,
        page: int = AT_ONCE,
    ) -> None:
        self._client = client
        self._table = tasks_table
        self._orders = orders_table
        self._page = page
        self.workflows: set[str] = set()
        """The workflows of the entries that were read until now, for people to choose from."""

    def entries(
        self, lane: str, *, since: int = 0, newest_first: bool = False, first: int = FIRST_PAGE
    ) -> Iterator[DueEntry]:
        """The entries of one lane shard (`archived#7`) from `since` (epoch ms) on, page by page.

        `first` is the size of the first page: the number of entries that the caller expects to
        need from this shard. Each page may raise TryAgain or CallRefused.
        """
        for page in self.look(lane, since=since, newest_first=newest_first, first=first):
            yield from (DueEntry(one.task_id, one.at) for one in page if one.task_id)

    def look(
        self,
        lane: str,
        *,
        since: int = 0,
        until: int = END_OF_TIME,
        newest_first: bool = False,
        first: int = FIRST_PAGE,
        only: IndexFilter = EVERY_ENTRY,
        in_full: bool = False,
    ) -> Iterator[list[IndexEntry]]:
        """The entries of one lane shard from `since` to `until` (epoch ms), page by page.

        The last one of each page is its end. `first` is the number of entries that the caller
        expects to need from this shard, unless it reads the shard `in_full`. `only` leaves out
        entries that cannot match; an entry that stays may not match either. Each page may raise
        TryAgain or CallRefused.
        """
        query = _only(self._query(lane, since, until), only)
        query["ScanIndexForward"] = not newest_first
        grows = in_full or "FilterExpression" in query
        query["Limit"] = FULL_PAGE if in_full else min(first, self._page)
        end = since if newest_first else until
        return self._pages(
            query, f"listing {lane}", "DueAt", LARGEST_PAGE if grows else self._page, end
        )

    def look_at_group(
        self,
        group: str,
        shard: int,
        *,
        since: int = 0,
        until: int = END_OF_TIME,
        newest_first: bool = False,
    ) -> Iterator[list[IndexEntry]]:
        """The members in one shard of a failure group that failed from `since` to `until`.

        They come page by page; the last one of each page is its end.
        """
        key = failure_key(group, shard)
        which = "FailureGroup = :group AND FailedAt BETWEEN :since AND :until"
        query: QueryInputTypeDef = {
            "TableName": self._table,
            "IndexName": FAILURES_INDEX,
            "KeyConditionExpression": which,
            "ExpressionAttributeValues": {
                ":group": text(key),
                ":since": number(since),
                ":until": number(until),
            },
            "ScanIndexForward": not newest_first,
            "Limit": self._page,
        }
        doing, end = f"reading the failures of {key}", since if newest_first else until
        return self._pages(query, doing, "FailedAt", self._page, end)

    def look_by_key(
        self, index: str, key: str, *, since: int, until: int, newest_first: bool
    ) -> Iterator[list[IndexEntry]]:
        """The orders that have this search key in one index, submitted from `since` to `until`.

        They come page by page; the last entry of each page is its end.
        """
        pages = look_for_orders(
            self._client,
            self._orders or "",
            index,
            key,
            since=since,
            until=until,
            newest_first=newest_first,
            page=self._page,
        )
        for page in pages:
            found = [
                IndexEntry(one.order_id, one.created_at, created_at=one.created_at) for one in page
            ]
            yield [*found, IndexEntry("", found[-1].at, 0)] if found else []
        yield [IndexEntry("", since if newest_first else until, 0)]

    def _pages(
        self, query: "QueryInputTypeDef", doing: str, sort_key: str, size: int, end: int
    ) -> Iterator[list[IndexEntry]]:
        """The pages of a query; the last one ends at `end`."""
        while True:
            with aws_errors(doing):
                page = self._client.query(**query)
            last = page.get("LastEvaluatedKey")
            left_out = page["ScannedCount"] - page["Count"]
            ends = IndexEntry("", _instant(last[sort_key]) if last else end, left_out)
            found = [_entry(item, sort_key) for item in page["Items"]]
            self.workflows.update(one.workflow for one in found if one.workflow is not None)
            yield [*found, ends]
            if not last:
                return
            limit = min(query["Limit"] * GROWS_BY, size)
            query |= {"ExclusiveStartKey": last, "Limit": limit}

    def count(
        self,
        lane: str,
        most: int,
        *,
        since: int = 0,
        until: int = END_OF_TIME,
        only: IndexFilter = EVERY_ENTRY,
    ) -> int:
        """Count the entries of the lane shard from `since` to `until` (epoch ms), inclusive.

        Counting stops when the count exceeds `most`. DynamoDB sends no items for a count, so it
        takes a tenth of the time of `entries`.
        """
        query = _only(self._query(lane, since, until), only)
        return self._count(query, most, f"counting {lane}", filtered="FilterExpression" in query)

    def all_if_few(self) -> list[TaskGlance] | None:
        """Return all tasks of a small table with one request; None if it is larger than 1 MB.

        It uses 128 read units at most, as every such page. Raises TryAgain and CallRefused.
        """
        with aws_errors("reading the tasks"):
            page = self._client.scan(
                TableName=self._table,
                ProjectionExpression=", ".join(_GLANCED),
                ExpressionAttributeNames={"#state": "State"},
            )
        if "LastEvaluatedKey" in page:
            return None
        # The other items are parts of long tasks.
        return [_glance(item) for item in page["Items"] if "Lane" in item and "DueAt" in item]

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

    def _count(
        self, query: "QueryInputTypeDef", most: int, doing: str, *, filtered: bool = False
    ) -> int:
        found = 0
        while found <= most:
            query["Select"] = "COUNT"
            if not filtered:  # else few of the entries may match that a limit lets be looked at
                query["Limit"] = most + 1 - found
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

    def orders(self, order_ids: Sequence[str]) -> dict[str, OrderRow]:
        """Read the rows of these orders by id, in batches of 100. A missing one is left out.

        The reads are strongly consistent: a missing row hides the whole text of an error. A row
        that cannot be read is left out too. Raises TryAgain and CallRefused.
        """
        if self._orders is None:
            raise ValueError("this reader has no orders table")
        how: KeysAndAttributesUnionTypeDef = {"Keys": [], "ConsistentRead": True}
        found: dict[str, OrderRow] = {}
        for item in self._batches(self._orders, "OrderID", list(dict.fromkeys(order_ids)), how):
            with suppress(UnreadableRecord):
                found[item["OrderID"]["S"]] = read_order(item)
        return found

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
        return self._batches(self._table, "TaskId", task_ids, how)

    def _batches(
        self, table: str, key: str, ids: Sequence[str], how: "KeysAndAttributesUnionTypeDef"
    ) -> "Iterator[Mapping[str, AttributeValueTypeDef]]":
        what = "tasks" if table == self._table else "orders"
        for first in range(0, len(ids), AT_ONCE):
            keys = [{key: text(one)} for one in ids[first : first + AT_ONCE]]
            wanted: Mapping[str, KeysAndAttributesUnionTypeDef] = {table: {**how, "Keys": keys}}
            barren = 0
            while True:
                with aws_errors(f"reading {what}"):
                    page = self._client.batch_get_item(RequestItems=wanted)
                found = page["Responses"].get(table, [])
                yield from found
                wanted = page.get("UnprocessedKeys") or {}
                barren = 0 if found else barren + 1
                if not wanted:
                    break
                if barren == _TRIES:
                    raise TryAgain(f"reading {what}: the table has no free capacity")
                pause(_FIRST_PAUSE * 2**barren)


def _only(query: "QueryInputTypeDef", only: IndexFilter) -> "QueryInputTypeDef":
    """Let the query leave out entries; returns the query itself."""
    conditions = only.conditions()
    if conditions:
        query["FilterExpression"] = " AND ".join(conditions)
        values = query.get("ExpressionAttributeValues", {})
        query["ExpressionAttributeValues"] = reduce(or_, conditions.values(), dict(values))
    return query


def _glance(item: "Mapping[str, AttributeValueTypeDef]") -> TaskGlance:
    return TaskGlance(
        item["TaskId"]["S"],
        item["Lane"].get("S", ""),
        _instant(item["DueAt"]),
        item.get("State", {}).get("S", ""),
        "LeftOut" in item,
        item.get("FailureGroup", {}).get("S", "").partition("#")[0],
        _instant(item["ExpiresAt"]) if "ExpiresAt" in item else None,
    )


def _instant(value: "AttributeValueTypeDef") -> int:
    return int(float(value["N"]))


def _entry(item: "Mapping[str, AttributeValueTypeDef]", sort_key: str) -> IndexEntry:
    return IndexEntry(
        item["TaskId"]["S"],
        _instant(item[sort_key]),
        workflow=item.get("Workflow", {}).get("S"),
        created_at=_instant(item["CreatedAt"]) if "CreatedAt" in item else None,
        outcome=item.get("Outcome", {}).get("S"),
    )
