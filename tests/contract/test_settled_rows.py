"""Rows of settled steps in the store: always with their record, and never without it."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb import settled
from roundsman.aws.dynamodb.settled import MOST_ROWS, is_row
from roundsman.engine.due import with_due_entry, without_owed
from roundsman.engine.history import ROWS_A_DECISION
from roundsman.errors import UnreadableRecord
from roundsman.model.events import HistoryRow
from roundsman.model.instants import MINUTE
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import Owed, Task
from roundsman.ports import Created, DueEntry, Saved, Superseded
from roundsman_console.aws.task_records import Records
from tests.contract.samples import NOW, born, order_row
from tests.contract.worlds import World
from tests.support.steps import step_record

if TYPE_CHECKING:
    from roundsman.aws.dynamodb.codec import Item


@pytest.fixture(autouse=True)
def small_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each settled step gets a row at once."""
    for name in ("FEW_STEPS", "ROW_FROM", "ROW_UP_TO"):
        monkeypatch.setattr(settled, name, 0)


def settling(task: Task, name: str, state: ProcessState = ProcessState.PROCESSED) -> Task:
    """The next version: this step is in that state."""
    step = step_record(process_state=state, started_at=NOW, finished_at=NOW, result={"of": name})
    return with_due_entry(
        replace(task, version=task.version + 1, steps={**task.steps, name: step}), NOW
    )


def over(task: Task, *, owed: tuple[Owed, ...] = (), retain_for: int = MINUTE) -> Task:
    """The next version: all over."""
    return with_due_entry(
        replace(
            task,
            version=task.version + 1,
            state=TaskState.COMPLETED,
            ended_at=NOW,
            owed=owed,
            retain_for=retain_for,
        ),
        NOW,
    )


def loaded(world: World) -> Task:
    found = world.store.load("ord-1001", NOW)
    assert found is not None
    return found


def saved(world: World, task: Task) -> Task:
    """Store the next version, and load it."""
    assert isinstance(world.store.save(task, seen=task.version - 1), Saved)
    found = loaded(world)
    # The table has whole seconds, rounded up.
    assert replace(found, expires_at=task.expires_at) == task
    return found


def with_steps(world: World, *names: str) -> Task:
    """A stored task with these steps, each settled by a decision of its own."""
    task = born()
    assert world.store.create(order_row(), task) == Created()
    for name in names:
        task = saved(world, settling(task, name))
    return task


def rows(world: World) -> "dict[str, Item]":
    found = world.client.scan(TableName=world.tables.tasks, ConsistentRead=True)["Items"]
    return {item["TaskId"]["S"]: item for item in found if is_row(item)}


def test_a_task_with_rows_is_loaded_as_it_was_stored(world: World) -> None:
    task = with_steps(world, "a", "b", "c")
    undone = saved(world, settling(task, "b", ProcessState.UNDONE))
    assert {name: one.process_state for name, one in undone.steps.items()} == {
        "a": ProcessState.PROCESSED,
        "b": ProcessState.UNDONE,
        "c": ProcessState.PROCESSED,
    }
    assert world.store.load("ord-1001", NOW, latest=False) == undone


def test_each_settled_step_has_a_row_and_the_record_lists_it(dynamo_world: World) -> None:
    with_steps(dynamo_world, "a", "b")
    assert set(rows(dynamo_world)) == {"ord-1001#settled#2", "ord-1001#settled#3"}
    assert dynamo_world.item("ord-1001")["Settled"] == {"L": [{"S": "2"}, {"S": "3"}]}


def test_a_step_that_goes_on_is_removed_from_its_row(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    again = settling(task, "b", ProcessState.PROCESSING)
    assert dynamo_world.store.save(again, seen=task.version) == Saved()
    assert set(rows(dynamo_world)) == {"ord-1001#settled#2"}


def test_a_superseded_write_changes_no_row(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a")
    before = rows(dynamo_world)
    for late in (settling(task, "b"), settling(task, "a", ProcessState.UNDONE), over(task)):
        assert dynamo_world.store.save(late, seen=task.version - 1) == Superseded()
    assert rows(dynamo_world) == before
    assert loaded(dynamo_world) == task


def test_rows_expire_with_the_task_and_stay_while_it_goes_on(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    assert not any("ExpiresAt" in row for row in rows(dynamo_world).values())
    ended = saved(dynamo_world, over(task))
    expiry = dynamo_world.item("ord-1001")["ExpiresAt"]
    assert [row["ExpiresAt"] for row in rows(dynamo_world).values()] == [expiry] * 2
    again = replace(ended, state=TaskState.ACTIVE, ended_at=None, expires_at=None)
    again = with_due_entry(replace(again, version=again.version + 1), NOW)
    assert dynamo_world.store.save(again, seen=ended.version) == Saved()
    assert not any("ExpiresAt" in row for row in rows(dynamo_world).values())


def test_rows_expire_when_what_the_task_owes_was_sent(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    owing = over(task, owed=(Owed("status", "completed", task.version + 1, NOW, ""),))
    ended = saved(dynamo_world, owing)
    assert not any("ExpiresAt" in row for row in rows(dynamo_world).values())
    assert dynamo_world.store.clear_owed(without_owed(ended, NOW)) == Saved()
    expiry = dynamo_world.item("ord-1001")["ExpiresAt"]
    assert [row["ExpiresAt"] for row in rows(dynamo_world).values()] == [expiry] * 2


def test_rows_are_removed_with_a_task_that_is_not_retained(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    assert dynamo_world.store.save(over(task, retain_for=0), seen=task.version) == Saved()
    assert rows(dynamo_world) == {}
    assert dynamo_world.store.load("ord-1001", NOW) is None


def test_rows_are_removed_with_a_task_when_what_it_owed_was_sent(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    owed = (Owed("status", "completed", task.version + 1, NOW, ""),)
    ended = saved(dynamo_world, over(task, owed=owed, retain_for=0))
    assert dynamo_world.store.clear_owed(without_owed(ended, NOW)) == Saved()
    assert rows(dynamo_world) == {}


def test_clearing_by_a_task_of_before_the_rows_moved_is_made_again(
    dynamo_world: World,
) -> None:
    """What a handler has in hand after `save` knows the rows of before: one is gone since."""
    task = with_steps(dynamo_world, "a", "b")
    owed = (Owed("status", "undone", task.version + 1, NOW, ""),)
    ended = replace(
        over(settling(task, "a", ProcessState.UNDONE), owed=owed), version=task.version + 1
    )
    saved(dynamo_world, ended)
    cleared = without_owed(ended, NOW)
    assert dynamo_world.store.clear_owed(cleared) == Superseded()
    assert set(rows(dynamo_world)) == {"ord-1001#settled#3"}
    assert dynamo_world.store.clear_owed(without_owed(loaded(dynamo_world), NOW)) == Saved()


@pytest.mark.parametrize("retain_for", [0, MINUTE])
def test_clearing_with_the_decision_in_hand_leaves_no_row_of_the_end(
    dynamo_world: World, retain_for: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many rows would become one: who sends what is owed would not know that one."""
    task = with_steps(dynamo_world, "a", "b", "c")
    monkeypatch.setattr(settled, "MOST_ROWS", 2)
    owed = (Owed("status", "completed", task.version + 1, NOW, ""),)
    ended = over(task, owed=owed, retain_for=retain_for)
    assert dynamo_world.store.save(ended, seen=task.version) == Saved()
    assert dynamo_world.store.clear_owed(without_owed(ended, NOW)) == Saved()
    assert len(rows(dynamo_world)) == (3 if retain_for else 0)
    assert all("ExpiresAt" in row for row in rows(dynamo_world).values())


def test_rows_and_history_share_a_transaction(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a")
    many = [
        HistoryRow(task.version * 1000 + number, NOW, "failed", "a", 1, f"reason {number}")
        for number in range(ROWS_A_DECISION)
    ]
    dynamo_world.keep_orders(MINUTE)
    assert dynamo_world.store.save(over(task), seen=task.version, history=many) == Saved()
    found = dynamo_world.store.history("ord-1001")
    assert len(found) == ROWS_A_DECISION - 1
    assert found[-1].reason == f"reason {ROWS_A_DECISION - 2}; reason {ROWS_A_DECISION - 1}"


@pytest.mark.exhaustive
def test_a_task_can_have_any_number_of_rows_in_its_life(dynamo_world: World) -> None:
    names = [f"step_{number}" for number in range(MOST_ROWS + 5)]
    task = with_steps(dynamo_world, *names)
    assert set(task.steps) == set(names)
    assert len(rows(dynamo_world)) <= MOST_ROWS + 1
    saved(dynamo_world, over(task))


def test_an_erased_task_leaves_no_contents_in_rows(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    bare = {name: replace(one, result=None) for name, one in task.steps.items()}
    erased = replace(task, version=task.version + 1, steps=bare, erased_at=NOW, erased_by="ann: 17")
    saved(dynamo_world, erased)
    assert all(
        one.result is None for row in loaded(dynamo_world).settled for one in row.steps.values()
    )
    assert len(rows(dynamo_world)) == 1


def test_lists_of_tasks_have_all_steps(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a", "b")
    records = Records(dynamo_world.client, tasks_table=dynamo_world.tables.tasks)
    assert records.load_many(["ord-1001"], NOW).tasks == {"ord-1001": task}
    assert [*records.entries(task.lane)] == [DueEntry("ord-1001", task.due_at)]


def test_lists_say_which_task_lacks_a_row(dynamo_world: World) -> None:
    with_steps(dynamo_world, "a", "b")
    dynamo_world.remove_task("ord-1001#settled#2")
    records = Records(dynamo_world.client, tasks_table=dynamo_world.tables.tasks)
    found = records.load_many(["ord-1001"], NOW)
    assert (found.tasks, set(found.unreadable)) == ({}, {"ord-1001"})
    assert "Settled lists the row 2, which is missing" in found.unreadable["ord-1001"]


def test_lists_read_a_task_again_whose_row_was_removed_in_between(
    dynamo_world: World,
) -> None:
    task = with_steps(dynamo_world, "a", "b")
    undone = settling(task, "a", ProcessState.UNDONE)
    reads = Reads(dynamo_world, lambda: dynamo_world.store.save(undone, seen=task.version), at=2)
    records = Records(reads, tasks_table=dynamo_world.tables.tasks)  # type: ignore[arg-type]
    assert records.load_many(["ord-1001"], NOW).tasks == {"ord-1001": undone}


# --- Reads while another decision is stored ------------------------------------------------------


class Reads:
    """A client one of whose batch reads, mostly the first, comes after something else was done."""

    def __init__(self, world: World, before: Callable[[], object], at: int = 1) -> None:
        self._client, self._before, self._at, self._times = world.client, before, at, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)

    def batch_get_item(self, **wanted: object) -> object:
        self._times += 1
        if self._times == self._at:
            self._before()
        return self._client.batch_get_item(**wanted)  # type: ignore[arg-type]


@pytest.mark.parametrize("latest", [True, False])
def test_a_row_that_a_decision_removes_in_between_is_no_fault(
    dynamo_world: World, latest: bool
) -> None:
    task = with_steps(dynamo_world, "a")
    undone = settling(task, "a", ProcessState.UNDONE)
    reads = Reads(dynamo_world, lambda: dynamo_world.store.save(undone, seen=task.version))
    store = dynamo_world.another_store(reads)  # type: ignore[arg-type]
    assert store.load("ord-1001", NOW, latest=latest) == undone


def test_a_task_that_is_removed_in_between_is_gone(dynamo_world: World) -> None:
    task = with_steps(dynamo_world, "a")
    end = over(task, retain_for=0)
    reads = Reads(dynamo_world, lambda: dynamo_world.store.save(end, seen=task.version))
    assert dynamo_world.another_store(reads).load("ord-1001", NOW) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("latest", [True, False])
def test_a_row_that_is_missing_makes_the_task_unreadable(dynamo_world: World, latest: bool) -> None:
    with_steps(dynamo_world, "a", "b")
    dynamo_world.remove_task("ord-1001#settled#2")
    with pytest.raises(UnreadableRecord, match="Settled lists the row 2, which is missing"):
        dynamo_world.store.load("ord-1001", NOW, latest=latest)
