"""A task to which a thousand steps are added, from its first write to its last.

Its record stays small, its rows few, and each write fits in one transaction.
"""

import random
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, cast

import pytest

from roundsman.aws.dynamodb.codec import INPUTS_IN_A_ROW, Item
from roundsman.aws.dynamodb.settled import MERGED_UP_TO, MOST_ROWS, divide, row_ids
from roundsman.definition.workflow import MOST_ADDED
from roundsman.engine.due import with_due_entry, without_owed
from roundsman.engine.history import ROWS_A_DECISION
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman.model.record_limits import MOST_ADDED_UNDOS, RECORD_LIMIT, RESULTS_LIMIT
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import AddedStep, Owed, RowsBeside, StepRecord, Task
from roundsman.ports import Created, Saved, Superseded
from tests.contract.samples import NOW, born, order_row
from tests.contract.worlds import World
from tests.support.item_size import item_size
from tests.support.steps import changed_step, step_record

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TransactWriteItemTypeDef


TASK_ID = "ord-1001"
MOST_WRITES = 100
"""The maximum number of writes of a transaction of DynamoDB."""
LARGEST_TRANSACTION = 4 * 1024 * 1024
LARGEST_ROW = MERGED_UP_TO + 32 * 1024
"""Rows that are merged, and what one write adds here, in bytes."""
STARTED = step_record(process_state=ProcessState.PROCESSING, locked_by="7f3a.1", started_at=NOW)

pytestmark = pytest.mark.exhaustive


def batches(names: Sequence[str], size: int) -> list[Sequence[str]]:
    return [names[place : place + size] for place in range(0, len(names), size)]


@dataclass
class Transactions:
    """A client of DynamoDB that notes how large the transactions are, and what they put."""

    client: "DynamoDBClient"
    keys: set[str] = field(default_factory=set)
    """The hash keys of items of the tasks table."""
    most_writes: int = 0
    most_bytes: int = 0

    def __getattr__(self, name: str) -> object:
        return getattr(self.client, name)

    # The name is boto3's.
    def transact_write_items(self, TransactItems: "list[TransactWriteItemTypeDef]") -> object:
        items = [cast("Item", one["Put"]["Item"]) for one in TransactItems if "Put" in one]
        sizes = [item_size(item) for item in items]
        self.keys |= {item["TaskId"]["S"] for item in items if "Schema" in item}
        self.most_writes = max(self.most_writes, len(TransactItems))
        self.most_bytes = max(self.most_bytes, sum(sizes))
        return self.client.transact_write_items(TransactItems=TransactItems)


@dataclass
class Life:
    """A task, and the table that it is stored in. Its text cannot be compressed."""

    world: World
    task: Task = field(default_factory=born)
    dice: random.Random = field(
        default_factory=lambda: random.Random(5)  # noqa: S311 - the same at every run
    )
    checked: int = 0

    def __post_init__(self) -> None:
        self.sent, self.in_hand = Transactions(self.world.client), self.task
        client: DynamoDBClient = self.sent  # type: ignore[assignment]  # it has what the store calls
        self.store = self.world.another_store(client, MINUTE)
        assert self.store.create(order_row(), self.task) == Created()

    def text(self, size: int) -> str:
        return "".join(self.dice.choices(string.ascii_letters + string.digits, k=size))

    def save(self, changed: Task, history: int = 1) -> None:
        """Store the next version, with so many rows of history; it is read at each 50th."""
        task = with_due_entry(replace(changed, version=self.task.version + 1), NOW)
        inputs = {name: {"leg": name} for name in task.added if name not in self.task.added}
        seqs = range(task.version * 1000, task.version * 1000 + history)
        rows = [HistoryRow(seq, NOW, "failed", None, 1, "why") for seq in seqs]
        seen = self.task.version
        assert self.store.save(task, seen=seen, history=rows, inputs=inputs) == Saved()
        self.in_hand, division = task, divide(task)
        kept = (*division.kept, *([division.added] if division.added else []))
        blank = task.erased_at is not None
        count = 0 if blank else -(-len(task.added) // INPUTS_IN_A_ROW)
        kept = tuple(replace(row, expires_at=task.expires_at) for row in kept)
        self.task = replace(task, settled=kept, input_rows=RowsBeside(count, task.expires_at))
        if task.version - self.checked >= 50:
            self.check()

    def stored(self) -> dict[str, Item]:
        """The items of the task: the table in memory cannot be scanned."""
        found = dict[str, Item]()
        for key in self.sent.keys | {TASK_ID}:
            wanted: Item = {"TaskId": {"S": key}}
            got = self.world.client.get_item(
                TableName=self.world.tables.tasks, Key=wanted, ConsistentRead=True
            )
            if "Item" in got:
                found[key] = got["Item"]
        self.sent.keys = set(found)
        return found

    def check(self) -> None:
        """The task is read as it was stored, from these items and no others."""
        self.checked = self.task.version
        found = self.store.load(TASK_ID, 0)
        assert found is not None
        at = self.task.expires_at
        seconds = None if at is None else -(-at // 1000) * 1000
        assert replace(found, expires_at=at, order_expires=self.task.order_expires) == self.task
        assert [*found.added] == [*self.task.added]
        assert [(row.version, row.steps) for row in found.settled] == [
            (row.version, row.steps) for row in self.task.settled
        ]
        self.task = replace(found, expires_at=at)
        items = self.stored()
        record = items.pop(TASK_ID)
        inputs = [f"{TASK_ID}#added#{n}" for n in range(found.input_rows.count)]
        assert set(items) == {*row_ids(record), *inputs}
        assert all(row.get("ExpiresAt") == record.get("ExpiresAt") for row in items.values())
        assert found.expires_at == seconds
        assert len(row_ids(record)) <= MOST_ROWS + 1
        assert max((item_size(items[key]) for key in row_ids(record)), default=0) < LARGEST_ROW
        assert item_size(record) < 64 * 1024
        assert self.sent.most_writes <= MOST_WRITES
        assert self.sent.most_bytes < LARGEST_TRANSACTION

    def add(self, at_a_time: int, settled_at_a_time: int) -> None:
        """Add a thousand steps, so many at a time, and settle so many of them in one write."""
        more = [f"leg[x{place}{self.text(20)}]" for place in range(MOST_ADDED)]
        adder = "find_legs"
        for names in batches(more, at_a_time):
            added = {
                name: AddedStep(adder, tuple(names[:2]) if place > 2 else (), self.text(20), place)
                for place, name in enumerate(names, len(self.task.added))
            }
            steps = {**self.task.steps, **dict.fromkeys(names, STARTED)}
            self.save(replace(self.task, added={**self.task.added, **added}, steps=steps))
            for some in batches(self.dice.sample(names, len(names)), settled_at_a_time):
                self.save(self.with_steps(dict.fromkeys(some, ProcessState.PROCESSED)))
            adder = names[-1]
        self.check()

    def with_steps(self, states: dict[str, ProcessState]) -> Task:
        steps = dict(self.task.steps)
        for name, state in states.items():
            steps[name] = (
                self.settled()
                if state is ProcessState.PROCESSED
                else changed_step(steps[name], process_state=state)
            )
        return replace(self.task, steps=steps)

    def settled(self) -> StepRecord:
        """A step with as large a result as each of a thousand steps can have."""
        return step_record(
            process_state=ProcessState.PROCESSED,
            started_at=NOW + self.dice.randrange(10**6),
            finished_at=NOW + self.dice.randrange(10**7),
            result=self.text(RESULTS_LIMIT // MOST_ADDED - 2),
        )

    def end(self, state: TaskState, *owed: str, retain_for: int = MINUTE) -> None:
        """End the task, with more rows of history than fit; then clear what it owes."""
        seq = self.task.version + 1
        self.save(
            replace(
                self.task,
                state=state,
                ended_at=NOW,
                retain_for=retain_for,
                owed=tuple(Owed("status", name, seq, NOW, "") for name in owed),
            ),
            history=ROWS_A_DECISION,
        )

    def clear(self) -> None:
        """Clear what is owed as its sender does: with the task that has decided it in hand.

        If that write has removed rows, the task is loaded first.
        """
        cleared = without_owed(self.in_hand, NOW)
        if self.store.clear_owed(cleared) == Superseded():
            self.check()
            cleared = without_owed(self.task, NOW)
            assert self.store.clear_owed(cleared) == Saved()
        found = self.store.load(TASK_ID, 0)
        assert found is None or found.owed == ()
        self.task = found or cleared

    def undo(self) -> None:
        """Undo all steps, the last one first, as many at a time as may be."""
        for names in batches([*self.task.added][::-1], MOST_ADDED_UNDOS):
            self.save(self.with_steps(dict.fromkeys(names, ProcessState.UNDOING)))
            for some in batches(names, 10):
                self.save(self.with_steps(dict.fromkeys(some, ProcessState.UNDONE)))
        self.check()


@pytest.fixture
def life(world: World) -> Iterator[Life]:
    made = Life(world)
    yield made
    assert made.sent.most_writes <= MOST_WRITES


@pytest.mark.parametrize(("at_a_time", "settled_at_a_time"), [(1, 1), (10, 2), (80, 8)])
@pytest.mark.verify
def test_a_thousand_steps_are_added_end_are_undone_and_begin_again(
    life: Life, at_a_time: int, settled_at_a_time: int
) -> None:
    life.add(at_a_time, settled_at_a_time)
    assert len(life.task.settled) > MOST_ROWS // 4
    assert life.sent.most_writes < MOST_WRITES // 2, "while steps are added"
    life.end(TaskState.COMPLETED)
    life.check()
    assert life.sent.most_writes == MOST_WRITES, "all rows, and as much of the history as fits"
    opened = replace(life.task, state=TaskState.UNDOING, ended_at=None, expires_at=None)
    life.save(opened, history=ROWS_A_DECISION)
    life.check()
    life.undo()
    life.end(TaskState.UNDONE, "undone")
    life.check()
    life.clear()
    assert life.task.expires_at is not None
    life.check()
    again = replace(life.task, state=TaskState.ACTIVE, ended_at=None, expires_at=None)
    life.save(replace(again, steps={}, added={}), history=ROWS_A_DECISION)
    life.check()
    assert set(life.stored()) == {TASK_ID}


def test_of_an_erased_task_with_a_thousand_steps_nothing_is_left_that_it_was_given(
    life: Life,
) -> None:
    life.add(80, 40)
    life.end(TaskState.COMPLETED)
    results = [str(one.result) for one in life.task.steps.values()]
    digests = [one.digest for one in life.task.added.values()]
    bare = {name: replace(one, result=None) for name, one in life.task.steps.items()}
    blank = {name: replace(one, digest="") for name, one in life.task.added.items()}
    life.save(replace(life.task, steps=bare, added=blank, erased_at=NOW, erased_by="ann: 17"))
    items = life.stored()
    assert max(map(item_size, items.values())) < RECORD_LIMIT // 4
    assert all("#settled#" in key for key in items if key != TASK_ID)
    found = life.store.load(TASK_ID, 0)
    assert found is not None
    assert len(found.added) == len(found.steps) == MOST_ADDED
    whole = repr((found, found.settled, items))
    assert not [one for one in (*results, *digests) if one in whole]
    life.check()


@pytest.mark.parametrize("owed", [(), ("completed",)])
@pytest.mark.verify
def test_a_task_with_a_thousand_steps_is_removed_at_once_with_all_its_rows(
    life: Life, owed: tuple[str, ...]
) -> None:
    life.add(80, 4)
    if owed:
        life.end(TaskState.COMPLETED, *owed, retain_for=0)
        life.clear()
    else:
        task = replace(life.task, state=TaskState.COMPLETED, ended_at=NOW, retain_for=0)
        task = with_due_entry(replace(task, version=task.version + 1), NOW)
        assert life.store.save(task, seen=life.task.version) == Saved()
    assert life.stored() == {}
    assert life.store.load(TASK_ID, NOW) is None
