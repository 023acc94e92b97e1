"""The doctor's reads, as DynamoDB itself takes them: by lanes, a hundred at once, and by rows."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from roundsman.aws.dynamodb.codec import task_item
from roundsman.model.instants import SECOND
from roundsman.model.task import Task
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.facts.finding.orders import look_deep
from roundsman_console.facts.finding.report import Looking
from roundsman_console.facts.finding.tasks import read_tasks
from tests.contract.samples import NOW, PLAN, born, claimed, completed, order_row
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import WriteRequestTypeDef

MANY = 105


@pytest.fixture
def stack(
    local_world: World, dynamodb_endpoint: str, monkeypatch: pytest.MonkeyPatch
) -> DeployedStack:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamodb_endpoint)
    tables = local_world.tables
    outputs = {
        "OrdersTableName": tables.orders,
        "TasksTableName": tables.tasks,
        "ControlTableName": tables.control,
        "HistoryTableName": tables.history,
    }
    return DeployedStack("roundsman", outputs, {"DueShards": "16"})


def store(world: World, task: Task) -> None:
    world.store.create(order_row(task.task_id), task)


def test_a_walk_reads_the_watched_lanes_as_far_as_it_is_asked(
    local_world: World, stack: DeployedStack
) -> None:
    tasks = [claimed(born(f"ord-{number}")) for number in range(MANY)]
    for first in range(0, MANY, 25):
        puts: list[WriteRequestTypeDef] = [
            {"PutRequest": {"Item": task_item(task)}} for task in tasks[first : first + 25]
        ]
        local_world.client.batch_write_item(RequestItems={local_world.tables.tasks: puts})
    store(local_world, completed(born("over")))
    local_world.spoil("ord-3")
    found = read_tasks(stack, 1_000, Looking())
    assert found.entries["open"] == MANY
    assert len(found.tasks) == MANY - 1
    assert set(found.unreadable) == {"ord-3"}
    assert found.cut == []
    part = read_tasks(stack, MANY - 1, Looking())
    assert (part.entries["open"], part.cut) == (MANY - 1, ["open"])


def test_a_deep_look_reads_every_row_of_both_tables(
    local_world: World, stack: DeployedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundsman_console.facts.finding.orders.AT_ONCE", 2)  # several pages
    monkeypatch.setattr("roundsman_console.facts.finding.orders.now", lambda: NOW)
    local_world.plans().put_plan(PLAN)
    kept = replace(born(), retain_for=3600 * SECOND)
    for number in range(5):
        store(local_world, replace(kept, task_id=f"ord-{number}"))
    local_world.remove_task("ord-1")
    local_world.remove_order("ord-2")
    looking = Looking()
    found, rows = look_deep(stack, 100_000, looking)
    assert looking.unseen == []
    assert rows == 8
    assert {(one.kind.value, one.where) for one in found} == {
        ("task-without-order", "ord-2"),
        ("order-without-task", "ord-1"),
    }
