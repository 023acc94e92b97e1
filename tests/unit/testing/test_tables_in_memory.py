"""The tables in memory: what they do when a test says so, and what an adapter makes of it."""

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from roundsman.agents.call_notes import Begun
from roundsman.aws.dynamodb import settled
from roundsman.aws.dynamodb.tasks import TRIES_OF_ROWS
from roundsman.errors import Throttled, TryAgain
from roundsman.model.instants import MINUTE, SECOND
from roundsman.model.task import Task
from roundsman.ports import Created, DueEntry, Exists, Saved, Superseded
from roundsman_testing.dynamodb.tables import LARGEST_PAGE, item_size
from roundsman_testing.memory import TABLES, MemoryCallNotes, MemoryStore, tables_in_memory
from tests.contract.samples import NOW, born, claimed, completed, order_row
from tests.contract.test_settled_rows import settling

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import KeysAndAttributesTypeDef, QueryInputTypeDef

    from roundsman_testing.dynamodb.expressions import Item

ID = "ord-1001"
KEY: "Item" = {"TaskId": {"S": "a"}}


@dataclass
class Desk:
    """The four tables, with a clock to set and the store over them."""

    now: int = NOW
    written: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tables = tables_in_memory(lambda: self.now)
        self.client = self.tables.client
        self.store = MemoryStore(tables=self.tables)
        self.tables.on_write.append(lambda table, old, new: self.written.append(table))

    # --- calls of the client ---

    def put(self, name: str = "a", table: str = TABLES.tasks, **item: str) -> None:
        """Store an item; what begins with a digit is a number."""
        found: Item = {n: {"N": v} if v[0].isdigit() else {"S": v} for n, v in item.items()}
        self.client.put_item(TableName=table, Item={"TaskId": {"S": name}, **found})

    def get(self, name: str = "a", table: str = TABLES.tasks, *, latest: bool = False) -> "Item":
        key: Item = {"TaskId": {"S": name}}
        found = self.client.get_item(TableName=table, Key=key, ConsistentRead=latest)
        return found.get("Item", {})

    def count(self) -> int:
        """Add one to a number of the item `a`, and return it."""
        found = self.client.update_item(
            TableName=TABLES.tasks,
            Key=KEY,
            UpdateExpression="ADD Trouble :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
            ReturnValues="ALL_NEW",
        )
        return int(found["Attributes"]["Trouble"]["N"])

    def due(self) -> list[str]:
        """The tasks that the index shows in a lane."""
        found = self.client.query(
            TableName=TABLES.tasks,
            IndexName="due",
            KeyConditionExpression="Lane = :lane",
            ExpressionAttributeValues={":lane": {"S": "open#0"}},
        )
        return [item["TaskId"]["S"] for item in found["Items"]]

    def fill_history(self, *sizes: int) -> None:
        """Store rows 1, 2, ... of the task `a`, each with a text of that length."""
        for number, size in enumerate(sizes, 1):
            self.put(table=TABLES.history, Seq=str(number), Text="x" * size)

    def history(self, backwards: bool = False, limit: int | None = None) -> list[list[int]]:
        """The numbers of these rows, page by page."""
        pages = list[list[int]]()
        query: QueryInputTypeDef = {
            "TableName": TABLES.history,
            "KeyConditionExpression": "TaskId = :id",
            "ExpressionAttributeValues": {":id": {"S": "a"}},
            "ScanIndexForward": not backwards,
        }
        if limit is not None:
            query["Limit"] = limit
        while True:
            page = self.client.query(**query)
            pages.append([int(item["Seq"]["N"]) for item in page["Items"]])
            if "LastEvaluatedKey" not in page:
                return pages
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]

    # --- calls of the store ---

    def create(self, name: str = ID) -> Created | Exists:
        return self.store.create(order_row(name), born(name))

    def loaded(self, *, latest: bool = True) -> Task:
        found = self.store.load(ID, NOW, latest=latest)
        assert found is not None
        return found

    def entries(self) -> list[DueEntry]:
        return list(self.store.due(born().lane, born().due_at))


def code_of(refused: pytest.ExceptionInfo[ClientError]) -> str:
    return refused.value.response["Error"]["Code"]


def reasons_of(refused: pytest.ExceptionInfo[ClientError]) -> list[str]:
    """Why each write of a transaction cancelled it; `None` if it did not."""
    return [reason["Code"] for reason in refused.value.response["CancellationReasons"]]


# --- index_lag -----------------------------------------------------------------------------------


def test_an_index_shows_a_write_only_after_its_lag() -> None:
    desk = Desk()
    desk.tables.index_lag = 200
    desk.put(Lane="open#0", DueAt="1")
    assert (desk.due(), desk.get() != {}) == ([], True)
    desk.now += 199
    assert desk.due() == []
    desk.now += 1
    assert desk.due() == ["a"]
    desk.put()
    assert desk.due() == ["a"], "it has left the lane, and the index does not show it yet"
    desk.now += 200
    assert desk.due() == []


def test_a_query_of_the_table_itself_has_no_lag() -> None:
    desk = Desk()
    desk.tables.index_lag = MINUTE
    desk.fill_history(1)
    assert desk.history() == [[1]]


def test_a_store_finds_a_task_at_once_and_its_entry_after_the_lag() -> None:
    desk = Desk()
    desk.tables.index_lag = SECOND
    desk.create()
    assert (desk.loaded(), desk.entries()) == (born(), [])
    desk.now += SECOND
    assert desk.entries() == [DueEntry(ID, born().due_at)]


# --- stale_reads ---------------------------------------------------------------------------------


def test_a_stale_read_finds_the_item_as_before_its_last_write() -> None:
    desk = Desk()
    desk.put(Note="old")
    desk.put(Note="new")
    desk.put("b")
    with desk.tables.stale_reads(TABLES.tasks):
        assert desk.get()["Note"] == {"S": "old"}
        assert desk.get("b") == {}, "it was just made"
        assert desk.get(latest=True)["Note"] == {"S": "new"}
        desk.client.delete_item(TableName=TABLES.tasks, Key=KEY)
        assert desk.get()["Note"] == {"S": "new"}
    assert desk.get() == {}


def test_reads_of_another_table_are_not_stale() -> None:
    desk = Desk()
    for note in ("old", "new"):
        item: Item = {"OrderID": {"S": "a"}, "Note": {"S": note}}
        desk.client.put_item(TableName=TABLES.orders, Item=item)
        desk.put(Note=note)
    key: Item = {"OrderID": {"S": "a"}}
    with desk.tables.stale_reads(TABLES.tasks):
        found = desk.client.batch_get_item(
            RequestItems={TABLES.orders: {"Keys": [key]}, TABLES.tasks: {"Keys": [KEY]}}
        )["Responses"]
    notes = {table: item["Note"]["S"] for table, [item] in found.items()}
    assert notes == {TABLES.orders: "new", TABLES.tasks: "old"}


def test_a_store_finds_what_it_must_find_although_its_reads_are_stale() -> None:
    desk = Desk()
    desk.create()
    desk.store.save(claimed(born()), seen=1)
    with desk.tables.stale_reads(TABLES.tasks):
        assert desk.loaded(latest=False) == born()
        assert desk.loaded() == claimed(born())
    with desk.tables.stale_reads(TABLES.orders):
        assert desk.store.order(ID) == order_row(), "the second read is consistent"


# --- lost_answer ---------------------------------------------------------------------------------


def test_a_conditional_put_whose_answer_is_lost_is_made_and_then_refused() -> None:
    desk = Desk()
    with desk.tables.lost_answer(), pytest.raises(ClientError) as refused:
        desk.client.put_item(
            TableName=TABLES.tasks,
            Item=KEY,
            ConditionExpression="attribute_not_exists(TaskId)",
        )
    assert code_of(refused) == "ConditionalCheckFailedException"
    assert desk.get() == KEY


def test_an_addition_whose_answer_is_lost_counts_twice_and_the_next_one_once() -> None:
    desk = Desk()
    with desk.tables.lost_answer():
        assert desk.count() == 2
        assert desk.count() == 3


def test_a_transaction_whose_answer_is_lost_is_made_once() -> None:
    desk = Desk()
    with desk.tables.lost_answer():
        desk.client.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": TABLES.tasks,
                        "Key": KEY,
                        "UpdateExpression": "ADD Trouble :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                }
            ]
        )
        assert desk.count() == 2, "and it was the transaction's answer that was lost"


def test_the_answer_that_is_lost_may_be_that_of_a_refused_write() -> None:
    desk = Desk()
    with desk.tables.lost_answer():
        with pytest.raises(ClientError):
            desk.client.delete_item(
                TableName=TABLES.tasks,
                Key=KEY,
                ConditionExpression="attribute_exists(TaskId)",
            )
        assert desk.count() == 1


def test_what_adapters_make_of_a_lost_answer() -> None:
    desk = Desk()
    with desk.tables.lost_answer():
        assert desk.create() == Created(), "a transaction has a token"
    with desk.tables.lost_answer():
        assert desk.store.save(claimed(born()), seen=1) == Superseded()
    assert desk.loaded() == claimed(born())
    with desk.tables.lost_answer():
        notes = MemoryCallNotes(tables=desk.tables)
        assert notes.begin(f"{ID}/charge_card/perform", 1) is Begun.AGAIN


# --- expire --------------------------------------------------------------------------------------


def test_what_expires_by_the_clock_is_deleted_from_table_and_indexes() -> None:
    desk = Desk(now=7_999)
    desk.put("a", ExpiresAt="8", Lane="open#0", DueAt="1")
    desk.put("b", ExpiresAt="9", Lane="open#0", DueAt="2")
    desk.put("c", ExpiresAt="never", Lane="open#0", DueAt="3")
    desk.put("d", Lane="open#0", DueAt="4")
    desk.tables.expire()
    assert desk.due() == ["a", "b", "c", "d"]
    desk.written.clear()
    desk.now = 8_000
    desk.tables.expire()
    assert (desk.due(), desk.get()) == (["b", "c", "d"], {})
    assert desk.written == [TABLES.tasks]
    with desk.tables.stale_reads(TABLES.tasks):
        assert desk.get() != {}, "it is deleted as by any write"


def test_a_task_is_deleted_once_its_retention_is_over() -> None:
    desk = Desk()
    desk.create()
    over = completed(born(), retain_for=MINUTE)
    assert desk.store.save(over, seen=1) == Saved()
    assert over.expires_at is not None
    desk.now = over.expires_at - SECOND
    desk.tables.expire()
    assert len(desk.store.tasks()) == 1
    desk.now = over.expires_at + SECOND
    desk.tables.expire()
    assert desk.store.tasks() == []
    assert desk.create() == Exists(order_row(), None), "the order stays"


# --- backup and restore --------------------------------------------------------------------------


def test_a_restore_brings_back_items_and_indexes_and_forgets_stale_images() -> None:
    desk = Desk()
    desk.put("a", Lane="open#0", DueAt="1")
    desk.put("b", Lane="open#0", DueAt="2")
    desk.fill_history(1, 1)
    backup = desk.tables.backup()
    desk.put("a", Note="new")
    desk.put("a", Note="newer")
    desk.fill_history(1, 1, 1)
    desk.put("c", Lane="open#0", DueAt="3")
    desk.client.delete_item(TableName=TABLES.tasks, Key={"TaskId": {"S": "b"}})
    desk.written.clear()
    newer = desk.tables.row(TABLES.tasks, "a")
    desk.tables.restore(backup)
    assert desk.due() == ["a", "b"]
    assert desk.history() == [[1, 2]]
    assert desk.tables.backup() == backup
    with desk.tables.stale_reads(TABLES.tasks):
        assert desk.get() == desk.get(latest=True)
        assert desk.get("c") == {}
    assert desk.written == []
    assert desk.tables.row(TABLES.tasks, "a") is not newer
    assert desk.tables.row(TABLES.tasks, "c") is None


def test_a_restored_index_has_no_lag_and_shows_nothing_of_what_was_under_way() -> None:
    desk = Desk()
    desk.put("a", Lane="open#0", DueAt="1")
    backup = desk.tables.backup()
    desk.tables.index_lag = SECOND
    desk.put("b", Lane="open#0", DueAt="2")
    desk.tables.restore(backup)
    assert desk.due() == ["a"]
    desk.now += SECOND
    assert desk.due() == ["a"]


def test_a_store_goes_on_from_the_restored_version() -> None:
    desk = Desk()
    desk.create()
    backup = desk.tables.backup()
    desk.store.save(claimed(born()), seen=1)
    desk.create("ord-1002")
    desk.tables.restore(backup)
    assert [task.task_id for task in desk.store.tasks()] == [ID]
    assert desk.loaded() == born()
    assert desk.store.save(claimed(born()), seen=1) == Saved()
    assert desk.create("ord-1002") == Created()


# --- pages of a query ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("backwards", "limit", "pages"),
    [
        (False, None, [[1, 2, 3, 4]]),
        (True, None, [[4, 3, 2, 1]]),
        (False, 3, [[1, 2, 3], [4]]),
        (True, 3, [[4, 3, 2], [1]]),
        (False, 2, [[1, 2], [3, 4], []]),  # as DynamoDB, which does not look for more
        (False, 5, [[1, 2, 3, 4]]),
    ],
)
def test_a_query_has_pages_of_its_limit(
    backwards: bool, limit: int | None, pages: list[list[int]]
) -> None:
    desk = Desk()
    desk.fill_history(1, 1, 1, 1)
    assert desk.history(backwards, limit) == pages


@pytest.mark.parametrize("backwards", [False, True])
def test_a_page_has_one_megabyte(backwards: bool) -> None:
    desk = Desk()
    size = LARGEST_PAGE // 4
    desk.fill_history(*[size] * 10)
    first, *others = desk.history(backwards)
    rows = sorted(desk.tables.items(TABLES.history), key=lambda row: int(row["Seq"]["N"]))
    assert sum(map(item_size, rows[: len(first) - 1])) <= LARGEST_PAGE
    assert sum(map(item_size, rows[: len(first) + 1])) > LARGEST_PAGE
    numbers = [number for page in (first, *others) for number in page]
    assert numbers == sorted(range(1, 11), reverse=backwards)


def test_items_of_an_index_with_one_range_key_are_each_on_one_page() -> None:
    desk = Desk()
    names = [f"ord-{number}" for number in range(5)]
    for name in names:
        desk.store.create(order_row(name), replace(born(name), lane="open#3", due_at=NOW))
    store = desk.store
    store._page = 2
    assert sorted(entry.task_id for entry in store.due("open#3", NOW)) == names


# --- what they do not know -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("condition", "unknown"),
    [
        ("contains(Note, :v)", "contains"),
        ("Note IN (:v)", "IN"),
        ("Trouble = :v Note", "Note"),
        ("Trouble = ", "the end"),
        ("Trouble ! :v", "!"),
    ],
)
def test_a_condition_that_they_do_not_know_is_refused_with_a_sentence(
    condition: str, unknown: str
) -> None:
    message = f"{unknown} is not known here: {condition}".rstrip()
    with pytest.raises(NotImplementedError, match="is not known here") as refused:
        Desk().client.put_item(
            TableName=TABLES.tasks,
            Item=KEY,
            ConditionExpression=condition,
            ExpressionAttributeValues={":v": {"N": "1"}},
        )
    assert str(refused.value).rstrip() == message


def test_an_update_that_they_do_not_know_is_refused_with_a_sentence() -> None:
    with pytest.raises(NotImplementedError, match=r"^DELETE is not known here: DELETE Marks :v$"):
        Desk().client.update_item(
            TableName=TABLES.tasks,
            Key=KEY,
            UpdateExpression="DELETE Marks :v",
            ExpressionAttributeValues={":v": {"NS": ["1"]}},
        )


def test_a_parameter_that_they_do_not_know_is_refused_and_not_left_out() -> None:
    desk = Desk()
    with pytest.raises(NotImplementedError, match=r"^Query: these tables .* AttributesToGet"):
        desk.client.query(
            TableName=TABLES.history,
            KeyConditionExpression="TaskId = :id",
            AttributesToGet=["Note"],
            ExpressionAttributeValues={":id": {"S": "a"}},
        )
    with pytest.raises(NotImplementedError, match=r"BatchGetItem: .* AttributesToGet"):
        desk.client.batch_get_item(
            RequestItems={TABLES.tasks: {"Keys": [KEY], "AttributesToGet": ["Note"]}}
        )
    with pytest.raises(NotImplementedError, match="do not know ConditionCheck"):
        desk.client.transact_write_items(
            TransactItems=[
                {
                    "ConditionCheck": {
                        "TableName": TABLES.tasks,
                        "Key": KEY,
                        "ConditionExpression": "attribute_not_exists(TaskId)",
                    }
                }
            ]
        )
    assert desk.written == []


def test_a_query_names_its_partition() -> None:
    with pytest.raises(ClientError, match="Query condition missed key schema element: TaskId"):
        Desk().client.query(
            TableName=TABLES.history,
            KeyConditionExpression="Seq = :seq",
            ExpressionAttributeValues={":seq": {"N": "1"}},
        )


# --- batch_reads ---------------------------------------------------------------------------------


def test_keys_that_a_batch_leaves_out_are_named_as_they_were_asked_for() -> None:
    desk = Desk()
    for name in ("a", "b", "c"):
        desk.put(name)
    desk.tables.batch_reads = 2
    keys: list[Item] = [{"TaskId": {"S": name}} for name in ("a", "none", "b", "c")]
    orders: list[Item] = [{"OrderID": {"S": "a"}}]
    found = desk.client.batch_get_item(
        RequestItems={
            TABLES.tasks: {"Keys": keys, "ConsistentRead": True},
            TABLES.orders: {"Keys": orders},
        }
    )
    assert found["Responses"] == {TABLES.tasks: [KEY], TABLES.orders: []}
    assert found["UnprocessedKeys"] == {
        TABLES.tasks: {"Keys": keys[2:], "ConsistentRead": True},
        TABLES.orders: {"Keys": orders},
    }


def with_rows(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> Task:
    """A stored task with one row of settled steps more than its store reads one by one."""
    for name in ("FEW_STEPS", "ROW_FROM", "ROW_UP_TO"):
        monkeypatch.setattr(settled, name, 0)
    desk.create()
    for number in range(TRIES_OF_ROWS + 1):
        task = desk.loaded()
        desk.store.save(settling(task, f"step{number}"), seen=task.version)
    return desk.loaded()


def test_a_store_reads_rows_again_that_were_left_out_and_gives_up_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    desk = Desk()
    task = with_rows(desk, monkeypatch)
    desk.tables.batch_reads = 2
    assert desk.loaded() == task
    desk.tables.batch_reads = 1
    with pytest.raises(TryAgain, match="left out 8 times"):
        desk.loaded()


# --- conflict ------------------------------------------------------------------------------------


def test_a_transaction_is_cancelled_for_a_conflict_and_a_condition_at_once() -> None:
    desk = Desk()
    desk.create()
    with desk.tables.conflict(TABLES.tasks), pytest.raises(ClientError) as refused:
        desk.client.transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": TABLES.orders,
                        "Item": {"OrderID": {"S": ID}},
                        "ConditionExpression": "attribute_not_exists(OrderID)",
                    }
                },
                {"Put": {"TableName": TABLES.tasks, "Item": KEY}},
                {"Delete": {"TableName": TABLES.orders, "Key": {"OrderID": {"S": "none"}}}},
            ]
        )
    assert code_of(refused) == "TransactionCanceledException"
    assert reasons_of(refused) == ["ConditionalCheckFailed", "TransactionConflict", "None"]
    assert desk.get() == {}


def test_a_write_by_itself_in_conflict_has_an_error_of_its_own() -> None:
    desk = Desk()
    with desk.tables.conflict(TABLES.tasks), pytest.raises(ClientError) as refused:
        desk.count()
    assert code_of(refused) == "TransactionConflictException"
    assert desk.count() == 1


def test_a_store_tries_again_after_a_conflict_unless_a_condition_has_failed_too() -> None:
    desk = Desk()
    with desk.tables.conflict(TABLES.tasks):
        with pytest.raises(TryAgain, match="TransactionConflict"):
            desk.create()
        assert desk.store.order(ID) is None, "all or nothing"
    assert desk.create() == Created()
    with desk.tables.conflict(TABLES.tasks):
        assert desk.create() == Exists(order_row(), born())
        with pytest.raises(TryAgain, match="TransactionConflict"):
            desk.store.save(claimed(born()), seen=1)
    assert desk.loaded() == born()


# --- capacity ------------------------------------------------------------------------------------


def test_writes_beyond_the_capacity_of_a_second_are_throttled() -> None:
    desk = Desk()
    desk.tables.capacity[TABLES.tasks, "write"] = 2
    assert (desk.count(), desk.count()) == (1, 2)
    with pytest.raises(ClientError) as refused:
        desk.count()
    assert code_of(refused) == "ProvisionedThroughputExceededException"
    desk.put(table=TABLES.history, Seq="1")
    assert desk.get()["Trouble"] == {"N": "2"}, "reads have a capacity of their own"
    desk.now += SECOND
    assert desk.count() == 3


def test_a_write_uses_units_by_its_size_and_an_update_by_the_size_before_it() -> None:
    desk = Desk()
    desk.tables.capacity[TABLES.tasks, "write"] = 6
    desk.put(Note="x" * 2_500)  # 3 units
    assert desk.count() == 1  # 3 more
    with pytest.raises(ClientError, match="ProvisionedThroughputExceeded"):
        desk.count()


@pytest.mark.parametrize(
    ("latest", "size", "reads"), [(True, 1, 4), (False, 1, 8), (True, 5_000, 2), (False, 5_000, 4)]
)
def test_a_read_uses_units_by_its_size_and_half_if_it_may_be_stale(
    latest: bool, size: int, reads: int
) -> None:
    desk = Desk()
    desk.put(Note="x" * size)
    desk.tables.capacity[TABLES.tasks, "read"] = 4
    for _ in range(reads):
        desk.get(latest=latest)
    with pytest.raises(ClientError, match="ProvisionedThroughputExceeded"):
        desk.get(latest=latest)


def test_a_transaction_uses_twice_the_units_and_names_the_write_that_was_throttled() -> None:
    desk = Desk()
    desk.tables.capacity[TABLES.tasks, "write"] = 2

    def put_both() -> None:
        desk.client.transact_write_items(
            TransactItems=[
                {"Put": {"TableName": TABLES.orders, "Item": {"OrderID": {"S": ID}}}},
                {"Put": {"TableName": TABLES.tasks, "Item": KEY}},
            ]
        )

    put_both()
    with pytest.raises(ClientError) as refused:
        put_both()
    assert reasons_of(refused) == ["None", "ProvisionedThroughputExceeded"]


def test_a_batch_leaves_out_what_the_capacity_is_too_small_for_and_is_throttled_without_any() -> (
    None
):
    desk = Desk()
    keys: list[Item] = [{"TaskId": {"S": name}} for name in ("a", "b", "c")]
    desk.tables.capacity[TABLES.tasks, "read"] = 1
    asked: dict[str, KeysAndAttributesTypeDef] = {TABLES.tasks: {"Keys": keys}}
    found = desk.client.batch_get_item(RequestItems=asked)
    assert found["UnprocessedKeys"] == {TABLES.tasks: {"Keys": keys[2:]}}
    with pytest.raises(ClientError, match="ProvisionedThroughputExceeded"):
        desk.client.batch_get_item(RequestItems=asked)


def test_a_query_uses_units_too() -> None:
    desk = Desk()
    desk.fill_history(5_000, 5_000)
    desk.tables.capacity[TABLES.history, "read"] = 1
    assert desk.history() == [[1, 2]]
    with pytest.raises(ClientError, match="ProvisionedThroughputExceeded"):
        desk.history()


def test_a_store_says_that_it_was_throttled_and_goes_on_in_the_next_second() -> None:
    desk = Desk()
    desk.create()
    desk.tables.capacity[TABLES.tasks, "write"] = 1
    desk.store.rearm(born(), born().due_at)
    with pytest.raises(Throttled, match=f"storing the task {ID}: ProvisionedThroughputExceeded"):
        desk.store.save(claimed(born()), seen=1)
    with pytest.raises(Throttled, match="ord-1002: ProvisionedThroughputExceeded"):
        desk.create("ord-1002")
    assert desk.loaded() == born()
    desk.now += SECOND
    assert desk.store.save(claimed(born()), seen=1) == Saved()
