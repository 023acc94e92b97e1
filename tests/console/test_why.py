"""`roundsman why` over the real functions."""

import pytest

from roundsman.aws.dynamodb.control import DynamoLeases
from roundsman.model.leases import Lease, Leases
from roundsman.model.task import SCHEMA
from tests.console.operators import DECLINED, Operator, holds_of, in_retry
from tests.console.schemas import assert_schema
from tests.console.step_samples import HOLD
from tests.moto.orders import order


def test_an_order_that_waits_says_for_what_and_what_to_do(operator: Operator) -> None:
    in_retry(operator)
    world = operator.world
    task = world.task("ord-1")
    assert task is not None
    leases = Leases(1, 16, {task.shard: Lease(visited_at=world.clock() - 20_000)})
    table = world.stack.outputs["ControlTableName"]
    assert DynamoLeases(world.dynamodb, control_table=table).write(leases, seen=0)
    found = operator.reads("why", "ord-1")
    assert_schema("why", found)
    assert (found["case"], found["step"]) == ("retry", "charge_card")
    output = operator.types("why", "ord-1").stdout
    assert output.startswith("ord-1  order_fulfilment  Retry\n")
    assert output.endswith("Next: roundsman run ord-1 --reason '...'\n")
    assert "a supervisor last visited its shard" in " ".join(output.split())


def test_an_order_whose_agent_is_held_says_who_holds_it(operator: Operator) -> None:
    world = operator.world
    holds_of(world).hold(HOLD)
    world.submit(order("ord-1"))
    world.run()
    found = operator.reads("why", "ord-1")
    assert (found["case"], found["next"]) == ("held", "roundsman release payment")


@pytest.mark.exhaustive
def test_an_order_that_is_over_gone_or_of_newer_code_says_so(operator: Operator) -> None:
    world = operator.world
    world.faults({"operation": "POST /messages", "status": 422, "orderId": "ord-1"})
    world.submit(order("ord-1"), {**order("ord-2"), **DECLINED}, order("ord-3", retention=0))
    world.run()
    assert operator.reads("why", "ord-1")["case"] == "archived"
    assert operator.reads("why", "ord-2")["case"] == "ended"
    for name, words in (
        ("ord-3", "its task has ended, and its retention too"),
        ("ord-4", "See: roundsman rejected ls"),
        ("no/id", "an order id is 1 to 128 of"),
    ):
        result = operator.types("why", name)
        assert (result.exit_code, result.stdout) == (3, "")
        assert words in result.stderr
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "ord-1"}},
        UpdateExpression="SET #s = :new",
        ExpressionAttributeNames={"#s": "Schema"},
        ExpressionAttributeValues={":new": {"N": "99"}},
    )
    found = operator.reads("why", "ord-1")
    assert (found["case"], found["state"]) == ("unreadable", None)
    assert f"this code reads {SCHEMA}" in str(found["sentence"])
    listed = operator.reads("ls")
    assert [one["orderId"] for one in _list(listed["unreadable"])] == ["ord-1"]
    assert [one["orderId"] for one in _list(listed["tasks"])] == ["ord-2"]
    assert "ord-1 cannot be read: " in operator.types("ls").stdout


def test_an_order_whose_plan_cannot_be_read_says_so(operator: Operator) -> None:
    in_retry(operator)
    world = operator.world
    world.dynamodb.put_item(
        TableName=world.stack.outputs["ControlTableName"],
        Item={
            "ControlId": {"S": f"plan#{world.task('ord-1').plan}"},
            "Text": {"S": "altered"},
        },
    )
    found = operator.reads("why", "ord-1")
    assert (found["case"], found["state"], found["next"]) == (
        "unreadable",
        "Retry",
        "roundsman doctor",
    )
    assert "cannot be read: Text is not a plan" in str(found["sentence"])


def _list(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


def test_a_deadline_is_shown_beside_the_complete_by(operator: Operator) -> None:
    in_retry(operator)
    assert operator.reads("show", "ord-1")["deadline"] is None
    assert "deadline" not in operator.types("show", "ord-1").stdout
    assert "deadline" not in operator.types("why", "ord-1").stdout
    operator.world.dynamodb.update_item(
        TableName=operator.world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": "ord-1"}},
        UpdateExpression="SET Deadline = :at",
        ExpressionAttributeValues={":at": {"N": "1799999400000"}},
    )
    assert operator.reads("show", "ord-1")["deadline"] == "2027-01-15T07:50:00.000Z"
    shown = operator.types("show", "ord-1").stdout.splitlines()
    assert "deadline 2027-01-15T07:50:00.000Z: no step is performed after it" in shown
    output = " ".join(operator.types("why", "ord-1").stdout.split())
    assert "its deadline, which nothing moves, is 2027-01-15T07:50:00Z" in output
