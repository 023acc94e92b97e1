"""`roundsman restore` and `roundsman delete`, beside stacks whose names contain this one, on moto.

Nothing of theirs changes: not a table, not a message, not a function.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from roundsman.model.instants import iso
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.base import clock as polling
from roundsman_console.base.errors import USAGE
from roundsman_console.facts.table import copies
from roundsman_console.facts.table.left_bucket import commands_for, left_words
from roundsman_console.facts.table.record import TABLES
from roundsman_testing.stack import Clock, Services, Stack
from tests.console.operators import Operator, Patience
from tests.console.schemas import assert_schema
from tests.moto.orders import order
from tests.project import deployed_project

OTHERS = ("webroundsman", "roundsman-prod", "roundsman2")
"""Stacks of whose names this one's is a part: at the end, and at the beginning."""
PARTS = ("OrdersTable", "TasksTable", "ControlTable", "HistoryTable")


def make_others(world: Stack) -> None:
    """The tables, queues, functions and mappings of the other stacks."""
    awslambda, sqs = boto3.client("lambda"), boto3.client("sqs")
    role = awslambda.get_function_configuration(
        FunctionName=world.stack.outputs["SchedulerFunctionName"]
    )["Role"]
    for name in OTHERS:
        for part in PARTS:
            table = f"{name}-Engine-1A2B-{part}-3C4D"
            world.dynamodb.create_table(
                TableName=table,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[{"AttributeName": "Id", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "Id", "AttributeType": "S"}],
            )
            world.dynamodb.put_item(TableName=table, Item={"Id": {"S": name}})
        for function in ("SchedulerFunction", "SupervisorFunction"):
            awslambda.create_function(
                FunctionName=f"{name}-Engine-1A2B-{function}-3C4D",
                Runtime="python3.13",
                Role=role,
                Handler="app.handler",
                Code={"ZipFile": b"code"},
            )
        for queue in (f"{name}-SchedulerQueue", f"{name}_PaymentRequestQueue"):
            url = sqs.create_queue(QueueName=queue)["QueueUrl"]
            sqs.send_message(QueueUrl=url, MessageBody="keep me")
        arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        awslambda.create_event_source_mapping(
            EventSourceArn=arn["QueueArn"],
            FunctionName=f"{name}-Engine-1A2B-SchedulerFunction-3C4D",
        )


def of_others(world: Stack) -> list[object]:
    """All that could be done to the other stacks."""
    awslambda, sqs = boto3.client("lambda"), boto3.client("sqs")
    seen: list[object] = []
    for name in OTHERS:
        for part in PARTS:
            table = f"{name}-Engine-1A2B-{part}-3C4D"
            seen += [table, world.dynamodb.scan(TableName=table)["Items"]]
            seen.append(world.dynamodb.list_backups(TableName=table)["BackupSummaries"])
        for queue in (f"{name}-SchedulerQueue", f"{name}_PaymentRequestQueue"):
            url = sqs.get_queue_url(QueueName=queue)["QueueUrl"]
            asked = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            seen.append(asked["ApproximateNumberOfMessages"])
        scheduler = f"{name}-Engine-1A2B-SchedulerFunction-3C4D"
        pages = awslambda.list_event_source_mappings(FunctionName=scheduler)
        seen += [one["State"] for one in pages["EventSourceMappings"]]
        supervisor = scheduler.replace("Scheduler", "Supervisor")
        found = awslambda.get_function_concurrency(FunctionName=supervisor)
        seen.append(found.get("ReservedConcurrentExecutions"))
    return seen


@contextmanager
def mappings_with_a_state() -> Iterator[None]:
    """Let each event source mapping be enabled until it is changed.

    On moto those of a stack stay disabled, because moto would call the functions itself.
    """
    make = BaseClient._make_api_call  # type: ignore[attr-defined]  # every call goes through it
    enabled: dict[str, bool] = {}

    def state(one: dict[str, Any]) -> dict[str, Any]:
        return {**one, "State": "Enabled" if enabled.get(one["UUID"], True) else "Disabled"}

    def answered(client: BaseClient, operation: str, arguments: dict[str, Any]) -> object:
        if operation == "UpdateEventSourceMapping":
            enabled[arguments["UUID"]] = arguments["Enabled"]
            return {}
        answer = make(client, operation, arguments)
        if operation == "GetEventSourceMapping":
            return state(answer)
        if operation == "ListEventSourceMappings":
            return {**answer, "EventSourceMappings": [*map(state, answer["EventSourceMappings"])]}
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", answered)
        yield


@pytest.fixture
def operator(
    roundsman_services: Services,
    roundsman_clock: Clock,
    session_without_real_aws: None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Operator]:
    """A stack of its own beside the others, and nothing runs while a command waits."""
    del session_without_real_aws
    with (
        deployed_project(roundsman_services, roundsman_clock) as world,
        mappings_with_a_state(),
    ):
        make_others(world)
        monkeypatch.setattr(polling, "time", patience := Patience(lambda: None))
        monkeypatch.setenv("MOTO_SQS_ENFORCE_STRICT_QUEUE_PURGE_BEHAVIOUR", "false")
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("ROUNDSMAN_STACK", "roundsman")
        before = of_others(world)
        yield Operator(world, patience)
        assert of_others(world) == before


def rows(world: Stack, output: str) -> list[dict[str, Any]]:
    found = world.dynamodb.scan(TableName=world.stack.outputs[output])["Items"]
    return sorted((dict(one) for one in found), key=str)


def states(world: Stack) -> set[str]:
    """The states of the stack's own mappings."""
    client = boto3.client("lambda")
    return {
        one["State"]
        for name, function in world.stack.outputs.items()
        if name.endswith("FunctionName")
        for one in client.list_event_source_mappings(FunctionName=f"{function}:live")[
            "EventSourceMappings"
        ]
    }


def concurrency(world: Stack) -> int | None:
    function = world.stack.outputs["SupervisorFunctionName"]
    found = boto3.client("lambda").get_function_concurrency(FunctionName=function)
    return found.get("ReservedConcurrentExecutions")


YES = ("--confirm", "roundsman")


def prepare(operator: Operator) -> tuple[str, ...]:
    return ("restore", "prepare", "--to", iso(operator.world.clock.now), *YES)


@pytest.mark.exhaustive
def test_a_stack_goes_back_to_an_instant_and_its_settings_with_it(operator: Operator) -> None:
    world = operator.world
    client = world.dynamodb
    tasks = world.stack.outputs["TasksTableName"]
    client.update_table(TableName=tasks, DeletionProtectionEnabled=True)
    world.submit(order("ord-1"))
    world.run_one_batch("SubmissionQueue")  # an ended task has a time to live, and does not count
    before = {output: rows(world, output) for output in TABLES}
    found = operator.reads(*prepare(operator))
    assert_schema("restore-prepare", found)
    assert (found["left"], states(world), concurrency(world)) == ([], {"Disabled"}, 0)
    assert {output: rows(world, output) for output in TABLES} == before
    tables = found["tables"]
    assert isinstance(tables, list)
    assert [one["items"] for one in tables] == [len(before[one["output"]]) for one in tables]
    assert all(one["sourceItems"] == one["items"] for one in tables)

    found = operator.reads("restore", "replace", *YES)
    assert_schema("restore-replace", found)
    assert {output: rows(world, output) for output in TABLES} == before
    table = client.describe_table(TableName=tasks)["Table"]
    assert table["DeletionProtectionEnabled"] is True
    ttl = client.describe_time_to_live(TableName=tasks)["TimeToLiveDescription"]
    assert (ttl["TimeToLiveStatus"], ttl["AttributeName"]) == ("ENABLED", "ExpiresAt")
    assert states(world) == {"Enabled", "Disabled"}, "the scheduler alone reads"
    assert "roundsman reconcile" in str(found["next"])

    found = operator.reads("restore", "start", *YES)
    assert_schema("restore-start", found)
    assert (states(world), concurrency(world)) == ({"Enabled"}, None)
    world.submit(order("ord-2"))
    world.run()
    assert world.task("ord-2").state == "Completed"


def test_the_plan_names_each_table_and_nothing_happens_without_the_name_of_the_stack(
    operator: Operator,
) -> None:
    world = operator.world
    words = prepare(operator)[:-2]
    for more in ((), ("--confirm", "webroundsman"), ("--confirm", "round")):
        result = operator.types(*words, *more)
        assert result.exit_code == USAGE, result.output
        assert all(world.stack.outputs[output] in result.stdout for output in TABLES)
    assert (states(world), concurrency(world)) == ({"Enabled"}, None)
    assert list(Path().iterdir()) == []


class Interrupted(Exception):
    """The command ends here, as if its process was killed."""


@contextmanager
def dies_before_call(number: int) -> Iterator[list[str]]:
    """Let the command die before its call of AWS with this number that changes something."""
    make = BaseClient._make_api_call  # type: ignore[attr-defined]  # every call goes through it
    called: list[str] = []
    reads = ("Describe", "List", "Get", "Scan")

    def counted(client: BaseClient, operation: str, arguments: object) -> object:
        if not operation.startswith(reads):
            if len(called) == number:
                raise Interrupted
            called.append(operation)
        return make(client, operation, arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", counted)
        yield called


@pytest.mark.exhaustive
def test_a_restore_that_dies_before_any_call_goes_on_by_the_same_commands(
    operator: Operator,
) -> None:
    world = operator.world
    world.submit(order("ord-1"))
    world.run()
    before = {output: rows(world, output) for output in TABLES}
    words = prepare(operator)
    for command in (words, ("restore", "replace", *YES), ("restore", "start", *YES)):
        number = 0
        while True:
            with dies_before_call(number) as called:
                result = operator.types(*command)
            if not isinstance(result.exception, Interrupted):
                break
            number += 1  # so each run comes further, and dies somewhere else
            assert number < 60, called
        assert result.exit_code == 0, result.output
        assert {output: rows(world, output) for output in TABLES} == before
    assert (states(world), concurrency(world)) == ({"Enabled"}, None)


@pytest.mark.exhaustive
def test_no_table_is_deleted_before_its_backup_is_available(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = operator.world
    assert operator.types(*prepare(operator)).exit_code == 0
    monkeypatch.setattr(copies, "backup_status", lambda *_: "CREATING")
    monkeypatch.setattr("roundsman_console.acts.table.steps.wait_for_backup", lambda *_: None)
    result = operator.types("restore", "replace", *YES)
    assert result.exit_code != 0
    assert "its backup is not available, it is CREATING" in result.stderr
    assert all(rows(world, output) is not None for output in TABLES)
    monkeypatch.setattr(copies, "backup_status", lambda *_: "DELETED")
    monkeypatch.undo()


def test_no_table_is_deleted_that_somebody_has_written_to(operator: Operator) -> None:
    world = operator.world
    assert operator.types(*prepare(operator)).exit_code == 0
    table = world.stack.outputs["OrdersTableName"]
    world.dynamodb.put_item(TableName=table, Item={"OrderID": {"S": "new"}})
    result = operator.types("restore", "replace", *YES)
    assert result.exit_code != 0
    assert f"{table} is not deleted: it has 1 items, and had 0" in result.stderr
    assert len(rows(world, "OrdersTableName")) == 1


@pytest.mark.exhaustive
def test_a_stack_that_runs_again_is_not_replaced(operator: Operator) -> None:
    assert operator.types(*prepare(operator)).exit_code == 0
    function = operator.world.stack.outputs["SupervisorFunctionName"]
    boto3.client("lambda").delete_function_concurrency(FunctionName=function)
    result = operator.types("restore", "replace", *YES)
    assert result.exit_code != 0
    assert "was started again" in result.stderr


def test_a_restore_of_which_nothing_was_replaced_can_be_ended(operator: Operator) -> None:
    assert operator.types(*prepare(operator)).exit_code == 0
    assert operator.types("restore", "start", *YES).exit_code == 0
    assert (states(operator.world), concurrency(operator.world)) == ({"Enabled"}, None)
    result = operator.types("restore", "replace", *YES)
    assert result.exit_code != 0
    assert "has ended" in result.stderr


def test_a_replacement_comes_after_its_preparation(operator: Operator) -> None:
    result = operator.types("restore", "replace", *YES)
    assert result.exit_code != 0
    assert "first run roundsman restore prepare" in result.stderr


def test_another_restored_number_of_items_is_an_error_with_both_backups(
    operator: Operator,
) -> None:
    assert operator.types(*prepare(operator)).exit_code == 0
    path = Path("roundsman.restore.json")
    record = json.loads(path.read_text())
    record["tables"][0]["source_items"] = 7
    path.write_text(json.dumps(record))
    result = operator.types("restore", "replace", *YES)
    assert result.exit_code != 0
    assert "has 0 items, and" in result.stderr
    assert record["tables"][0]["backup"] in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "either --to"),
        (("--from-table", "TasksTableName=x"), "names a table for each of"),
        (("--to", "yesterday"), "not an instant with a time zone"),
        (("--to", "2027-01-15T08:00:00"), "not an instant with a time zone"),
        (("--to", "9999-12-31T23:59:59-01:00"), "not an instant with a time zone"),
        (("--from-stack", "roundsman"), "takes the ARN"),
        (("--to", "2027-01-15T08:00:00Z", "--from-stack", "arn:a:b:c:d:stack/x"), "either --to"),
    ],
)
def test_an_instant_has_a_zone_and_a_stack_is_named_by_its_arn(
    operator: Operator, words: tuple[str, ...], message: str
) -> None:
    result = operator.types("restore", "prepare", *words, *YES)
    assert result.exit_code == USAGE
    assert message in result.stderr


def test_a_file_of_another_restore_is_not_gone_on_with(operator: Operator) -> None:
    assert operator.types(*prepare(operator)).exit_code == 0
    result = operator.types("restore", "prepare", "--to", "2020-01-15T08:00:00Z", *YES)
    assert result.exit_code == USAGE
    assert "is the record of another operation" in result.stderr
    Path("roundsman.restore.json").write_text("{}")
    result = operator.types("restore", "replace", *YES)
    assert "is no record of a restore" in result.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("by", ["stack", "name"])
def test_the_tables_of_a_deleted_stack_or_of_an_import_are_put_in_place(
    operator: Operator, by: str
) -> None:
    world = operator.world
    old = {}
    for output in TABLES:
        name = world.stack.outputs[output]
        part = output.removesuffix("Name")
        described = world.dynamodb.describe_table(TableName=name)["Table"]
        old[part] = f"roundsman-Engine-OLD-{part}"
        world.dynamodb.create_table(
            TableName=old[part],
            BillingMode="PAY_PER_REQUEST",
            KeySchema=described["KeySchema"],
            AttributeDefinitions=[
                one
                for one in described["AttributeDefinitions"]
                if one["AttributeName"] in {key["AttributeName"] for key in described["KeySchema"]}
            ],
        )
    item = {"OrderID": {"S": "ord-old"}}
    world.dynamodb.put_item(TableName=old["OrdersTable"], Item=item)
    arn = "arn:aws:cloudformation:us-east-1:123456789012:stack/roundsman-Engine-OLD/1"
    make = BaseClient._make_api_call  # type: ignore[attr-defined]  # every call goes through it

    def answered(client: BaseClient, operation: str, arguments: Any) -> object:  # noqa: ANN401
        # ListStackResources of a deleted stack, which AWS answers for 90 days.
        if operation == "ListStackResources" and arguments["StackName"] == arn:
            return {
                "StackResourceSummaries": [
                    {
                        "LogicalResourceId": part,
                        "PhysicalResourceId": name,
                        "ResourceType": "AWS::DynamoDB::Table",
                        "ResourceStatus": "DELETE_SKIPPED",
                    }
                    for part, name in old.items()
                ]
            }
        return make(client, operation, arguments)

    named = [word for part, name in old.items() for word in ("--from-table", f"{part}Name={name}")]
    words = ["--from-stack", arn] if by == "stack" else named
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(BaseClient, "_make_api_call", answered)
        assert operator.types("restore", "prepare", *words, *YES).exit_code == 0
        result = operator.types("restore", "replace", *YES)
    assert result.exit_code == 0, result.output
    assert rows(world, "OrdersTableName") == [item]
    kept = world.dynamodb.scan(TableName=old["OrdersTable"])["Items"]
    assert [dict(one) for one in kept] == [item], "the old tables stay"


def test_a_table_of_the_stack_itself_is_no_source(operator: Operator) -> None:
    named = [
        word
        for output in TABLES
        for word in ("--from-table", f"{output}={operator.world.stack.outputs[output]}")
    ]
    result = operator.types("restore", "prepare", *named, *YES)
    assert result.exit_code != 0
    assert "is the table of roundsman itself" in result.stderr


class TestDeleting:
    """`roundsman delete`."""

    def test_a_stack_and_its_tables_are_deleted_after_their_backup(
        self, operator: Operator
    ) -> None:
        world = operator.world
        world.submit(order("ord-1"))
        world.run()
        assert world.task("ord-1").state == "Completed"
        names = [world.stack.outputs[output] for output in TABLES]
        found = operator.reads("delete", "--tables", *YES)
        assert_schema("delete", found)
        assert found["left"] == []
        left = world.dynamodb.list_tables()["TableNames"]
        assert not set(names) & set(left)
        for one in found["tables"]:  # type: ignore[attr-defined]
            details = world.dynamodb.describe_backup(BackupArn=one["backup"])
            status = details["BackupDescription"]["BackupDetails"]["BackupStatus"]
            assert status == "AVAILABLE"
        stacks = boto3.client("cloudformation").list_stacks()["StackSummaries"]
        assert {one["StackStatus"] for one in stacks if one["StackName"] == "roundsman"} == {
            "DELETE_COMPLETE"
        }
        again = operator.reads("delete", "--tables", *YES)
        assert again["left"] == []

    def test_the_bucket_with_the_payloads_stays_and_is_named_with_what_removes_it(
        self, operator: Operator, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(DeployedStack, "payload_bucket", "shop-payloads")
            result = operator.types("delete", *YES)
        assert result.exit_code == 0, result.output
        assert "The bucket shop-payloads stays.\n" in result.stdout
        for command in commands_for("shop-payloads"):
            assert command in result.stdout.splitlines()
        found = operator.reads("delete", *YES)
        assert found["payloadBucket"] == "shop-payloads", "the stack is gone; the record has it"
        assert str(found["next"]).splitlines()[1:] == left_words("shop-payloads")

    def test_without_a_bucket_no_bucket_is_named(self, operator: Operator) -> None:
        result = operator.types("delete", *YES)
        assert result.exit_code == 0, result.output
        assert "bucket" not in result.stdout
        assert operator.reads("delete", *YES)["payloadBucket"] is None

    def test_open_orders_keep_a_stack(self, operator: Operator) -> None:
        operator.world.submit(order("ord-1"))
        operator.world.run_one_batch("SubmissionQueue")
        result = operator.types("delete", "--tables", *YES)
        assert result.exit_code != 0
        assert "1 orders are open" in result.stderr
        assert states(operator.world) == {"Enabled"}

    def test_nothing_is_deleted_without_the_name_of_the_stack(self, operator: Operator) -> None:
        for more in ((), ("--confirm", "roundsman-prod"), ("--confirm", "round")):
            assert operator.types("delete", "--tables", *more).exit_code == USAGE
        assert states(operator.world) == {"Enabled"}
