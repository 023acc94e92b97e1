"""Tables of DynamoDB in memory, behind the calls of a boto3 client.

    tables = MemoryDynamoDB(clock)
    tables.create_table(TableName="Tasks", ...)
    store = DynamoStore(tables.client, tasks_table="Tasks", ...)

A call returns or raises what DynamoDB's would: conditions, transactions, indexes, pages, limits and
the errors of requests that are not valid. The contract suite runs on these tables and on DynamoDB
Local, and tests/contract/test_memory_tables.py compares their answers call by call.

A parameter or an expression that neither the stores nor the console's lists use raises
NotImplementedError.

What fails on AWS fails here when a test says so: `index_lag`, `lagging_indexes`, `stale_reads`,
`lost_answer`, `batch_reads`, `conflict`, `down`, `capacity`, `throttled`, `expire`. The repeat of a
transaction whose answer was lost succeeds, as by its token.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from decimal import Decimal
from threading import RLock
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, cast

from botocore.exceptions import ClientError

from roundsman.model.instants import SECOND
from roundsman_testing.dynamodb.expressions import (
    ConditionExpression,
    Given,
    InvalidExpression,
    Item,
    Parsed,
    Path,
    ProjectionExpression,
    condition_of,
    kind_of,
    number_of,
    projection_of,
    update_of,
    value_at,
)

if TYPE_CHECKING:
    from typing import Unpack

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import (
        AttributeValueTypeDef as Value,
    )
    from mypy_boto3_dynamodb.type_defs import (
        BatchGetItemInputTypeDef,
        BatchGetItemOutputTypeDef,
        CreateTableInputTypeDef,
        DeleteItemInputTypeDef,
        DeleteItemOutputTypeDef,
        GetItemInputTypeDef,
        GetItemOutputTypeDef,
        PutItemInputTypeDef,
        PutItemOutputTypeDef,
        QueryInputTypeDef,
        QueryOutputTypeDef,
        ScanInputTypeDef,
        ScanOutputTypeDef,
        TransactWriteItemsInputTypeDef,
        TransactWriteItemsOutputTypeDef,
        UpdateItemInputTypeDef,
        UpdateItemOutputTypeDef,
    )

KeyPart: TypeAlias = str | bytes | int | Decimal
Key: TypeAlias = tuple[KeyPart, ...]
Request: TypeAlias = Mapping[str, object]
OnWrite: TypeAlias = Callable[[str, Item | None, Item | None], None]
"""Called after each write with the table's name, and the item before and after; None: no item.

After a transaction, it is called for each of its writes once all are made."""

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
LARGEST_ITEM: Final = 400 * 1024
LARGEST_PAGE: Final = 1024 * 1024
MOST_KEYS: Final = 100
MOST_WRITES: Final = 100
READ_UNIT: Final = 4 * 1024
WRITE_UNIT: Final = 1024

KNOWN: Final = frozenset(
    {
        *("TableName", "IndexName", "Item", "Key", "Keys", "ConsistentRead"),
        *("ConditionExpression", "UpdateExpression", "KeyConditionExpression"),
        *("ExpressionAttributeNames", "ExpressionAttributeValues"),
        *("ReturnValues", "ReturnValuesOnConditionCheckFailure"),
        *("ScanIndexForward", "Limit", "ExclusiveStartKey"),
        *("FilterExpression", "ProjectionExpression", "Select"),
    }
)
"""The parameters of calls that these tables know."""


@dataclass(slots=True)
class _Index:
    """A table by its keys, or an index of it: items by partition, and in it by their table key."""

    hash_name: str
    range_name: str | None
    projected: frozenset[str] | None
    """The attributes that it has; None for all."""
    partitions: dict[KeyPart, dict[Key, Item]] = field(default_factory=dict)
    pending: deque[tuple[int, Key, Item | None]] = field(default_factory=deque)
    """Writes that the index does not show yet, with the instant (epoch ms) when it does."""
    _placed: dict[Key, KeyPart] = field(default_factory=dict)

    def empty(self) -> "_Index":
        """Return the same index without items."""
        return _Index(self.hash_name, self.range_name, self.projected)

    def put(self, key: Key, item: Item | None) -> None:
        """Show the item at its place, or nowhere if it has no key of this index."""
        before = self._placed.pop(key, None)
        if before is not None:
            partition = self.partitions[before]
            del partition[key]
            if not partition:
                del self.partitions[before]
        if item is None or self.hash_name not in item:
            return
        if self.range_name is not None and self.range_name not in item:
            return
        if self.projected is not None:
            item = {name: value for name, value in item.items() if name in self.projected}
        place = key_part(item[self.hash_name])
        self.partitions.setdefault(place, {})[key] = item
        self._placed[key] = place

    def position(self, key: Key, item: Item) -> tuple[KeyPart, ...]:
        """What the items of a partition are ordered by."""
        if self.range_name is None:
            return key
        return (key_part(item[self.range_name]), *key)


@dataclass(slots=True)
class _Table:
    name: str
    keys: tuple[str, ...]
    types: Mapping[str, str]
    """The types of key attributes, also of indexes."""
    primary: _Index
    indexes: dict[str, _Index]
    items: dict[Key, Item] = field(default_factory=dict)
    before: dict[Key, Item | None] = field(default_factory=dict)
    """Each item before its last write."""

    def key_of(self, item: "Mapping[str, Value]") -> Key:
        return tuple([key_part(item[name]) for name in self.keys])

    def before_last_writes(self, index: _Index) -> _Index:
        """The index with each item as before its last write."""
        found = index.empty()
        for key, item in {**self.items, **self.before}.items():
            found.put(key, item)
        return found


@dataclass(frozen=True, slots=True)
class _Write:
    """A write that can be made: the new item and the one that it replaces."""

    table: _Table
    key: Key
    old: Item | None
    new: Item | None
    changed: Sequence[Path] = ()


class MemoryDynamoDB:
    """All tables of one account and region. Thread-safe: each call is atomic.

    `clock` is the present in epoch ms, for what takes time: `index_lag`, `capacity` and `expire`.
    """

    def __init__(self, clock: Callable[[], int] = lambda: 0) -> None:
        self.index_lag = 0
        """How long a write takes to be seen in indexes, in ms."""
        self.batch_reads = MOST_KEYS
        """How many keys a BatchGetItem reads; it leaves the others out (`UnprocessedKeys`)."""
        self.capacity: dict[tuple[str, Literal["read", "write"]], int] = {}
        """The units that a table has in each second of the clock; without an entry, any number.

        Once they are used up, calls are throttled until the second is over. An update counts by the
        size of the item before it. The tries with which boto3 repeats a throttled call are not
        made, because the clock does not go on between them."""
        self.on_write: list[OnWrite] = []
        self._clock = clock
        self._lock = RLock()
        self._tables: dict[str, _Table] = {}
        self._stale: str | None = None
        self._lags: str | None = None
        self._in_conflict: str | None = None
        self._is_down = False
        self._loses_answer = False
        self._used_at = 0
        """The second of the clock in which `_used` was used."""
        self._used: Counter[tuple[str, str]] = Counter()
        """Half units."""

    @property
    def client(self) -> "DynamoDBClient":
        """These tables as a boto3 client, of which they have the calls below."""
        return cast("DynamoDBClient", self)

    # --- what tests say --------------------------------------------------------------------------

    @contextmanager
    def stale_reads(self, table: str) -> Iterator[None]:
        """Let GetItem and BatchGetItem find each item of a table as before its last write, unless
        they are strongly consistent."""
        self._stale = table
        try:
            yield
        finally:
            self._stale = None

    @contextmanager
    def lagging_indexes(self, table: str) -> Iterator[None]:
        """Let the indexes of a table show each item as before its last write."""
        self._lags = table
        try:
            yield
        finally:
            self._lags = None

    @contextmanager
    def short_batches(self, keys: int) -> Iterator[None]:
        """Limit each BatchGetItem to this number of keys."""
        before, self.batch_reads = self.batch_reads, keys
        try:
            yield
        finally:
            self.batch_reads = before

    @contextmanager
    def throttled(self) -> Iterator[None]:
        """Let no table have capacity left."""
        before = self.capacity
        self.capacity = {(name, "read"): 0 for name in self._tables}
        self.capacity |= {(name, "write"): 0 for name in self._tables}
        try:
            yield
        finally:
            self.capacity = before

    @contextmanager
    def lost_answer(self) -> Iterator[None]:
        """Lose the answer of the next write, which boto3 then repeats."""
        self._loses_answer = True
        try:
            yield
        finally:
            self._loses_answer = False

    @contextmanager
    def conflict(self, table: str) -> Iterator[None]:
        """Let each write of a table's items meet a transaction of another caller.

        A transaction is cancelled for it and for the conditions that fail on its other items.
        """
        self._in_conflict = table
        try:
            yield
        finally:
            self._in_conflict = None

    @contextmanager
    def down(self, *, is_down: bool = True) -> Iterator[None]:
        """Let every call fail, as it does after all tries of boto3 while DynamoDB is down.

        Inside, calls work again with `is_down` False: those of a test that looks at the tables.
        """
        before, self._is_down = self._is_down, is_down
        try:
            yield
        finally:
            self._is_down = before

    def backup(self) -> Mapping[str, Sequence[Item]]:
        """Return the items of all tables, for `restore`."""
        with self._lock:
            return {name: list(table.items.values()) for name, table in self._tables.items()}

    def restore(self, backup: Mapping[str, Sequence[Item]]) -> None:
        """Put all tables back to how they were at a backup; indexes show it at once.

        `on_write` is not called.
        """
        with self._lock:
            for name, items in backup.items():
                table = self._tables[name]
                restored = replace(
                    table,
                    primary=table.primary.empty(),
                    indexes={index: one.empty() for index, one in table.indexes.items()},
                    items={table.key_of(item): item for item in items},
                    before={},
                )
                for index in (restored.primary, *restored.indexes.values()):
                    for key, item in restored.items.items():
                        index.put(key, item)
                self._tables[name] = restored

    def expire(self, attribute: str = "ExpiresAt") -> None:
        """Delete the items whose time to live is over (epoch seconds), as DynamoDB does later."""
        with self._lock:
            for table in self._tables.values():
                for key, item in list(table.items.items()):
                    if "N" in item.get(attribute, {}) and (
                        number_of(item[attribute]["N"]) * 1000 <= self._clock()
                    ):
                        self._store(_Write(table, key, item, None))

    def items(self, table: str) -> list[Item]:
        """All items of a table, in the order of their keys."""
        with self._lock:
            found = self._tables[table].items
            return [dict(found[key]) for key in sorted(found)]

    def row(self, table: str, *key: KeyPart) -> Item | None:
        """Return the item that is stored, not to be changed: a write stores another one."""
        return self._tables[table].items.get(key)

    # --- the calls of a client -------------------------------------------------------------------

    def create_table(self, **request: "Unpack[CreateTableInputTypeDef]") -> None:
        """Make an empty table."""
        types = {
            one["AttributeName"]: str(one["AttributeType"])
            for one in request["AttributeDefinitions"]
        }
        keys = _key_names(request["KeySchema"])
        indexes = {}
        for index in request.get("GlobalSecondaryIndexes", ()):
            names = _key_names(index["KeySchema"])
            projection = index["Projection"]
            shown = None
            if projection.get("ProjectionType") != "ALL":
                shown = frozenset({*keys, *names, *projection.get("NonKeyAttributes", ())})
            indexes[index["IndexName"]] = _Index(names[0], _second(names), shown)
        name = request["TableName"]
        primary = _Index(keys[0], _second(keys), None)
        self._tables[name] = _Table(name, keys, types, primary, indexes)

    def get_item(self, **request: "Unpack[GetItemInputTypeDef]") -> "GetItemOutputTypeDef":
        """Read one item."""
        with self._lock:
            table = self._table(request, "GetItem")
            key = self._key(table, request["Key"], "GetItem")
            found = self._read(table, key, latest=request.get("ConsistentRead", False))
            if not self._use_read(table, [found or {}], request):
                raise _throttled("GetItem")
        return cast("GetItemOutputTypeDef", {} if found is None else {"Item": dict(found)})

    def batch_get_item(
        self, **request: "Unpack[BatchGetItemInputTypeDef]"
    ) -> "BatchGetItemOutputTypeDef":
        """Read up to 100 items of several tables; keys may be left out.

        It is throttled if it can read nothing.
        """
        responses: dict[str, list[Item]] = {}
        left_out: dict[str, object] = {}
        read = 0
        with self._lock:
            asked = request["RequestItems"]
            if not 1 <= sum(len(one["Keys"]) for one in asked.values()) <= MOST_KEYS:
                raise _invalid("Too many items requested for the BatchGetItem call", "BatchGetItem")
            for name, one in asked.items():
                table = self._table({**one, "TableName": name}, "BatchGetItem")
                keys = [self._key(table, key, "BatchGetItem") for key in one["Keys"]]
                if len(set(keys)) < len(keys):
                    raise _invalid("Provided list of item keys contains duplicates", "BatchGetItem")
                latest = one.get("ConsistentRead", False)
                shown = _projected(one)
                _given(one, shown, "BatchGetItem")
                responses[name] = []
                for number, key in enumerate(keys):
                    found = self._read(table, key, latest=latest)
                    if read == self.batch_reads or not self._use_read(table, [found or {}], one):
                        left_out[name] = {**one, "Keys": one["Keys"][number:]}
                        break
                    read += 1
                    if found is not None:
                        responses[name].append(_shown(found, one))
            if not read and self.batch_reads:
                raise _throttled("BatchGetItem")
        page = {"Responses": responses, "UnprocessedKeys": left_out}
        return cast("BatchGetItemOutputTypeDef", page)

    def put_item(self, **request: "Unpack[PutItemInputTypeDef]") -> "PutItemOutputTypeDef":
        """Store an item in place of the one with its key."""
        return cast("PutItemOutputTypeDef", self._written("PutItem", cast("Request", request)))

    def delete_item(self, **request: "Unpack[DeleteItemInputTypeDef]") -> "DeleteItemOutputTypeDef":
        """Delete an item, if there is one."""
        found = self._written("DeleteItem", cast("Request", request))
        return cast("DeleteItemOutputTypeDef", found)

    def update_item(self, **request: "Unpack[UpdateItemInputTypeDef]") -> "UpdateItemOutputTypeDef":
        """Change attributes of an item, which is made if there is none."""
        found = self._written("UpdateItem", cast("Request", request))
        return cast("UpdateItemOutputTypeDef", found)

    def transact_write_items(
        self, **request: "Unpack[TransactWriteItemsInputTypeDef]"
    ) -> "TransactWriteItemsOutputTypeDef":
        """Make all of these writes, or none."""
        name = "TransactWriteItems"
        with self._lock:
            self._loses_answer = False  # the repeat has the same token, and the same answer
            wanted = [next(iter(one.items())) for one in request["TransactItems"]]
            if not 1 <= len(wanted) <= MOST_WRITES:
                raise _invalid("Member must have length from 1 to 100", name)
            places = [self._place(cast("Request", one), name) for _, one in wanted]
            if len(set(places)) < len(places):
                raise _invalid("The transaction cannot have several operations on one item", name)
            writes: list[_Write] = []
            reasons: list[dict[str, object]] = []
            for kind, one in wanted:
                try:
                    writes.append(self._possible(f"{kind}Item", cast("Request", one), name))
                    reasons.append({"Code": "None"})
                except _Refused as refused:
                    cause = {"Code": refused.reason, "Message": _MESSAGES[refused.reason]}
                    reasons.append({**cause, **refused.shown})
                except InvalidExpression as problem:
                    raise _invalid(str(problem), name) from None
            if any(reason["Code"] != "None" for reason in reasons):
                raise _error(
                    "TransactionCanceledException",
                    "Transaction cancelled, please refer cancellation reasons for specific reasons",
                    name,
                    CancellationReasons=reasons,
                )
            for write in writes:
                self._put_in_place(write)
            for write in writes:
                self._report(write)
        return cast("TransactWriteItemsOutputTypeDef", {})

    def query(self, **request: "Unpack[QueryInputTypeDef]") -> "QueryOutputTypeDef":
        """Read a page of one partition, in the order of its range key."""
        with self._lock:
            table = self._table(request, "Query")
            index = table.primary
            if "IndexName" in request:
                if request.get("ConsistentRead"):
                    raise _invalid(
                        "Consistent reads are not supported on global secondary indexes", "Query"
                    )
                index = table.indexes[request["IndexName"]]
                self._show_what_is_due(index)
                if self._lags == table.name:
                    index = table.before_last_writes(index)
            text = request["KeyConditionExpression"]
            condition = condition_of(str(text))
            filtered = _filters(cast("Request", request))
            projected = _projected(request)
            given = _given(request, (condition, *filtered, *projected), "Query")
            partitions = [
                key_part(given.values[value])
                for path, value in condition.equals
                if given.path(path) == (index.hash_name,)
            ]
            if len(partitions) != 1:
                raise _invalid(
                    f"Query condition missed key schema element: {index.hash_name}", "Query"
                )
            found = [
                (index.position(key, item), item)
                for key, item in index.partitions.get(partitions[0], {}).items()
                if condition.holds(item, given)
            ]
            backwards = not request.get("ScanIndexForward", True)
            found.sort(key=lambda one: one[0], reverse=backwards)
            page = self._page(table, index, found, cast("Request", request), backwards=backwards)
            if not self._use_read(table, page["Items"], request):
                raise _throttled("Query")
            items = [
                _shown(item, request)
                for item in page["Items"]
                if all(one.holds(item, given) for one in filtered)
            ]
            answer = {**page, "Items": items, "Count": len(items)}
            if request.get("Select") == "COUNT":
                del answer["Items"]
            return cast("QueryOutputTypeDef", answer)

    def scan(self, **request: "Unpack[ScanInputTypeDef]") -> "ScanOutputTypeDef":
        """Read the first page of a table."""
        with self._lock:
            table = self._table(request, "Scan")
            found = [(table.primary.position(key, item), item) for key, item in table.items.items()]
            found.sort(key=lambda one: one[0])
            page = self._page(
                table, table.primary, found, cast("Request", request), backwards=False
            )
            if not self._use_read(table, page["Items"], request):
                raise _throttled("Scan")
            items = [_shown(item, request) for item in page["Items"]]
            return cast("ScanOutputTypeDef", {**page, "Items": items, "Count": len(items)})

    # --- reads -----------------------------------------------------------------------------------

    def _page(
        self,
        table: _Table,
        index: _Index,
        found: Sequence[tuple[tuple[KeyPart, ...], Item]],
        request: Request,
        *,
        backwards: bool,
    ) -> "QueryOutputTypeDef":
        start = cast("Item | None", request.get("ExclusiveStartKey"))
        if start is not None:
            last = index.position(table.key_of(start), start)
            found = [one for one in found if (one[0] < last if backwards else one[0] > last)]
        limit = cast("int", request.get("Limit", len(found) + 1))
        items: list[Item] = []
        size = 0
        for _, item in found[:limit]:
            items.append(dict(item))
            size += item_size(item)
            if size > LARGEST_PAGE:
                break
        page: dict[str, object] = {"Items": items, "ScannedCount": len(items)}
        if items and (len(items) == limit or len(items) < len(found)):
            names = {*table.keys, index.hash_name, index.range_name}
            page["LastEvaluatedKey"] = {k: v for k, v in items[-1].items() if k in names}
        return cast("QueryOutputTypeDef", page)

    def _read(self, table: _Table, key: Key, *, latest: bool) -> Item | None:
        if self._stale == table.name and not latest and key in table.before:
            return table.before[key]
        return table.items.get(key)

    def _use_read(
        self, table: _Table, found: "Sequence[Mapping[str, Value]]", request: Mapping[str, object]
    ) -> bool:
        """Use the units of a read; False if the table has none left."""
        if not self.capacity:
            return True
        units = _units(sum(map(item_size, found)), READ_UNIT)
        return self._use(table, "read", units * (2 if request.get("ConsistentRead") else 1))

    def _use(self, table: _Table, what: Literal["read", "write"], half_units: int) -> bool:
        second, used = self._clock() // SECOND, (table.name, what)
        if second != self._used_at:
            self._used_at = second
            self._used.clear()
        if used in self.capacity and self._used[used] >= 2 * self.capacity[used]:
            return False
        self._used[used] += half_units
        return True

    def _show_what_is_due(self, index: _Index) -> None:
        now = self._clock()
        while index.pending and index.pending[0][0] <= now:
            _, key, item = index.pending.popleft()
            index.put(key, item)

    # --- writes ----------------------------------------------------------------------------------

    def _written(self, operation: str, request: Request) -> dict[str, object]:
        with self._lock:
            repeats, self._loses_answer = self._loses_answer, False
            write = self._single(operation, request)
            self._store(write)
            if repeats:
                write = self._single(operation, request)
                self._store(write)
        return _returned(write, request)

    def _single(self, operation: str, request: Request) -> _Write:
        try:
            return self._possible(operation, request, operation)
        except _Refused as refused:
            code, message = f"{refused.reason}Exception", _MESSAGES[refused.reason]
            raise _error(code, message, operation, **refused.shown) from None
        except InvalidExpression as problem:
            raise _invalid(str(problem), operation) from None

    def _place(self, request: Request, call: str) -> tuple[str, Key]:
        """Return the table and the key of a write."""
        table = self._table(request, call)
        named = cast("Item", request["Item"] if "Item" in request else request["Key"])
        return table.name, self._key(table, named, call, whole="Key" in request)

    def _possible(self, operation: str, request: Request, call: str) -> _Write:
        """Return the write if its condition holds.

        Raises ClientError for a request that is not valid, _Refused, and InvalidExpression for what
        cannot be done with the item.
        """
        if operation not in ("PutItem", "UpdateItem", "DeleteItem"):
            raise NotImplementedError(f"{call}: these tables do not know {operation}")
        name, key = self._place(request, call)
        table = self._tables[name]
        old = table.items.get(key)
        if self._in_conflict == name:
            raise _Refused("TransactionConflict")
        if self.capacity:
            size = max(item_size(old or {}), item_size(cast("Item", request.get("Item", {}))))
            twice = 2 if call == "TransactWriteItems" else 1
            if not self._use(table, "write", 2 * twice * _units(size, WRITE_UNIT)):
                raise _Refused(THROTTLED)
        parsed: list[Parsed] = []
        condition = update = None
        if "ConditionExpression" in request:
            condition = condition_of(str(request["ConditionExpression"]))
            parsed.append(condition)
        if "UpdateExpression" in request:
            update = update_of(str(request["UpdateExpression"]))
            parsed.append(update)
        given = _given(request, parsed, call)
        changed = [] if update is None else update.paths(given)
        if condition is not None and not condition.holds(old or {}, given):
            wants = request.get("ReturnValuesOnConditionCheckFailure")
            shown = {"Item": dict(old)} if old and wants == "ALL_OLD" else {}
            raise _Refused("ConditionalCheckFailed", shown)
        if operation == "DeleteItem":
            return _Write(table, key, old, None)
        if operation == "PutItem":
            new = dict(cast("Item", request["Item"]))
        else:
            new = old or dict(cast("Item", request["Key"]))
            if update is not None:
                new = update.updated(new, changed, table.keys, given)
        self._check(table, new, call)
        return _Write(table, key, old, new, changed)

    def _store(self, write: _Write) -> None:
        self._put_in_place(write)
        self._report(write)

    def _put_in_place(self, write: _Write) -> None:
        write.table.before[write.key] = write.old
        self._place_item(write.table, write.key, write.new)

    def _report(self, write: _Write) -> None:
        if write.old is None and write.new is None:
            return  # there was nothing to delete
        for hook in self.on_write:
            hook(write.table.name, write.old, write.new)

    def _place_item(self, table: _Table, key: Key, item: Item | None) -> None:
        if item is None:
            table.items.pop(key, None)
        else:
            table.items[key] = item
        table.primary.put(key, item)
        for index in table.indexes.values():
            index.pending.append((self._clock() + self.index_lag, key, item))
            self._show_what_is_due(index)

    # --- what a request must be ------------------------------------------------------------------

    def _table(self, request: Mapping[str, object], call: str) -> _Table:
        if strange := sorted(request.keys() - KNOWN):
            raise NotImplementedError(f"{call}: these tables do not know {', '.join(strange)}")
        if self._is_down:
            status = {"HTTPStatusCode": 500}
            raise _error("InternalServerError", "It is down", call, ResponseMetadata=status)
        found = self._tables.get(str(request["TableName"]))
        if found is None:
            raise _error(
                "ResourceNotFoundException", "Cannot do operations on a non-existent table", call
            )
        return found

    @staticmethod
    def _key(table: _Table, named: "Mapping[str, object]", call: str, *, whole: bool = True) -> Key:
        """Return the key of an item; with `whole`, nothing else may be named."""
        if whole and len(named) != len(table.keys):
            raise _invalid("The provided key element does not match the schema", call)
        for name in table.keys:
            value = cast("Value | None", named.get(name))
            if value is None or kind_of(value) != table.types[name]:
                raise _invalid("The provided key element does not match the schema", call)
            if not next(iter(value.values())):
                raise _invalid("One or more parameter values are not valid: empty string", call)
        return table.key_of(cast("Item", named))

    @staticmethod
    def _check(table: _Table, item: Item, call: str) -> None:
        """Refuse an item that is too large, or whose keys of an index have another type."""
        for name, wanted in table.types.items():
            if name in item and kind_of(item[name]) != wanted:
                raise _invalid(f"Type mismatch for Index Key {name}", call)
        # A character has at most four bytes, and `repr` is ten times as fast as `item_size`.
        if 4 * len(repr(item)) > LARGEST_ITEM and item_size(item) > LARGEST_ITEM:
            raise _invalid("Item size has exceeded the maximum allowed size", call)


class _Refused(Exception):
    """A write is not made; `shown` is what the error says of the item."""

    def __init__(self, reason: str, shown: Mapping[str, object] | None = None) -> None:
        super().__init__()
        self.reason = reason
        self.shown = shown or {}


THROTTLED: Final = "ProvisionedThroughputExceeded"
_MESSAGES: Mapping[str, str] = {
    "ConditionalCheckFailed": "The conditional request failed",
    "TransactionConflict": "Transaction is ongoing for the item",
    THROTTLED: "The level of configured provisioned throughput for the table was exceeded",
}
"""By the reason why a transaction is cancelled. The error of a single write is named after it."""


def _error(code: str, message: str, call: str, **shown: object) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400},
        **shown,
    }
    return ClientError(response, call)  # type: ignore[arg-type]  # keys of one call


def _invalid(message: str, call: str) -> ClientError:
    return _error("ValidationException", message, call)


def _throttled(call: str) -> ClientError:
    return _error(f"{THROTTLED}Exception", _MESSAGES[THROTTLED], call)


def _units(size: int, unit: int) -> int:
    """Return how many units an item of this size in bytes needs; at least one."""
    return max(1, -(-size // unit))


def _given(request: Mapping[str, object], parsed: Sequence[Parsed], call: str) -> Given:
    """Return the placeholders' names and values; all must be given, and each must be used."""
    names = cast("Mapping[str, str]", request.get("ExpressionAttributeNames", {}))
    values = cast("Mapping[str, Value]", request.get("ExpressionAttributeValues", {}))
    for kind, known, used in (
        ("Names", names.keys(), [one.names for one in parsed]),
        ("Values", values.keys(), [one.values for one in parsed]),
    ):
        wanted = frozenset[str]().union(*used)
        if known != wanted:
            problem = "not defined" if wanted - known else "unused in expressions"
            which = ", ".join(sorted(known ^ wanted))
            raise _invalid(f"ExpressionAttribute{kind}: {which}: {problem}", call)
    return Given(names, values)


def _filters(request: Request) -> Sequence[ConditionExpression]:
    """Return the filter of a query, if it has one."""
    text = request.get("FilterExpression")
    return () if text is None else (condition_of(str(text)),)


def _projected(request: Mapping[str, object]) -> Sequence[ProjectionExpression]:
    """Return the projection of a read, if it has one."""
    text = request.get("ProjectionExpression")
    return () if text is None else (projection_of(str(text)),)


def _shown(item: Item, request: Mapping[str, object]) -> Item:
    """Return what a read returns of an item."""
    names = cast("Mapping[str, str]", request.get("ExpressionAttributeNames", {}))
    for projection in _projected(request):
        return _parts(item, [Given(names).path(path) for path in projection.paths])
    return dict(item)


def _returned(write: _Write, request: Request) -> dict[str, object]:
    """Return the answer of a write that was made."""
    match request.get("ReturnValues", "NONE"):
        case "ALL_OLD":
            found = write.old
        case "ALL_NEW":
            found = write.new
        case "UPDATED_OLD":
            found = _parts(write.old or {}, write.changed)
        case "UPDATED_NEW":
            found = _parts(write.new or {}, write.changed)
        case _:
            found = None
    return {"Attributes": dict(found)} if found else {}


def _parts(item: Item, paths: Sequence[Path]) -> Item:
    """Return the values at these paths, in the maps that they are in."""
    found: Item = {}
    for path in paths:
        value = value_at(item, path)
        if value is None:
            continue
        inside = found
        for part in path[:-1]:
            inside = cast("dict[str, Value]", inside.setdefault(str(part), {"M": {}})["M"])
        inside[str(path[-1])] = value
    return found


def key_part(value: "Value") -> KeyPart:
    """Return a value that is part of a key."""
    if "S" in value:
        return value["S"]
    return number_of(value["N"]) if "N" in value else bytes(value["B"])


def item_size(item: "Mapping[str, Value]") -> int:
    """Return the size of an item in bytes, nearly as DynamoDB counts it."""
    return sum([len(name) + _value_size(value) for name, value in item.items()])


def _value_size(value: "Value") -> int:
    kind, found = next(iter(value.items()))
    if kind == "S":
        text = cast("str", found)
        return len(text) if text.isascii() else len(text.encode())
    if kind == "M":
        inside = cast("Item", found)
        return 3 + sum([1 + len(name) + _value_size(one) for name, one in inside.items()])
    if kind == "L":
        return 3 + sum([1 + _value_size(one) for one in cast("list[Value]", found)])
    if kind == "B":
        return len(cast("bytes", found))
    if kind == "N":
        return 1 + (len(cast("str", found)) + 1) // 2
    return 1 if kind in ("BOOL", "NULL") else sum(len(one) for one in cast("list[str]", found))


def _key_names(schema: "Sequence[object]") -> tuple[str, ...]:
    parts = cast("Sequence[Mapping[str, str]]", schema)
    kinds = {one["KeyType"]: one["AttributeName"] for one in parts}
    return tuple(kinds[kind] for kind in ("HASH", "RANGE") if kind in kinds)


def _second(names: Sequence[str]) -> str | None:
    return names[1] if len(names) > 1 else None
