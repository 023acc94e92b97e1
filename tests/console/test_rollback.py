"""`roundsman rollback`: the functions run the versions from before the last deployment."""

from datetime import UTC, datetime, timedelta

import boto3
import pytest
from botocore.exceptions import ClientError

from roundsman.aws.outputs import LIVE
from roundsman_console.stack import rollback
from roundsman_console.stack.stack import find_stack
from tests.console.operators import Operator

FUNCTIONS = ("Submission", "Scheduler", "Supervisor", "Inventory", "Payment", "Shipping", "Mail")


def publish(operator: Operator, *names: str) -> None:
    """Publish a version of these functions, with changed code, and let the aliases name it."""
    client = boto3.client("lambda")
    for name in names:
        function = operator.world.stack.outputs[f"{name}FunctionName"]
        client.update_function_code(FunctionName=function, ZipFile=name.encode())
        version = client.publish_version(FunctionName=function)["Version"]
        client.update_alias(FunctionName=function, Name=LIVE, FunctionVersion=version)


def running(operator: Operator) -> dict[str, str]:
    client = boto3.client("lambda")
    return {
        name: client.get_alias(
            FunctionName=operator.world.stack.outputs[f"{name}FunctionName"], Name=LIVE
        )["FunctionVersion"]
        for name in FUNCTIONS
    }


@pytest.fixture
def deployed_at(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> datetime:
    """Two deployments: of all functions, and an hour later of two."""
    publish(operator, *FUNCTIONS)
    operator.world.clock.now += 3_600_000
    at = datetime.fromtimestamp(operator.world.clock.now / 1000, tz=UTC) - timedelta(seconds=1)
    monkeypatch.setattr(rollback, "_last_deployment", lambda _: at)
    publish(operator, "Payment", "Submission")
    return at


@pytest.mark.usefixtures("deployed_at")
def test_the_functions_that_the_deployment_changed_go_back_and_no_others(
    operator: Operator,
) -> None:
    before = running(operator)
    assert (before["Payment"], before["Mail"]) == ("2", "1")
    result = operator.types("rollback", "--yes")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:2] == [
        "Submission: version 2, before 1",
        "Payment: version 2, before 1",
    ]
    assert "2 functions of roundsman went back" in result.stdout
    assert set(running(operator).values()) == {"1"}
    assert "Every function runs" in operator.types("rollback", "--yes").stdout


@pytest.mark.usefixtures("deployed_at")
def test_nothing_goes_back_without_a_yes(operator: Operator) -> None:
    result = operator.types("rollback")
    assert result.exit_code != 0
    assert "add --yes" in result.stderr
    assert running(operator)["Payment"] == "2"


def test_a_stack_that_was_deployed_once_has_nothing_to_go_back_to(operator: Operator) -> None:
    publish(operator, *FUNCTIONS)
    result = operator.types("rollback", "--yes")
    assert result.exit_code != 0
    assert "was deployed once" in result.stderr


def test_the_last_deployment_is_the_newest_update_of_the_stack_itself(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, nested = "arn:aws:cloudformation:::stack/roundsman/1", "arn:nested"
    hour = datetime(2026, 11, 23, tzinfo=UTC)

    def event(physical: str, status: str, hours: int) -> dict[str, object]:
        at = hour + timedelta(hours=hours)
        return {
            "StackId": root,
            "PhysicalResourceId": physical,
            "ResourceStatus": status,
            "Timestamp": at,
        }

    events = [
        event(root, "UPDATE_COMPLETE", 5),
        event(nested, "UPDATE_IN_PROGRESS", 4),
        event(root, "UPDATE_IN_PROGRESS", 3),
        event(root, "UPDATE_IN_PROGRESS", 2),
        event(root, "CREATE_IN_PROGRESS", 1),
    ]
    stack = find_stack(None)

    class Client:
        def get_paginator(self, name: str) -> "Client":
            assert name == "describe_stack_events"
            return self

        def paginate(self, **_: object) -> list[dict[str, object]]:
            return [{"StackEvents": events[:2]}, {"StackEvents": events[2:]}]

    monkeypatch.setattr(boto3, "client", lambda _: Client())
    assert rollback._last_deployment(stack) == hour + timedelta(hours=3)


def test_a_function_that_is_new_has_nothing_to_go_back_to(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    at = datetime.fromtimestamp(operator.world.clock.now / 1000, tz=UTC) - timedelta(seconds=1)
    monkeypatch.setattr(rollback, "_last_deployment", lambda _: at)
    publish(operator, *FUNCTIONS)
    result = operator.types("rollback", "--yes")
    assert result.exit_code != 0
    assert "had no version before the last deployment" in result.stderr


@pytest.mark.usefixtures("deployed_at")
def test_what_an_interrupt_left_goes_back_by_a_second_time(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack = find_stack(None)
    changes = rollback.find_changes(stack)
    rollback.go_back(stack, changes[:1])
    assert (running(operator)["Submission"], running(operator)["Payment"]) == ("1", "2")

    def refuse(**_: object) -> None:
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "UpdateAlias")

    with monkeypatch.context() as patch:
        patch.setattr(stack.lambda_client, "update_alias", refuse)
        with pytest.raises(Exception, match="AccessDenied"):
            rollback.go_back(stack, rollback.find_changes(stack))
    assert [change.name for change in rollback.find_changes(stack)] == ["Payment"]
