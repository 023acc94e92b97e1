"""Results left out of the record are in rows beside it, each read by its own task only."""

from dataclasses import replace

import pytest

from roundsman.engine.due import with_due_entry
from roundsman.model.json import Json
from roundsman.model.states import ProcessState, TaskState
from roundsman.model.task import LeftOut, Task
from roundsman.ports import Saved
from tests.contract.samples import NOW, born, order_row
from tests.contract.worlds import World
from tests.support.steps import step_record

TASK_ID = "ord-1001"


@pytest.fixture
def begun(world: World) -> World:
    world.store.create(order_row(), born())
    return world


def with_result(world: World, name: str, row: int, whole: Json) -> Task:
    """Store the next version of the task, with a step whose result is in this row; load it."""
    task = world.store.load(TASK_ID, NOW)
    assert task is not None
    left_out = LeftOut("it has 40000 bytes", 40_000, row, whole=whole)
    one = step_record(process_state=ProcessState.PROCESSED, started_at=NOW)
    steps = {**task.steps, name: replace(one, left_out=left_out)}
    after = replace(task, version=task.version + 1, state=TaskState.ACTIVE, steps=steps)
    assert world.store.save(with_due_entry(after, NOW), seen=task.version) == Saved()
    found = world.store.load(TASK_ID, NOW)
    assert found is not None
    return found


def kept(world: World, task: Task) -> dict[str, Json]:
    found = world.store.with_results_left_out(task).steps.items()
    return {name: one.left_out.whole for name, one in found if one.left_out is not None}


def test_a_result_joins_the_row_of_those_before_and_the_record_has_none_of_them(
    begun: World,
) -> None:
    with_result(begun, "first", 0, {"id": "\u00e9"})
    with_result(begun, "second", 0, [1, None])
    task = with_result(begun, "third", 1, "x")
    assert kept(begun, task) == {"first": {"id": "\u00e9"}, "second": [1, None], "third": "x"}
    assert {one.left_out and one.left_out.whole for one in task.steps.values()} == {None}


def test_a_row_of_a_former_task_with_that_id_is_not_read(begun: World) -> None:
    task = with_result(begun, "first", 0, "of the former task")
    assert kept(begun, replace(task, created_at=task.created_at + 1)) == {"first": None}


def test_a_row_that_is_begun_has_nothing_of_a_former_task(begun: World) -> None:
    with_result(begun, "first", 0, "of the former task")
    row = {"TaskId": {"S": f"{TASK_ID}#result#0"}}
    left_behind = begun.client.get_item(TableName=begun.tables.tasks, Key=row)["Item"]
    begun.remove_task(TASK_ID)
    begun.remove_task(f"{TASK_ID}#result#0")
    begun.client.put_item(TableName=begun.tables.tasks, Item={**left_behind, "secret": {"S": "1"}})
    begun.client.delete_item(TableName=begun.tables.orders, Key={"OrderID": {"S": TASK_ID}})
    begun.store.create(order_row(), born())
    task = with_result(begun, "first", 0, "of this task")
    assert kept(begun, task) == {"first": "of this task"}
    item = begun.client.get_item(TableName=begun.tables.tasks, Key=row)["Item"]
    assert item.keys() == {"TaskId", "CreatedAt", "Schema", "first"}
