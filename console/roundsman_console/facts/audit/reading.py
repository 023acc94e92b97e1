"""Reading what a stack has stored of its orders: bounded, and with an estimate before.

The orders are found by the index of due tasks. Of each, its record, its order row and its history
are read, consistently. They are three reads, and an order may change between them: an order that
seems to break a promise is read again, until nothing has changed meanwhile.
"""

import heapq
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, TypeAlias

from roundsman.aws.errors import aws_errors
from roundsman.definition.plan import Plan
from roundsman.engine.due import Lane, lane_key
from roundsman.errors import SchemaTooNew, UnreadableRecord
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman_console.aws.index_filter import EVERY_ENTRY, IndexFilter
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.task_records import AT_ONCE, IndexEntry
from roundsman_console.base.clock import now
from roundsman_console.base.threads import map_in_threads
from roundsman_console.facts.audit.checks import Judgement, judge
from roundsman_console.facts.audit.stored_order import StoredOrder, stored_order
from roundsman_console.facts.finding.orders import existing

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import ScanInputTypeDef

MOST = 10_000
"""How many orders are read if nothing else is asked for."""

LANES = (Lane.ARCHIVED, Lane.OPEN, Lane.DONE)
"""In this order: a task that ends meanwhile moves to a lane that is read later."""

HISTORIES_AT_ONCE = 8
"""The number of histories that are read at the same time; a client has ten connections."""

TRIES = 4
"""How often an order is read that changes meanwhile."""

SLACK = MINUTE
"""How far the clocks of functions may differ, and that of this machine, in ms."""

UNIT = 4_096
"""The bytes that one read unit reads consistently, or half a unit otherwise."""

ENTRIES_A_UNIT = 50
"""How many entries of the index one read unit reads, at some 150 bytes each."""

REMOVED = "its record was removed, after its retention"
CHANGES = "it changes while it is read"
NO_RECORD = "its record cannot be read"
NO_ROW = "its order row cannot be read"
NO_HISTORY = "its history cannot be read"


@dataclass(frozen=True, slots=True)
class UnreadOrder:
    """An order of which something cannot be read."""

    order_id: str
    why: str
    """The reason, in the same words for every order."""


Judged: TypeAlias = tuple[StoredOrder, Judgement]


@dataclass(frozen=True, slots=True)
class Scope:
    """Which orders are read."""

    since: int | None = None
    """The earliest submission, in epoch ms; None for all."""
    most: int = MOST
    """How many orders are read at most."""
    deep: bool = False
    """Whether the orders whose record was removed are counted: by a read of every order row."""

    @property
    def only(self) -> IndexFilter:
        """What the index decides of it."""
        return EVERY_ENTRY if self.since is None else IndexFilter(submitted_after=self.since - 1)

    def begins(self, lane: Lane) -> int:
        """From when on the index has entries of the lane that may match, in epoch ms."""
        # An ended task ended after it was submitted.
        return 0 if lane is Lane.OPEN or self.since is None else self.since


@dataclass(frozen=True, slots=True)
class AuditCost:
    """What a reading will cost."""

    orders: int
    """The number of orders that will be read."""
    more: bool
    """Whether there are more orders than that."""
    read_units: int
    """About how many read units of DynamoDB it takes."""


def estimate(stack: DeployedStack, scope: Scope) -> AuditCost:
    """Count the orders by the index, up to `most`, and estimate what it takes to read them.

    The sizes of items are averages that AWS brings up to date every six hours.
    """
    found = 0
    for lane in LANES:
        for shard in stack.every_shard:
            key, left = lane_key(lane, shard), scope.most - found
            found += stack.records.count(key, left, since=scope.begins(lane), only=scope.only)
    orders = min(found, scope.most)
    tables = {name: _table(stack, f"{name}TableName") for name in ("Tasks", "Orders", "History")}
    tasks, rows, history = tables["Tasks"], tables["Orders"], tables["History"]
    of_history = history.size / max(1, rows.items)
    each = _units(tasks.size / max(1, tasks.items)) + _units(rows.size / max(1, rows.items))
    units = orders * (each + _units(of_history)) + ceil(orders / ENTRIES_A_UNIT)
    if scope.deep:
        units += ceil(rows.size / UNIT / 2)  # this read need not be consistent
    return AuditCost(orders, found > scope.most, units)


@dataclass(frozen=True, slots=True)
class _Table:
    size: int
    items: int


def _table(stack: DeployedStack, output: str) -> _Table:
    name = stack.output(output)
    with aws_errors(f"describing {name}"):
        found = stack.dynamodb.describe_table(TableName=name)["Table"]
    return _Table(found.get("TableSizeBytes", 0), found.get("ItemCount", 0))


def _units(size: float) -> int:
    return max(1, ceil(size / UNIT))


@dataclass(slots=True)
class OrderReader:
    """Reads and judges the orders of a stack."""

    stack: DeployedStack
    scope: Scope
    seen: set[str] = field(default_factory=set)
    """The ids of the orders that were read."""
    cut: bool = False
    """Whether there are more orders than were read."""
    _plans: dict[str, Plan | None] = field(default_factory=dict)

    def read(self) -> Iterator[Sequence[Judged | UnreadOrder]]:
        """Yield the orders, some at a time: those that need a person, the open ones, the others.

        Those that ended last come first. Raises TryAgain and CallRefused.
        """
        ids = self._ids()
        while part := list(islice(ids, AT_ONCE)):
            yield [self._again(one) for one in self._read(part)]

    def removed(self) -> Iterator[int]:
        """Yield, page by page, how many orders there are whose record was removed.

        It reads every row of the orders table. Raises TryAgain and CallRefused.
        """
        wanted: ScanInputTypeDef = {
            "TableName": self.stack.output("OrdersTableName"),
            "ProjectionExpression": "OrderID, CreatedAt",
        }
        if self.scope.since is not None:
            wanted["FilterExpression"] = "CreatedAt >= :since"
            wanted["ExpressionAttributeValues"] = {":since": {"N": str(self.scope.since)}}
        while True:
            with aws_errors("reading the rows of the orders table"):
                page = self.stack.dynamodb.scan(**wanted)
            ids = (item["OrderID"]["S"] for item in page["Items"])
            yield self._gone([one for one in ids if one not in self.seen])
            last = page.get("LastEvaluatedKey")
            if not last:
                return
            wanted["ExclusiveStartKey"] = last

    def _gone(self, ids: Sequence[str]) -> int:
        client, tasks = self.stack.dynamodb, self.stack.output("TasksTableName")
        parts = [ids[first : first + AT_ONCE] for first in range(0, len(ids), AT_ONCE)]
        return len(ids) - sum(len(existing(client, tasks, "TaskId", part)) for part in parts)

    def _ids(self) -> Iterator[str]:
        """The ids of the orders, each once, at most `most` of them."""
        for lane in LANES:
            newest_first = lane is not Lane.OPEN
            shards = (self._entries(lane, shard, newest_first) for shard in self.stack.every_shard)
            merged = heapq.merge(*shards, key=lambda entry: entry.at, reverse=newest_first)
            for entry in merged:
                if entry.task_id in self.seen:
                    continue
                if len(self.seen) == self.scope.most:
                    self.cut = True
                    return
                self.seen.add(entry.task_id)
                yield entry.task_id

    def _entries(self, lane: Lane, shard: int, newest_first: bool) -> Iterator[IndexEntry]:
        pages = self.stack.records.look(
            lane_key(lane, shard),
            since=self.scope.begins(lane),
            newest_first=newest_first,
            only=self.scope.only,
            in_full=self.scope.most >= MOST,
        )
        return (entry for page in pages for entry in page if entry.task_id)

    def _read(self, ids: Sequence[str]) -> list[Judged | UnreadOrder]:
        at = now()
        loaded = self.stack.records.load_many(ids, at)
        rows = self.stack.records.orders(list(loaded.tasks)) if loaded.tasks else {}
        histories = dict(
            zip(
                loaded.tasks,
                map_in_threads(HISTORIES_AT_ONCE, self._history, list(loaded.tasks)),
                strict=True,
            )
        )
        found: list[Judged | UnreadOrder] = []
        for order_id in ids:
            task = loaded.tasks.get(order_id)
            history = histories.get(order_id)
            if order_id in loaded.unreadable:
                found.append(UnreadOrder(order_id, NO_RECORD))
            elif task is None:
                found.append(UnreadOrder(order_id, REMOVED))
            elif history is None:
                found.append(UnreadOrder(order_id, NO_HISTORY))
            else:
                order = stored_order(
                    task,
                    self._plan(task.plan),
                    rows.get(order_id),
                    history,
                    at=at,
                    troubled=order_id in loaded.troubled,
                    slack=SLACK,
                )
                found.append((order, judge(order)))
        return found

    def _history(self, order_id: str) -> list[HistoryRow] | None:
        with suppress(UnreadableRecord):
            return self.stack.tasks.history(order_id)
        return None

    def _plan(self, name: str) -> Plan | None:
        if name not in self._plans:
            self._plans[name] = None
            with suppress(SchemaTooNew, UnreadableRecord):
                self._plans[name] = self.stack.plans.plan(name)
        return self._plans[name]

    def _again(self, found: Judged | UnreadOrder) -> Judged | UnreadOrder:
        """The order as it is if it is read again, in case it seems to break a promise.

        What was read is believed if it is the same in two readings, one after the other.
        """
        for _ in range(TRIES):
            if isinstance(found, UnreadOrder) or not found[1].broken:
                return found
            before = found[0]
            try:
                self.stack.tasks.order(before.task.task_id)
            except UnreadableRecord:
                return UnreadOrder(before.task.task_id, NO_ROW)
            (found,) = self._read([before.task.task_id])
            if not isinstance(found, UnreadOrder) and _is_same(before, found[0]):
                return found
        return UnreadOrder(before.task.task_id, CHANGES)


def _is_same(before: StoredOrder, after: StoredOrder) -> bool:
    stored = (before.task, before.row, before.history)
    return stored == (after.task, after.row, after.history)
