"""`roundsman doctor` at a deployed stack: what it finds there, what it mends and what it prints."""

import json
from collections.abc import Iterator

import boto3
import pytest
from botocore.exceptions import ClientError

from roundsman.model.instants import MINUTE
from roundsman_console.aws.stack import find_stack
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.doctored import findings, mappings_enabled, put_in_order, visit
from tests.console.operators import (
    DECLINED,
    Operator,
    document,
    operator_of,
)
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from tests.project import deployed_project, of_each_agent

NO_MAIL = {"operation": "POST /messages", "status": 422}


@pytest.fixture(scope="module")
def one_world(roundsman_services: Services, roundsman_clock: Clock) -> Iterator[Stack]:
    """One deployment for all of these, in good order."""
    parameters = of_each_agent("BreakerFailures", "100")
    with deployed_project(roundsman_services, roundsman_clock, parameters) as world:
        put_in_order(world)
        yield world


@pytest.fixture
def operator(
    monkeypatch: pytest.MonkeyPatch, one_world: Stack, session_without_real_aws: None
) -> Operator:
    """Someone at the command line of a stack as deployed just now."""
    return operator_of(one_world, monkeypatch)


def stuck_at_payment(operator: Operator) -> None:
    """An order whose payment agent died, ten minutes ago, with no supervisor since."""
    operator.world.kill("PaymentFunction", at="UpdateItem")
    operator.world.submit(order("ord-1"))
    operator.world.run()
    operator.world.clock.now += 10 * MINUTE


def set_by_hand(world: Stack, order_id: str, **values: object) -> None:
    """Change attributes of a task's item, as somebody with the AWS console may."""
    world.dynamodb.update_item(
        TableName=world.stack.outputs["TasksTableName"],
        Key={"TaskId": {"S": order_id}},
        UpdateExpression="SET " + ", ".join(f"#{name} = :{name}" for name in values),
        ExpressionAttributeNames={f"#{name}": name for name in values},
        ExpressionAttributeValues={
            f":{name}": {"N": str(value)} if isinstance(value, int) else {"S": str(value)}
            for name, value in values.items()
        },
    )


def delete_by_hand(world: Stack, table: str, **key: str) -> None:
    """Delete an item of a table."""
    world.dynamodb.delete_item(
        TableName=world.stack.outputs[table],
        Key={name: {"S": value} for name, value in key.items()},
    )


def archived_alone(world: Stack) -> str:
    """An order that needs a person; the group of what it failed of."""
    world.faults(NO_MAIL)
    world.submit(order("ord-archived"))
    world.run()
    group = world.task("ord-archived").failure
    assert group is not None
    return group


@pytest.mark.exhaustive
def test_of_a_stack_at_its_ordinary_work_nothing_is_found(operator: Operator) -> None:
    world = operator.world
    world.faults(NO_MAIL)
    world.submit(order("ord-archived"))
    world.submit({**order("ord-undone"), **DECLINED})
    world.run()
    world.faults()
    world.submit(order("ord-completed"), order("ord-later", processIn=86_400))
    world.run()
    operator.types("hold", "payment", "--for", "30m", "--yes", "--reason", "maintenance")
    world.pass_time(10)  # until every scheduler has seen it
    world.submit(order("ord-held"))
    world.pass_time(200)
    assert world.task("ord-held").step("charge_card").held_since is not None
    result = visit(operator, "--deep")
    printed = document(result)
    assert_schema("doctor", printed)
    assert printed["findings"] == []
    assert find_stack("roundsman").groups.groups()
    assert (result.exit_code, printed["well"]) == (0, True)
    assert printed["looked"] == {"open": 2, "archived": 1, "cut": [], "deepRows": 10}
    with mappings_enabled():
        shown = operator.types("doctor")
    assert shown.exit_code == 0
    assert shown.stdout.splitlines()[-1] == "Checked 2 open and 1 archived tasks. Nothing is wrong."


@pytest.mark.exhaustive
def test_after_a_supervisor_died_what_stands_still_is_found_and_moved_on(
    operator: Operator,
) -> None:
    operator.world.supervise()
    stuck_at_payment(operator)
    found = findings(visit(operator))
    assert found == {"supervisor-late": "shard 0-1", "task-stuck": "ord-1"}
    result = visit(operator, "--fix", "--yes")
    printed = document(result)
    assert printed["repairs"] == [
        {
            "kind": "task-stuck",
            "where": "ord-1",
            "does": "make the scheduler inspect it",
            "mended": True,
            "problem": None,
        }
    ]
    assert findings(result) == {"supervisor-late": "shard 0-1"}
    assert result.exit_code == 1
    assert operator.world.task("ord-1").state in ("Retry", "Completed", "Active")


@pytest.mark.exhaustive
def test_what_was_damaged_by_hand_is_found_each_by_itself(operator: Operator) -> None:
    world = operator.world
    world.submit(*(order(f"ord-{n}", processIn=86_400) for n in range(1, 6)))
    world.pass_time(61)
    set_by_hand(world, "ord-1", Steps="none")
    set_by_hand(world, "ord-2", Schema=99)
    world.sqs.send_message(
        QueueUrl=world.url("MailRequestDeadLetterQueue"), MessageBody="never handled"
    )
    world.send("SubmissionQueue", "not JSON")
    world.run()
    with mappings_enabled("ShippingFunction"):
        result = operator.types("doctor", "--json")
    assert findings(result) == {
        "record-unreadable": "ord-2",
        "dead-letters": "MailRequestQueue",
        "rejected": "RejectedQueue",
        "queue-unread": "ShippingUrgentRequestQueue",
    }
    assert result.exit_code == 1
    group = archived_alone(world)
    plan = world.task("ord-4").plan
    delete_by_hand(world, "ControlTableName", ControlId=f"plan#{plan}")
    delete_by_hand(world, "ControlTableName", ControlId="groups")
    found = findings(visit(operator))
    assert found["plan-missing"] == plan[:12]
    assert found["group-not-open"] == group


@pytest.mark.exhaustive
def test_a_deep_look_finds_what_no_lane_shows(operator: Operator) -> None:
    world = operator.world
    world.submit(*(order(f"ord-{n}", processIn=86_400) for n in range(1, 5)))
    world.pass_time(61)
    delete_by_hand(world, "TasksTableName", TaskId="ord-1")
    delete_by_hand(world, "OrdersTableName", OrderID="ord-2")
    assert findings(visit(operator)) == {}
    result = visit(operator, "--deep")
    assert findings(result) == {
        "order-without-task": "ord-1",
        "task-without-order": "ord-2",
    }
    assert document(result)["looked"] == {
        "open": 3,
        "archived": 0,
        "cut": [],
        "deepRows": 6,
    }
    with mappings_enabled():
        cut = operator.types("doctor", "--limit", "1")
    assert cut.exit_code == 0
    assert "1 open and 0 archived tasks; more open tasks exist (raise --limit)." in cut.stdout


def test_what_may_not_be_read_is_reported_and_the_rest_is_read(
    operator: Operator,
) -> None:
    operator.world.supervise()
    stuck_at_payment(operator)
    refused = {
        "GetFunctionConfiguration": "AccessDeniedException",
        "ListEventSourceMappings": "AccessDeniedException",
        "DescribeTimeToLive": "UnknownOperationException",
        "GetFunctionConcurrency": "AccessDeniedException",
        "ListSubscriptionsByTopic": "Throttling",
        "ListStackResources": "AccessDenied",
    }

    def refuse(event_name: str, **_rest: object) -> None:
        operation = event_name.rpartition(".")[2]
        if operation in refused:
            raise ClientError({"Error": {"Code": refused[operation], "Message": ""}}, operation)

    session = boto3.DEFAULT_SESSION
    assert session is not None
    session.events.register("before-call", refuse)
    result = operator.types("doctor", "--json")
    session.events.unregister("before-call", refuse)
    assert findings(result) == {"supervisor-late": "shard 0-1", "task-stuck": "ord-1"}
    unseen = {
        one["what"]: (one["why"], one["lacking"]) for one in json.loads(result.stdout)["unseen"]
    }
    assert unseen["InventoryFunction, MailFunction, PaymentFunction and 4 more"] == (
        "AWS refused GetFunctionConfiguration with these credentials: AccessDeniedException",
        False,
    )
    assert unseen["the AlertTopic's subscriptions"][0].startswith("AWS is throttling")
    lacking = {what for what, (_, is_lacking) in unseen.items() if is_lacking}
    assert lacking == {
        "the TTL of ControlTable, the TTL of HistoryTable, the TTL of OrdersTable and 1 more"
    }
    assert "the stack's resources" in unseen
