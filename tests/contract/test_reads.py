"""How DynamoDB is read: consistently where it decides, cheaply where it does not, and lazily."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING

from roundsman.aws.dynamodb.control import DynamoAgentBoard
from roundsman.aws.guard.guard import OperatorsHold
from roundsman.engine.due import without_owed
from roundsman.model.states import TaskState
from roundsman.ports import DueEntry, Exists
from tests.contract.samples import NOW, born, completed, order_row
from tests.contract.worlds import World

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@contextmanager
def calls_of(
    client: "DynamoDBClient", operation: str
) -> Iterator[list[tuple[str, Mapping[str, object]]]]:
    """Within it, the calls of the operation are kept: the table, and all the parameters."""
    calls: list[tuple[str, Mapping[str, object]]] = []

    def keep(params: dict[str, object], **_: object) -> None:
        calls.append((str(params["TableName"]).rpartition("-")[2], params))

    event = f"provide-client-params.dynamodb.{operation}"
    client.meta.events.register(event, keep)
    try:
        yield calls
    finally:
        client.meta.events.unregister(event, keep)


def consistency(calls: list[tuple[str, Mapping[str, object]]]) -> list[tuple[str, object]]:
    return [(table, params.get("ConsistentRead", False)) for table, params in calls]


def test_a_task_is_read_consistently_and_once(dynamo_world: World) -> None:
    with calls_of(dynamo_world.client, "GetItem") as calls:
        dynamo_world.store.load("ord-1001", NOW)
    assert consistency(calls) == [("TasksTable", True)]


def test_an_order_that_is_there_costs_the_cheap_read(dynamo_world: World) -> None:
    dynamo_world.store.create(order_row(), born())
    with calls_of(dynamo_world.client, "GetItem") as calls:
        assert dynamo_world.store.order("ord-1001") == order_row()
    assert consistency(calls) == [("OrdersTable", False)]


def test_that_there_is_no_order_is_only_believed_of_a_consistent_read(
    dynamo_world: World,
) -> None:
    with calls_of(dynamo_world.client, "GetItem") as calls:
        assert dynamo_world.store.order("ord-1001") is None
    assert consistency(calls) == [("OrdersTable", False), ("OrdersTable", True)]


def test_what_is_in_the_way_of_an_order_is_read_consistently(dynamo_world: World) -> None:
    dynamo_world.store.create(order_row(), born())
    with calls_of(dynamo_world.client, "GetItem") as calls:
        assert dynamo_world.store.create(order_row(), born()) == Exists(order_row(), born())
    assert consistency(calls) == [("OrdersTable", True), ("TasksTable", True)]


def test_holds_that_are_kept_for_seconds_cost_the_cheap_read(dynamo_world: World) -> None:
    world, table = dynamo_world, dynamo_world.tables.control
    holds = world.holds(lambda: NOW)
    with calls_of(world.client, "GetItem") as calls:
        DynamoAgentBoard(world.client, control_table=table, clock=lambda: NOW).agents()
        OperatorsHold("payment", holds, clock=lambda: NOW).check("ord-1")
    assert consistency(calls) == [
        ("ControlTable", True),  # the marks
        ("ControlTable", False),
        ("ControlTable", False),
    ]


def test_holds_that_somebody_asks_for_are_read_consistently(dynamo_world: World) -> None:
    with calls_of(dynamo_world.client, "GetItem") as calls:
        dynamo_world.holds(lambda: NOW).holds()
    assert consistency(calls) == [("ControlTable", True)]


def test_a_lane_is_read_page_by_page_as_far_as_it_is_asked_for(dynamo_world: World) -> None:
    for n in range(5):
        task = replace(born(f"t-{n}"), lane="open#3", shard=3, due_at=NOW + n)
        dynamo_world.store.create(order_row(task.task_id), task)
    with calls_of(dynamo_world.client, "Query") as calls:
        entries = dynamo_world.store.due("open#3", NOW + 9)
        assert calls == []
        assert list(islice(entries, 2)) == [DueEntry("t-0", NOW), DueEntry("t-1", NOW + 1)]
        assert len(calls) == 1
        assert [entry.task_id for entry in entries] == ["t-2", "t-3", "t-4"]
        assert len(calls) == 3


def shown(world: World, lane: str) -> list[dict[str, str]]:
    """What the index `due` shows of the tasks of a lane, besides its keys."""
    found = world.client.query(
        TableName=world.tables.tasks,
        IndexName="due",
        KeyConditionExpression="Lane = :lane",
        ExpressionAttributeValues={":lane": {"S": lane}},
    )
    return [
        {
            name: value.get("S") or value["N"]
            for name, value in item.items()
            if name not in ("TaskId", "Lane", "DueAt")
        }
        for item in found["Items"]
    ]


def test_the_index_shows_what_lists_need_and_how_a_task_ended_once_it_is_closed(
    dynamo_world: World,
) -> None:
    store, task = dynamo_world.store, born()
    always = {"Workflow": task.workflow, "CreatedAt": str(task.created_at)}
    store.create(order_row(), task)
    assert shown(dynamo_world, task.lane) == [always]
    ended = completed(task, owed=("completed",))
    store.save(ended, seen=task.version)
    assert shown(dynamo_world, task.lane) == [always], "its status is owed: it is still looked at"
    closed = without_owed(ended, NOW)
    store.clear_owed(closed)
    assert shown(dynamo_world, task.lane) == []
    assert shown(dynamo_world, closed.lane) == [{**always, "Outcome": "Completed"}]
    loaded = store.load(task.task_id, NOW)
    assert loaded is not None
    assert loaded.state is TaskState.COMPLETED
