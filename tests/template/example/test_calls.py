"""Orders carried through the real functions on the real template's stack, on moto.

Every call that a function makes to AWS is held against its role: what passes here is not
refused by IAM once deployed.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from moto import mock_aws

from roundsman.aws.clock import now
from roundsman.aws.dynamodb.bulk_runs import DynamoBulkRuns
from roundsman.model.bulk_run import PlannedOrder, Run, RunState, Terms
from roundsman.model.events import Cancel, CommandSource, Erase
from roundsman.wire.commands import command_of
from roundsman_dev.template import Document
from roundsman_testing.remote_services import RemoteServices
from roundsman_testing.stack.calls import AwsCall
from roundsman_testing.stack.driver import Driver
from tests.contract.circuits import fresh_circuits
from tests.project import SERVICE_URLS, TEMPLATE, create_stack
from tests.support.template_reading import among, granted, keys_granted

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef as Value
    from mypy_boto3_sqs import SQSClient

    Item = dict[str, Value]

__all__ = ["fresh_circuits"]

EVENTS = TEMPLATE.parent / "events"
PAST: "Value" = {"N": "1"}
# One action stands for a batch of itself, and a transaction for its parts.
ACTION_OF = {"SendMessageBatch": "SendMessage"}
PARTS_OF_A_TRANSACTION = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "ConditionCheck": "ConditionCheckItem",
    "Delete": "DeleteItem",
}


@pytest.fixture
def services() -> Iterator[RemoteServices]:
    with RemoteServices() as started:
        yield started


@pytest.fixture
def driver(services: RemoteServices) -> Iterator[Driver]:
    with mock_aws():
        yield Driver(create_stack(dict.fromkeys(SERVICE_URLS, services.url)))


def submit(driver: Driver, body: str) -> None:
    sqs: SQSClient = boto3.client("sqs")
    sqs.send_message(QueueUrl=driver.stack.outputs["SubmissionQueueUrl"], MessageBody=body)


def needed(call: AwsCall, resources: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """What a role must allow for a call: service, action, and the logical id of what it is to."""
    if call.operation == "TransactWriteItems":
        for item in cast("list[dict[str, dict[str, object]]]", call.parameters["TransactItems"]):
            for kind, write in item.items():
                yield "dynamodb", PARTS_OF_A_TRANSACTION[kind], resources[str(write["TableName"])]
        return
    if call.operation == "BatchGetItem":
        for table in cast("Mapping[str, object]", call.parameters["RequestItems"]):
            yield "dynamodb", call.operation, resources[table]
        return
    where = str(
        next(
            call.parameters[k]
            for k in ("TableName", "QueueUrl", "TopicArn")
            if k in call.parameters
        )
    )
    index = f"/index/{call.parameters['IndexName']}" if "IndexName" in call.parameters else ""
    target = resources[where] + index
    yield call.service, ACTION_OF.get(call.operation, call.operation), target


def assert_permitted(driver: Driver, document: Document) -> None:
    """Every call so far is one that the role of its function allows."""
    resources = {physical: logical for logical, physical in driver.stack.resources.items()}
    assert driver.calls
    for call in driver.calls:
        role = call.function.removesuffix("Function") + "Role"
        for service, action, target in needed(call, resources):
            allowed = granted(document, role, service).get(target, set())
            assert action in allowed, f"{call.function}: {service}:{action} on {target}"
            if service == "dynamodb" and "/index/" not in target:
                keys = keys_granted(document, role, action, target)
                inside = keys is None or all(among(key, keys) for key in keys_of(call))
                assert inside, f"{call.function}: {action} {keys}"


def keys_of(call: AwsCall) -> set[str]:
    """The key of the row that a call is about; of a transaction, none."""
    row = cast("Item", call.parameters.get("Key") or call.parameters.get("Item") or {})
    return {row[name]["S"] for name in ("ControlId", "TaskId", "OrderID") if name in row}


@pytest.mark.exhaustive
def test_an_order_is_carried_through_its_four_steps_within_every_functions_rights(
    driver: Driver, document: Document
) -> None:
    submit(driver, (EVENTS / "good.json").read_text())
    driver.run_until_idle()
    order_id = json.loads((EVENTS / "good.json").read_text())["orderId"]
    assert record_of(driver, order_id)["State"] == {"S": "Completed"}
    assert {call.function for call in driver.calls} == {
        "SubmissionFunction",
        "SchedulerFunction",
        *(f"{agent}Function" for agent in ("Inventory", "Payment", "Shipping", "Mail")),
    }
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_an_order_that_fails_for_good_is_undone_within_their_rights(
    driver: Driver, document: Document
) -> None:
    event = (EVENTS / "declined.json").read_text()
    submit(driver, event)
    driver.run_until_idle()
    assert record_of(driver, json.loads(event)["orderId"])["State"] == {"S": "Undone"}
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_an_order_that_cannot_be_undone_is_archived_with_an_alert_within_their_rights(
    driver: Driver, services: RemoteServices, document: Document
) -> None:
    event = (EVENTS / "declined.json").read_text()
    services.application.set_faults({"rules": [{"operation": "POST /refunds", "status": 400}]})
    submit(driver, event)
    driver.run_until_idle()
    assert record_of(driver, json.loads(event)["orderId"])["State"] == {"S": "Archived"}
    assert [c.function for c in driver.calls if c.operation == "Publish"] == ["SchedulerFunction"]
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_a_service_that_is_down_and_back_is_spared_and_called_again_within_their_rights(
    services: RemoteServices, document: Document, fresh_circuits: None
) -> None:
    with mock_aws():
        urls = dict.fromkeys(SERVICE_URLS, services.url)
        parameters = {
            **urls,
            "Inventory.BreakerFailures": "1",
            "Inventory.CallsPerSecond": "100",
        }
        driver = Driver(create_stack(parameters))
        services.application.set_faults(
            {"rules": [{"operation": "POST /reservations", "status": 503}]}
        )
        submit(driver, (EVENTS / "good.json").read_text())
        driver.run_until_idle()
        open_the_way(driver, "inventory")
        driver.start_afresh("InventoryFunction")  # the old one may know the circuit for a second
        services.application.set_faults({"rules": []})
        order_id = json.loads((EVENTS / "good.json").read_text())["orderId"]
        change_record(driver, order_id, no_waiting)
        driver.invoke("SupervisorFunction", {})
        driver.run_until_idle()
        assert record_of(driver, order_id)["State"] == {"S": "Completed"}
        done = {
            (call.operation, *sorted(keys_of(call)))
            for call in driver.calls
            if call.function == "InventoryFunction" and call.service == "dynamodb"
        }
        assert done == {
            ("GetItem", "holds"),
            ("GetItem", "breaker#inventory"),
            ("PutItem", "breaker#inventory"),
            ("UpdateItem", "breaker#inventory"),
            ("UpdateItem", "holds"),
            ("UpdateItem", "marks"),
            ("UpdateItem", "rate#inventory"),
        }
        assert "Publish" in operations_of(driver, "InventoryFunction")
        assert_permitted(driver, document)


def no_waiting(task: "Item") -> "Item":
    """As if what a step waits for had come: the end of its agent's hold."""
    steps = {
        name: {"M": {k: PAST if k == "NotBefore" else v for k, v in step["M"].items()}}
        for name, step in task["Steps"]["M"].items()
    }
    return {**task, "DueAt": PAST, "Steps": {"M": cast("Item", steps)}}


def open_the_way(driver: Driver, agent: str) -> None:
    """As if the recovery time of an agent's circuit were over, and its hold with it."""
    dynamodb: DynamoDBClient = boto3.client("dynamodb")
    table = driver.stack.outputs["ControlTableName"]
    dynamodb.update_item(
        TableName=table,
        Key={"ControlId": {"S": f"breaker#{agent}"}},
        UpdateExpression="SET OpenedAt = OpenedAt - :past",
        ConditionExpression="#state = :open",
        ExpressionAttributeNames={"#state": "State"},
        ExpressionAttributeValues={":past": {"N": "30"}, ":open": {"S": "OPEN"}},
    )
    dynamodb.delete_item(TableName=table, Key={"ControlId": {"S": "holds"}})


@pytest.mark.exhaustive
def test_what_cannot_be_handled_is_put_aside_within_every_functions_rights(
    driver: Driver, document: Document
) -> None:
    sqs: SQSClient = boto3.client("sqs")
    for source in driver.stack.mappings:
        sqs.send_message(QueueUrl=source.queue_url, MessageBody="{not json")
    driver.run_until_idle()
    url = driver.stack.outputs["RejectedQueueUrl"]
    answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])
    assert int(answer["Attributes"]["ApproximateNumberOfMessages"]) == len(driver.stack.mappings)
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_what_fails_its_last_delivery_goes_to_the_dead_letters_within_every_functions_rights(
    driver: Driver, document: Document
) -> None:
    order_id = begin(driver, "SubmissionQueue")
    change_record(driver, order_id, lambda task: {k: task[k] for k in task if k != "CompleteBy"})
    [commands] = [s for s in driver.stack.mappings if "SchedulerQueue" in s.queue_url]
    for _ in range(5):
        assert driver.work_off(commands)
        for message in driver._queue(commands.queue_url)._messages:
            message.change_visibility(0)
    dead = driver.stack.resources["SchedulerDeadLetterQueue"]
    [call] = [c for c in driver.calls if c.parameters.get("QueueUrl") == dead]
    assert call.operation == "SendMessage"
    assert driver.bodies(dead)
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_a_lost_request_is_recovered_by_the_supervisor_within_its_rights(
    driver: Driver, document: Document
) -> None:
    order_id = begin(driver, "SubmissionQueue", "SchedulerQueue")  # the first step is claimed
    sqs: SQSClient = boto3.client("sqs")
    sqs.purge_queue(QueueUrl=driver.stack.outputs["InventoryRequestQueueUrl"])
    change_record(driver, order_id, lambda task: step_overdue(task, "reserve_stock"))
    driver.invoke("SupervisorFunction", {})
    driver.run_until_idle()
    task = record_of(driver, order_id)
    assert task["State"] == {"S": "Completed"}
    assert task["Steps"]["M"]["reserve_stock"]["M"]["FailureCount"] == {"N": "0"}, "never read"
    assert "Query" in operations_of(driver, "SupervisorFunction")
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_a_task_that_is_too_late_is_ended_by_the_supervisor_within_its_rights(
    driver: Driver, document: Document
) -> None:
    order_id = begin(driver, "SubmissionQueue")  # nothing is claimed yet, so it ends at once
    change_record(driver, order_id, lambda task: {**task, "CompleteBy": PAST, "DueAt": PAST})
    driver.invoke("SupervisorFunction", {})
    assert record_of(driver, order_id)["State"] == {"S": "Undone"}, "nothing was done yet"
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_a_task_without_its_plan_is_archived_by_the_supervisor_within_its_rights(
    driver: Driver, document: Document
) -> None:
    order_id = begin(driver, "SubmissionQueue")
    change_record(driver, order_id, lambda task: {**task, "Plan": {"S": "0" * 64}, "DueAt": PAST})
    driver.invoke("SupervisorFunction", {})
    assert record_of(driver, order_id)["State"] == {"S": "Archived"}
    assert "Publish" in operations_of(driver, "SupervisorFunction")
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_an_application_cancels_its_order_within_every_functions_rights(
    driver: Driver, document: Document
) -> None:
    order_id = begin(driver, "SubmissionQueue", "SchedulerQueue")
    submit(driver, json.dumps({"orderId": order_id, "cancel": {}}))
    driver.run_until_idle()
    assert record_of(driver, order_id)["State"] == {"S": "Cancelled"}
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_an_order_that_is_over_is_erased_by_the_scheduler_within_its_rights(
    driver: Driver, document: Document
) -> None:
    event = (EVENTS / "declined.json").read_text()
    order_id = json.loads(event)["orderId"]
    submit(driver, event)
    driver.run_until_idle()
    erasure = command_of(order_id, Erase(CommandSource("c-1", "ann", "request 17")))
    sqs: SQSClient = boto3.client("sqs")
    sqs.send_message(QueueUrl=driver.stack.outputs["SchedulerQueueUrl"], MessageBody=erasure.body())
    driver.run_until_idle()
    assert "ErasedAt" in record_of(driver, order_id)
    dynamodb: DynamoDBClient = boto3.client("dynamodb")
    order = dynamodb.get_item(
        TableName=driver.stack.outputs["OrdersTableName"], Key={"OrderID": {"S": order_id}}
    )["Item"]
    assert order["Content"] == {"S": "null"}
    rows = dynamodb.query(
        TableName=driver.stack.outputs["HistoryTableName"],
        KeyConditionExpression="TaskId = :id",
        ExpressionAttributeValues={":id": {"S": order_id}},
    )["Items"]
    reasons = {row["Kind"]["S"]: row["Reason"]["S"] for row in rows}
    assert reasons.pop("erase") == "erase by ann: request 17"
    assert "failed" in reasons
    assert set(reasons.values()) == {"(erased)"}
    assert {"Query", "UpdateItem"} <= operations_of(driver, "SchedulerFunction")
    assert_permitted(driver, document)


@pytest.mark.exhaustive
def test_a_bulk_run_is_carried_out_within_every_functions_rights(
    driver: Driver, document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roundsman.supervisor.supervisor.VISIT_INTERVAL", 120_000)  # one a tick
    monkeypatch.setattr("roundsman.model.bulk_run.FIRST_LOOK", 0)
    order_id = begin(driver, "SubmissionQueue", "SchedulerQueue")
    runs = DynamoBulkRuns(
        boto3.client("dynamodb"),
        control_table=driver.stack.outputs["ControlTableName"],
        clock=now,
    )
    event = Cancel(CommandSource("b-00000001", "amy"))
    run = Run("b-00000001", event, "amy", "AROA:amy", "", "", now(), 2, Terms(canary=0))
    runs.begin(run, [PlannedOrder("gone"), PlannedOrder(order_id)])
    driver.invoke("SupervisorFunction", {})  # it sends the command
    driver.invoke("SupervisorFunction", {})  # it finds no trace of it
    driver.run_until_idle()
    for _ in range(100):  # the next look is as far away as the first one came late
        driver.invoke("SupervisorFunction", {})  # it finds the result
        found = runs.find(run.id)
        assert found is not None
        record, is_open = found
        if not is_open:
            break
    assert (record.state, is_open, record.progress.refusals) == (RunState.FINISHED, False, 1)
    assert record.progress.sent == record.progress.results == 1
    assert record_of(driver, order_id)["State"] == {"S": "Cancelled"}
    assert_permitted(driver, document)


def begin(driver: Driver, *queues: str) -> str:
    """Submit the good order and work off one batch of each queue, in turn; the order's id."""
    event = (EVENTS / "good.json").read_text()
    submit(driver, event)
    for queue in queues:
        url = driver.stack.outputs[f"{queue}Url"]
        assert driver.work_off(next(s for s in driver.stack.mappings if s.queue_url == url))
    return str(json.loads(event)["orderId"])


def operations_of(driver: Driver, function: str) -> set[str]:
    return {call.operation for call in driver.calls if call.function == function}


def record_of(driver: Driver, order_id: str) -> "Item":
    dynamodb: DynamoDBClient = boto3.client("dynamodb")
    table = driver.stack.outputs["TasksTableName"]
    return dynamodb.get_item(TableName=table, Key={"TaskId": {"S": order_id}})["Item"]


def change_record(driver: Driver, order_id: str, change: Callable[["Item"], "Item"]) -> None:
    """Change a task's record behind everyone's back: time passes without waiting for it."""
    dynamodb: DynamoDBClient = boto3.client("dynamodb")
    table = driver.stack.outputs["TasksTableName"]
    dynamodb.put_item(TableName=table, Item=change(record_of(driver, order_id)))


def step_overdue(task: "Item", step: str) -> "Item":
    steps = task["Steps"]["M"]
    late: Item = {**steps, step: {"M": {**steps[step]["M"], "CompleteBy": PAST}}}
    return {**task, "DueAt": PAST, "Steps": {"M": late}}
