"""The store of orders, tasks and history in their three tables.

Every write of a task is one conditional write; the condition expressions are below. Several writes
may happen on one version of a record. They do not harm each other:

- `save` replaces the whole record and raises the version, by one for each decision that it stores.
  It fails if another decision came first. It overwrites what the other kinds have written in the
  meantime. Its `DueAt` is no later than the one it read and the one it has decided, so the due
  entry stays early enough. An `Owed` that was cleared comes back and is sent once more.
- `clear_owed` does not change `DueAt` while the task stays in its open lane, so it cannot undo a
  `rearm`. Once it has moved the task to another lane, `rearm` and `postpone` fail. If there are
  two on one version, at worst each keeps as owed what the other has sent: it is sent twice, and
  never lost.
- `rearm` depends only on the record of that version. It fails after a newer decision; a newer
  decision after it overwrites it. If there are two, each stores an instant that is early enough.
- `postpone` may change the entry of a decision that it has not seen. For a record that nothing can
  handle there is no such decision. Otherwise the supervisor looks at that decision late, by at
  most the postponement, and the next decision takes the minimum again. It never makes an entry
  earlier.

Only `save` changes the version, which counts decisions.

If the retention is zero, the write that would move the task to the done lane (a `save`, or a
`clear_owed` after it) deletes the record instead, on the same condition and for fewer write units:
the index is written once, not twice. Later writes find no record, so all conditions above fail. The
order row remains, so a duplicate of the order creates nothing.

An order row has an expiry only while its task is over. If orders are not kept for ever, the write
that moves the task to the done lane, or deletes it, is one transaction with the write of the
expiry; so is the write of a decision that begins such a task again, with the removal of the expiry.
A crash leaves both or neither, and an open task never loses its order.

A long task has rows of settled steps beside its record (`roundsman.aws.dynamodb.settled`), one to
which steps were added has rows of their inputs (`roundsman.aws.dynamodb.input_rows`), and one of
which results were left out has rows of those (`roundsman.aws.dynamodb.result_rows`). What a write
of the record changes about them is in one transaction with it.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.codec import (
    SEARCH_ATTRIBUTES,
    Item,
    due_attributes,
    epoch_seconds,
    expiry,
    failure_attributes,
    failure_key,
    history_item,
    json_text,
    number,
    order_item,
    owed_list,
    parked_key,
    read_history,
    read_member,
    read_order,
    schema_of,
    search_attributes,
    task_item,
    text,
    turn_lane,
)
from roundsman.aws.dynamodb.input_rows import as_stored_open, inputs_in, row_keys, row_writes
from roundsman.aws.dynamodb.result_rows import (
    result_row_keys,
    result_writes,
    results_as_stored_open,
    with_results,
)
from roundsman.aws.dynamodb.settled import (
    Division,
    divide,
    lacks_rows,
    read_divided,
    row_ids,
    row_item,
    row_key,
)
from roundsman.aws.errors import ConditionFailed, aws_errors
from roundsman.engine.due import (
    Lane,
    lane_key,
    order_expiry,
    removed_at_once,
    with_order_expiry,
)
from roundsman.engine.history import ROWS_A_DECISION, fitting, keeps_reason
from roundsman.errors import TryAgain
from roundsman.model.events import HistoryRow
from roundsman.model.instants import SECOND
from roundsman.model.json import Json
from roundsman.model.task import ERASED, Task
from roundsman.ports import (
    NO_INPUTS,
    Created,
    DueEntry,
    Exists,
    Member,
    OrderRow,
    ParkedEntry,
    Saved,
    Superseded,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_dynamodb.type_defs import (
        DeleteTypeDef,
        KeysAndAttributesTypeDef,
        QueryInputTypeDef,
        TransactWriteItemTypeDef,
        UpdateTypeDef,
    )

DUE_INDEX = "due"
FAILURES_INDEX = "failures"
PARKED_INDEX = "parked"
PAGE = 250
"""Index entries per page: few, because a pass that runs out of time has paid for all of them."""

TRIES_OF_ROWS = 8
"""Reads of rows in a row, each of those that DynamoDB left out before."""

NO_SUCH_ORDER = "attribute_not_exists(OrderID)"
ORDER_EXISTS = "attribute_exists(OrderID)"
SAME_ORDER = "CreatedAt = :created"
NOT_ERASED = "attribute_not_exists(ErasedAt)"
NO_SUCH_TASK = "attribute_not_exists(TaskId)"
TASK_IS_OVER = "ExpiresAt <= :now"  # DynamoDB's TTL deletes it some time later
TASK_EXISTS = "attribute_exists(TaskId)"
ROW_EXISTS = "attribute_exists(TaskId)"  # of the history; a person may delete rows
VERSION_IS_AS_SEEN = "attribute_exists(TaskId) AND Version = :seen"
# The id of a removed task can be used again, and the new task may be at the version that was seen.
TASK_IS_AS_SEEN = f"{VERSION_IS_AS_SEEN} AND CreatedAt = :created"
SOMETHING_IS_OWED = "attribute_exists(Owed)"
STILL_IN_THAT_LANE = "Lane = :lane"
STILL_OPEN = "begins_with(Lane, :open)"
DUE_EARLIER = "DueAt < :at"
STANDS_IN_GROUP = "SET FailureGroup = :group, FailedAt = if_not_exists(FailedAt, :now)"


class DynamoStore:
    """TaskStore and OrderStore in DynamoDB. Instances share no state, so there may be many.

    `history_table` is None for a function that writes no history (submission). `page` is the number
    of index entries in one read. `order_retention` is the time in ms that an order is kept after
    its task has ended; None keeps orders for ever.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        orders_table: str,
        tasks_table: str,
        history_table: str | None,
        page: int = PAGE,
        order_retention: int | None = None,
    ) -> None:
        self._client = client
        self._retention = order_retention
        self._page = page
        self._orders = orders_table
        self._tasks = tasks_table
        self._history = history_table

    def create(self, order: OrderRow, task: Task) -> Created | Exists:
        """Store the order and the task in one transaction, or nothing if the order's id exists.

        boto3 gives each call a token (`ClientRequestToken`), so if the answer was lost and boto3
        repeats the call within ten minutes, the repeat succeeds like the first call. A later repeat
        returns Exists. A task past its retention whose order row is gone as well may be created
        again.
        """
        over: Item = {":now": number(task.created_at // SECOND)}
        writes: list[TransactWriteItemTypeDef] = [
            {
                "Put": {
                    "TableName": self._orders,
                    "Item": order_item(order),
                    "ConditionExpression": NO_SUCH_ORDER,
                }
            },
            {
                "Put": {
                    "TableName": self._tasks,
                    "Item": task_item(task),
                    "ConditionExpression": f"{NO_SUCH_TASK} OR {TASK_IS_OVER}",
                    "ExpressionAttributeValues": over,
                }
            },
        ]
        try:
            with aws_errors(f"storing the order {order.order_id}"):
                self._client.transact_write_items(TransactItems=writes)
        except ConditionFailed as refusal:
            return self._existing(order.order_id, task.created_at, refusal)
        return Created()

    def _existing(self, order_id: str, now: int, refusal: ConditionFailed) -> Exists:
        """The order and the task that prevented the write.

        Raises TryAgain for a task without an order row, because that is not a duplicate order.
        """
        order = self._order(order_id, consistent=True)
        if order is None:
            raise TryAgain(f"{order_id}: a task with that id exists, but no order row") from refusal
        return Exists(order, self.load(order_id, now))

    def load(self, task_id: str, now: int, *, latest: bool = True) -> Task | None:
        """The task; None if there is none, or if its retention is over.

        The read is strongly consistent if `latest`, else eventually consistent. Raises
        SchemaTooNew, and UnreadableRecord if the record is not a task, or lacks a row that it
        lists.
        """
        item = self._record(task_id, latest=latest)
        rows = self._rows(item, latest=latest)
        while item and lacks_rows(item, rows):
            # Another decision may have removed the row, or this read is not consistent.
            again = self._record(task_id, latest=True)
            rows = self._rows(again, latest=True)
            item, seen = again, item
            if latest and item.get("Version") == seen.get("Version"):
                break
            latest = True
        if not item:
            return None
        task = read_divided(item, rows)
        return None if task.expires_at is not None and task.expires_at <= now else task

    def _record(self, task_id: str, *, latest: bool) -> Item:
        """The item of a task; empty if there is none."""
        with aws_errors(f"reading the task {task_id}"):
            found = self._client.get_item(
                TableName=self._tasks, Key={"TaskId": text(task_id)}, ConsistentRead=latest
            )
        return found.get("Item", {})

    def _rows(self, item: Item, *, latest: bool) -> dict[str, Item]:
        """The rows of settled steps that an item lists, by hash key; those that are found."""
        keys = [{"TaskId": text(one)} for one in row_ids(item)]
        if not keys:
            return {}
        doing = f"reading the settled steps of the task {item['TaskId']['S']}"
        return self._items(keys, doing, latest=latest)

    def inputs(self, task: Task, names: Collection[str]) -> dict[str, Json]:
        """The inputs with which these steps were added to the task, by record name.

        The read is strongly consistent. Raises TryAgain if a row is missing, which a restored
        backup can bring back, and UnreadableRecord.
        """
        doing = f"reading the inputs of added steps of the task {task.task_id}"
        rows = self._items(row_keys(task, names), doing, latest=True)
        found = inputs_in(task, rows.values())
        if missing := sorted(set(names) - found.keys()):
            raise TryAgain(f"{task.task_id}: the input of {missing[0]} is missing")
        return found

    def with_results_left_out(self, task: Task) -> Task:
        """The task, with the whole results that were left out of its record and are kept.

        Nothing is read for a task without them. Raises UnreadableRecord.
        """
        keys = result_row_keys(task)
        if not keys:
            return task
        doing = f"reading the results that were left out of the task {task.task_id}"
        return with_results(task, self._items(keys, doing, latest=True).values())

    def _items(self, keys: "Sequence[Item]", doing: str, *, latest: bool) -> dict[str, Item]:
        """The items of the tasks table with these keys, by hash key; those that are found."""
        rows: dict[str, Item] = {}
        left = list(keys)
        for _ in range(TRIES_OF_ROWS):
            if not left:
                break
            wanted: KeysAndAttributesTypeDef = {"Keys": left, "ConsistentRead": latest}
            with aws_errors(doing):
                page = self._client.batch_get_item(RequestItems={self._tasks: wanted})
            rows |= {row["TaskId"]["S"]: row for row in page["Responses"].get(self._tasks, [])}
            left = list(page.get("UnprocessedKeys", {}).get(self._tasks, {"Keys": []})["Keys"])
        if left:
            raise TryAgain(f"{doing}: rows were left out {TRIES_OF_ROWS} times")
        return rows

    def save(
        self,
        task: Task,
        *,
        seen: int,
        history: Sequence[HistoryRow] = (),
        inputs: Mapping[str, Json] = NO_INPUTS,
        search: tuple[str, ...] | None = None,
    ) -> Saved | Superseded:
        """Store a decision and its history rows if the stored version is `seen`, or else nothing.

        `inputs` has the inputs of the steps that it adds, and `search` the new search keys of its
        order; None if they stay as they are. Nothing is stored either if the record is of another
        task with the same id.

        Superseded may also mean that this write succeeded: its answer was lost, boto3 repeated the
        write, and the repeat failed because of the new version. The caller then loads the record
        and finds its own lock tokens in it, or finds no record if it was deleted. (With history
        rows, the transaction's `ClientRequestToken` makes the repeat succeed.)
        """
        condition = {":seen": number(seen), ":created": number(task.created_at)}
        if _may_be_cleared(task):
            task = _as_cleared(task, orders_expire=self._retention is not None)
        before, task = task, with_order_expiry(task, self._retention)
        of_order = self._order_write(before, task, search)
        division, removed = divide(task), removed_at_once(task)
        of_rows = self._row_writes(task, division, removed=removed)
        of_rows += self._input_writes(task, inputs, removed=removed)
        of_rows += result_writes(self._tasks, task, removed=removed)
        beside = [*of_rows, *self._history_writes(task, history, ROWS_A_DECISION - len(of_rows))]
        doing = f"storing the task {task.task_id}"
        try:
            with aws_errors(doing):
                if beside or of_order:
                    self._save_together(task, division, condition, [*of_order, *beside])
                elif removed:
                    self._client.delete_item(
                        TableName=self._tasks,
                        Key={"TaskId": text(task.task_id)},
                        ConditionExpression=TASK_IS_AS_SEEN,
                        ExpressionAttributeValues=condition,
                    )
                else:
                    self._client.put_item(
                        TableName=self._tasks,
                        Item=division.record,
                        ConditionExpression=TASK_IS_AS_SEEN,
                        ExpressionAttributeValues=condition,
                    )
        except ConditionFailed:
            if not self._is_without_order(task.task_id, of_order):
                return Superseded()
            try:
                with aws_errors(doing):
                    self._save_together(task, division, condition, beside)
            except ConditionFailed:
                return Superseded()
        return Saved()

    def _row_writes(
        self, task: Task, division: Division, *, removed: bool
    ) -> "list[TransactWriteItemTypeDef]":
        """The writes of rows of settled steps that belong to a write of the task.

        They add and remove rows, and give those that stay the expiry of the task. `removed`: it
        removes the record.
        """
        kept, gone, added = division.kept, division.removed, division.added
        if removed:
            kept, gone, added = (), task.settled, None
        writes: list[TransactWriteItemTypeDef] = [
            {"Delete": {"TableName": self._tasks, "Key": row_key(task.task_id, row)}}
            for row in gone
        ]
        for row in kept:
            if _seconds(row.expires_at) == _seconds(task.expires_at):
                continue
            update: UpdateTypeDef = {
                "TableName": self._tasks,
                "Key": row_key(task.task_id, row),
                "UpdateExpression": "REMOVE ExpiresAt",
                "ConditionExpression": TASK_EXISTS,
            }
            if task.expires_at is not None:
                update["UpdateExpression"] = "SET ExpiresAt = :at"
                update["ExpressionAttributeValues"] = {":at": expiry(task.expires_at)}
            writes.append({"Update": update})
        if added is not None:
            writes.append({"Put": {"TableName": self._tasks, "Item": row_item(task, added)}})
        return writes

    def _input_writes(
        self, task: Task, inputs: Mapping[str, Json], *, removed: bool
    ) -> "list[TransactWriteItemTypeDef]":
        """The writes of rows of inputs that belong to a write of the task. `removed`: it removes
        the record."""
        if not task.added and not task.input_rows.count:
            return []
        return row_writes(self._tasks, task, inputs, removed=removed)

    def _order_write(
        self, before: Task, task: Task, search: tuple[str, ...] | None = None
    ) -> "list[TransactWriteItemTypeDef]":
        """The write of the order row that belongs to a write of the task; empty if there is none.

        It gives the row its expiry when the task is over, and takes it back when it is not: as
        `task` is a result of `with_order_expiry`, and `before` was given to it. It replaces the
        search keys of the order, unless they are None.
        """
        sets: Item = {}
        gone: list[str] = []
        if task.order_expires != before.order_expires:
            expires_at = order_expiry(task, self._retention or 0)
            if expires_at is None:
                gone.append("ExpiresAt")
            else:
                sets["ExpiresAt"] = expiry(expires_at)
        if search is not None:
            sets |= search_attributes(search)
            gone += [name for name in SEARCH_ATTRIBUTES if name not in sets]
        if not sets and not gone:
            return []
        update = f"SET {', '.join(f'{name} = :{name}' for name in sets)}" if sets else ""
        update += f" REMOVE {', '.join(gone)}" if gone else ""
        write: UpdateTypeDef = {
            "TableName": self._orders,
            "Key": {"OrderID": text(task.task_id)},
            "UpdateExpression": update.strip(),
            "ConditionExpression": ORDER_EXISTS,
        }
        if sets:
            write["ExpressionAttributeValues"] = {f":{name}": one for name, one in sets.items()}
        return [{"Update": write}]

    def _is_without_order(
        self, task_id: str, of_order: "Sequence[TransactWriteItemTypeDef]"
    ) -> bool:
        """Whether a transaction failed because the order row is missing, as after a restore.

        The task is then stored without it: it must be able to end.
        """
        return bool(of_order) and self._order(task_id, consistent=True) is None

    def add_history(self, task_id: str, row: HistoryRow) -> None:
        """Store a history row that belongs to no decision. Storing it again is harmless."""
        if self._history is None:
            raise ValueError("this store has no history table")
        with aws_errors(f"adding to the history of the task {task_id}"):
            self._client.put_item(TableName=self._history, Item=history_item(task_id, row))

    def erase_order(self, order_id: str, *, created_at: int, erased_at: int) -> None:
        """Replace the content of the order that was stored at `created_at` by null.

        It is not found by its fields any more. Does nothing if there is no such order, or if it was
        erased before.
        """
        try:
            with aws_errors(f"erasing the order {order_id}"):
                self._client.update_item(
                    TableName=self._orders,
                    Key={"OrderID": text(order_id)},
                    UpdateExpression="SET #content = :null, ErasedAt = :at"
                    f" REMOVE {', '.join(SEARCH_ATTRIBUTES)}",
                    ConditionExpression=f"{SAME_ORDER} AND {NOT_ERASED}",
                    ExpressionAttributeNames={"#content": "Content"},
                    ExpressionAttributeValues={
                        ":null": json_text(None),
                        ":at": number(erased_at),
                        ":created": number(created_at),
                    },
                )
        except ConditionFailed:
            return

    def erase_history(self, task_id: str) -> None:
        """Replace the reasons of the task's history, except those of `erase` commands, and remove
        the data of signals.

        Each row is one write. A call that fails half-way is continued by the next one.
        """
        erased = text(ERASED)
        for item in self._history_items(task_id):
            if keeps_reason(item.get("Kind", {}).get("S", "")) or item.get("Reason") == erased:
                continue
            changes = {"Reason": erased}
            if "Signal" in item:
                signal = item["Signal"]["M"]
                changes["Signal"] = {"M": {name: signal[name] for name in signal.keys() - {"Data"}}}
            try:
                with aws_errors(f"erasing the history of the task {task_id}"):
                    self._client.update_item(
                        TableName=self._history or "",
                        Key={"TaskId": item["TaskId"], "Seq": item["Seq"]},
                        UpdateExpression=f"SET {', '.join(f'#{n} = :{n}' for n in changes)}",
                        ConditionExpression=ROW_EXISTS,
                        ExpressionAttributeNames={f"#{name}": name for name in changes},
                        ExpressionAttributeValues={f":{n}": one for n, one in changes.items()},
                    )
            except ConditionFailed:
                continue

    def _save_together(
        self,
        task: Task,
        division: Division,
        condition: Item,
        beside: "Sequence[TransactWriteItemTypeDef]",
    ) -> None:
        write: TransactWriteItemTypeDef
        if removed_at_once(task):
            write = {
                "Delete": {
                    "TableName": self._tasks,
                    "Key": {"TaskId": text(task.task_id)},
                    "ConditionExpression": TASK_IS_AS_SEEN,
                    "ExpressionAttributeValues": condition,
                }
            }
        else:
            write = {
                "Put": {
                    "TableName": self._tasks,
                    "Item": division.record,
                    "ConditionExpression": TASK_IS_AS_SEEN,
                    "ExpressionAttributeValues": condition,
                }
            }
        self._client.transact_write_items(TransactItems=[write, *beside])

    def _history_writes(
        self, task: Task, history: Sequence[HistoryRow], most: int
    ) -> "list[TransactWriteItemTypeDef]":
        if history and not self._history:
            raise ValueError("this store has no history table")
        return [
            {"Put": {"TableName": self._history or "", "Item": history_item(task.task_id, row)}}
            for row in fitting(history, most)
        ]

    def clear_owed(self, task: Task) -> Saved | Superseded:
        """Store that what this version owed was sent; the version does not change.

        `task` contains only what is still owed. A record that is then `removed_at_once` is deleted.
        The failure group of a failed task is stored as well. As with `save`, Superseded may also
        mean that this write succeeded and its answer was lost.
        """
        # While something is owed, the order has no expiry: a `save` has taken it back.
        task = replace(task, order_expires=False)
        before, task = task, with_order_expiry(task, self._retention)
        of_order = self._order_write(before, task)
        rows: list[TransactWriteItemTypeDef] = []
        if not _is_open(task.lane):
            removed = removed_at_once(task)
            rows += self._row_writes(task, Division({}, task.settled), removed=removed)
            rows += self._input_writes(as_stored_open(task), {}, removed=removed)
            rows += result_writes(self._tasks, results_as_stored_open(task), removed=removed)
        if removed_at_once(task):
            return self._remove(task, of_order, rows)
        changes = failure_attributes(task) | ({} if _is_open(task.lane) else due_attributes(task))
        names = dict[str, str]()
        if task.order_expires:
            changes["OrderExpires"] = {"BOOL": True}
            # The format of OrderExpires is no lower than that of a packed or divided record.
            changes["#Schema"] = number(schema_of(task))
            names["#Schema"] = "Schema"  # a word that DynamoDB reserves
        gone = [] if task.failure else ["FailureGroup", "FailedAt"]
        if task.owed:
            changes["Owed"] = owed_list(task.owed)
        else:
            gone.append("Owed")
        values: Item = {f":{name.strip('#')}": value for name, value in changes.items()}
        sets = ", ".join(f"{name} = :{name.strip('#')}" for name in changes)
        update = f"SET {sets}" if sets else ""
        update += f" REMOVE {', '.join(gone)}" if gone else ""
        return self._update(
            task.task_id,
            update.strip(),
            f"{TASK_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",
            {**values, **_as_seen(task)},
            of_order,
            rows,
            names,
        )

    def _remove(
        self,
        task: Task,
        of_order: "Sequence[TransactWriteItemTypeDef]",
        rows: "Sequence[TransactWriteItemTypeDef]",
    ) -> Saved | Superseded:
        delete: DeleteTypeDef = {
            "TableName": self._tasks,
            "Key": {"TaskId": text(task.task_id)},
            "ConditionExpression": f"{TASK_IS_AS_SEEN} AND {SOMETHING_IS_OWED}",
            "ExpressionAttributeValues": _as_seen(task),
        }
        try:
            with aws_errors(f"removing the task {task.task_id}"):
                if of_order or rows:
                    self._client.transact_write_items(
                        TransactItems=[{"Delete": delete}, *of_order, *rows]
                    )
                else:
                    self._client.delete_item(**delete)
        except ConditionFailed:
            if self._is_without_order(task.task_id, of_order):
                return self._remove(task, [], rows)
            return Superseded()
        return Saved()

    def rearm(self, task: Task, due_at: int) -> Saved | Superseded:
        """Move the due entry of an open task to `due_at` (epoch ms) if its version is the same."""
        own = failure_attributes(task)
        changes = "".join(f", {name} = :{name}" for name in own)
        gone = "" if own else " REMOVE FailureGroup, FailedAt"  # set by `trouble`
        return self._update(
            task.task_id,
            f"SET DueAt = :at{changes}{gone}",
            f"{TASK_IS_AS_SEEN} AND {STILL_IN_THAT_LANE}",
            {
                **{f":{name}": value for name, value in own.items()},
                ":at": number(due_at),
                **_as_seen(task),
                ":lane": text(lane_key(Lane.OPEN, task.shard)),
            },
        )

    def postpone(self, task_id: str, due_at: int) -> None:
        """Move the due entry of a record that cannot be handled to a later instant (epoch ms).

        Does nothing if the record is gone, has left its open lane, or is already due later.
        """
        self._update(
            task_id,
            "SET DueAt = :at",
            f"{STILL_OPEN} AND {DUE_EARLIER}",
            {":at": number(due_at), ":open": text(f"{Lane.OPEN}#")},
        )

    def trouble(self, task_id: str, member_of: tuple[str, int], now: int) -> int:
        """Count that this record could not be handled once more. Returns the count so far.

        It also puts the record into the failure group `member_of` (group and shard). The next
        decision that is stored resets the count. Returns 1 if the record is gone.
        """
        key, one = text(failure_key(*member_of)), number(1)
        try:
            with aws_errors(f"counting the failures to handle the task {task_id}"):
                found = self._client.update_item(
                    TableName=self._tasks,
                    Key={"TaskId": text(task_id)},
                    UpdateExpression=f"ADD Trouble :one {STANDS_IN_GROUP}",
                    ConditionExpression=TASK_EXISTS,
                    ExpressionAttributeValues={":one": one, ":group": key, ":now": number(now)},
                    ReturnValues="UPDATED_NEW",
                )
        except ConditionFailed:
            return 1
        return int(found["Attributes"]["Trouble"]["N"])

    def _update(
        self,
        task_id: str,
        update: str,
        condition: str,
        values: "Mapping[str, Value]",
        of_order: "Sequence[TransactWriteItemTypeDef]" = (),
        rows: "Sequence[TransactWriteItemTypeDef]" = (),
        names: Mapping[str, str] | None = None,
    ) -> Saved | Superseded:
        write: UpdateTypeDef = {
            "TableName": self._tasks,
            "Key": {"TaskId": text(task_id)},
            "UpdateExpression": update,
            "ConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }
        if names:
            write["ExpressionAttributeNames"] = names
        try:
            with aws_errors(f"updating the task {task_id}"):
                if of_order or rows:
                    self._client.transact_write_items(
                        TransactItems=[{"Update": write}, *of_order, *rows]
                    )
                else:
                    self._client.update_item(**write)
        except ConditionFailed:
            if self._is_without_order(task_id, of_order):
                return self._update(task_id, update, condition, values, rows=rows, names=names)
            return Superseded()
        return Saved()

    def due(self, lane: str, until: int) -> Iterator[DueEntry]:
        """The entries of one lane shard due at or before `until` (epoch ms), earliest first.

        Each page is read when the iterator reaches it, and may raise TryAgain.
        """
        query: QueryInputTypeDef = {
            "TableName": self._tasks,
            "IndexName": DUE_INDEX,
            "KeyConditionExpression": "Lane = :lane AND DueAt <= :until",
            "ExpressionAttributeValues": {":lane": text(lane), ":until": number(until)},
            "ScanIndexForward": True,
            "Limit": self._page,
        }
        for item in self._pages(query, f"reading what is due in {lane}"):
            yield DueEntry(item["TaskId"]["S"], int(float(item["DueAt"]["N"])))

    def parked(
        self, target: str, priority: str, shard: int, *, after: int
    ) -> Iterator[ParkedEntry]:
        """The tasks of one shard that wait for the hold of `target`, the longest waiting first.

        Only those that have waited since a later instant than `after` (epoch ms). Each page is read
        when the iterator reaches it, and may raise TryAgain.
        """
        key = parked_key(target, priority, shard)
        query: QueryInputTypeDef = {
            "TableName": self._tasks,
            "IndexName": PARKED_INDEX,
            "KeyConditionExpression": "ParkedFor = :key AND ParkedSince > :after",
            "ExpressionAttributeValues": {":key": text(key), ":after": number(after)},
            "ScanIndexForward": True,
            "Limit": self._page,
        }
        for item in self._pages(query, f"reading what is parked as {key}"):
            yield ParkedEntry(item["TaskId"]["S"], int(item["ParkedSince"]["N"]), shard)

    def waiting(self, limit: str, most: int) -> list[ParkedEntry]:
        """The first `most` tasks that wait for their turn under this key, longest waiting first."""
        query: QueryInputTypeDef = {
            "TableName": self._tasks,
            "IndexName": PARKED_INDEX,
            "KeyConditionExpression": "ParkedFor = :key",
            "ExpressionAttributeValues": {":key": text(turn_lane(limit))},
            "ScanIndexForward": True,
            "Limit": min(most, self._page),
        }
        found = islice(self._pages(query, "reading which orders wait for their turn"), most)
        return [ParkedEntry(one["TaskId"]["S"], int(one["ParkedSince"]["N"]), 0) for one in found]

    def members(
        self, group: str, shard: int, *, since: int = 0, newest_first: bool = False
    ) -> Iterator[Member]:
        """The tasks of one shard in this failure group, sorted by the time when they failed.

        Only tasks that failed at `since` (epoch ms) or later. Each page is read when the iterator
        reaches it, and may raise TryAgain.
        """
        key = failure_key(group, shard)
        values: Item = {":group": text(key), ":since": number(since)}
        query: QueryInputTypeDef = {
            "TableName": self._tasks,
            "IndexName": FAILURES_INDEX,
            "KeyConditionExpression": "FailureGroup = :group AND FailedAt >= :since",
            "ExpressionAttributeValues": values,
            "ScanIndexForward": not newest_first,
            "Limit": self._page,
        }
        for item in self._pages(query, f"reading the failures of {key}"):
            yield read_member(item)

    def _pages(self, query: "QueryInputTypeDef", doing: str) -> "Iterator[Item]":
        """The items of a query; each page is read when the iterator reaches it."""
        while True:
            with aws_errors(doing):
                page = self._client.query(**query)
            yield from page["Items"]
            last = page.get("LastEvaluatedKey")
            if not last:
                return
            query["ExclusiveStartKey"] = last

    def order(self, order_id: str) -> OrderRow | None:
        """The order; None if there is none. Raises UnreadableRecord.

        Order rows hardly ever change, so the cheaper, eventually consistent read nearly always
        finds them. If it finds nothing, a strongly consistent read decides.
        """
        return self._order(order_id, consistent=False) or self._order(order_id, consistent=True)

    def has_order(self, order_id: str) -> bool:
        """Whether the order is stored, read consistently. Nothing of its content is read."""
        with aws_errors(f"looking for the order {order_id}"):
            found = self._client.get_item(
                TableName=self._orders,
                Key={"OrderID": text(order_id)},
                ProjectionExpression="OrderID",
                ConsistentRead=True,
            )
        return "Item" in found

    def _order(self, order_id: str, *, consistent: bool) -> OrderRow | None:
        with aws_errors(f"reading the order {order_id}"):
            found = self._client.get_item(
                TableName=self._orders, Key={"OrderID": text(order_id)}, ConsistentRead=consistent
            )
        return read_order(found["Item"]) if "Item" in found else None

    def history(self, task_id: str) -> list[HistoryRow]:
        """All rows of a task's history, the oldest first. Raises UnreadableRecord."""
        return [read_history(item) for item in self._history_items(task_id)]

    def _history_items(self, task_id: str) -> "Iterator[Item]":
        if self._history is None:
            raise ValueError("this store has no history table")
        query: QueryInputTypeDef = {
            "TableName": self._history,
            "KeyConditionExpression": "TaskId = :id",
            "ExpressionAttributeValues": {":id": text(task_id)},
            "ConsistentRead": True,
        }
        return self._pages(query, f"reading the history of the task {task_id}")


def _may_be_cleared(task: Task) -> bool:
    """Whether what an ended task owes may have been cleared since its record was read.

    That keeps the version, and gives the rows beside the record an expiry that it has itself.
    """
    return task.ended and any(owed.seq < task.version for owed in task.owed)


def _as_cleared(task: Task, *, orders_expire: bool) -> Task:
    """The task as if its rows, and its order row, had an expiry, so that a write takes it away."""
    rows = tuple(replace(row, expires_at=0) for row in task.settled)
    inputs, results = (
        replace(rows, expires_at=0) if rows.count else rows
        for rows in (task.input_rows, task.result_rows)
    )
    return replace(
        task,
        settled=rows,
        input_rows=inputs,
        result_rows=results,
        order_expires=task.order_expires or orders_expire,
    )


def _as_seen(task: Task) -> Item:
    """The values of TASK_IS_AS_SEEN for a write that keeps the task's version."""
    return {":seen": number(task.version), ":created": number(task.created_at)}


def _is_open(lane: str) -> bool:
    return lane.startswith(f"{Lane.OPEN}#")


def _seconds(instant: int | None) -> int | None:
    """The instant as `ExpiresAt` has it."""
    return None if instant is None else epoch_seconds(instant)
