"""`roundsman rollback`: the functions run the versions that were live before the last deployment.

The versions are Lambda's on moto. The events of deployments, which moto does not have, are as AWS's
page "StackEvent" and the statuses of its guide say: an update that succeeds gives up the versions
that the template named before, one that fails gives up its own.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from roundsman.aws.outputs import LIVE
from roundsman_console.acts import rollback
from roundsman_console.acts.rollback import DeployedVersions, succeeded, versions_in
from roundsman_console.aws.stack import find_stack
from roundsman_console.aws.versions import read_versions
from roundsman_console.base.errors import USAGE, InspectorError
from tests.console.operators import Operator
from tests.console.schemas import assert_schema

FUNCTIONS = ("Submission", "Scheduler", "Supervisor", "Inventory", "Payment", "Shipping", "Mail")
ROOT, NESTED = (
    "arn:aws:cloudformation:x:1:stack/roundsman/1",
    "arn:aws:cloudformation:x:1:stack/n/2",
)


@dataclass
class Deployments:
    """Deployments of the operator's stack, with the events that CloudFormation has of them."""

    operator: Operator
    events: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {ROOT: [], NESTED: []})
    """Of the stack and of one nested in it, the newest first."""
    at: datetime = datetime(2026, 11, 23, tzinfo=UTC)
    count: int = 0
    says_what_it_gives_up: bool = True

    def function(self, name: str) -> str:
        return self.operator.world.stack.outputs[f"{name}FunctionName"]

    def happened(self, stack: str, physical: str, status: str, kind: str = "") -> None:
        self.at += timedelta(minutes=1)
        event = {
            "StackId": stack,
            "PhysicalResourceId": physical,
            "ResourceType": kind or "AWS::CloudFormation::Stack",
            "ResourceStatus": status,
            "Timestamp": self.at,
        }
        self.events[stack].insert(0, event)

    def publish(self, name: str) -> str:
        self.count += 1
        client = boto3.client("lambda")
        code = f"{name}-{self.count}".encode()
        client.update_function_code(FunctionName=self.function(name), ZipFile=code)
        version = client.publish_version(FunctionName=self.function(name))["Version"]
        self.of_version(name, version, "CREATE_COMPLETE")
        return version

    def of_version(self, name: str, version: str, status: str) -> None:
        arn = f"arn:aws:lambda:us-east-1:123456789012:function:{self.function(name)}:{version}"
        self.happened(NESTED, arn, status, "AWS::Lambda::Version")

    def give_up(self, name: str, version: str) -> None:
        if self.says_what_it_gives_up:
            self.of_version(name, version, "DELETE_SKIPPED")

    def created(self) -> None:
        self.happened(ROOT, ROOT, "CREATE_IN_PROGRESS")
        for name in FUNCTIONS:
            move(self.function(name), self.publish(name))
        self.happened(ROOT, ROOT, "CREATE_COMPLETE")

    def succeeds(self, **named: str) -> None:
        """A deployment that succeeds; the version that the template named for each function."""
        self.happened(ROOT, ROOT, "UPDATE_IN_PROGRESS")
        for name in named:
            move(self.function(name), self.publish(name))
        self.happened(ROOT, ROOT, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS")
        for name, version in named.items():
            self.give_up(name, version)
        self.happened(NESTED, NESTED, "UPDATE_COMPLETE")
        self.happened(ROOT, ROOT, "UPDATE_COMPLETE")

    def fails(self, *names: str) -> None:
        """A deployment that publishes versions of these functions, and is taken back."""
        self.happened(ROOT, ROOT, "UPDATE_IN_PROGRESS")
        published = {name: self.publish(name) for name in names}
        self.happened(ROOT, ROOT, "UPDATE_ROLLBACK_IN_PROGRESS")
        self.happened(ROOT, ROOT, "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS")
        for name, version in published.items():
            self.give_up(name, version)
        self.happened(ROOT, ROOT, "UPDATE_ROLLBACK_COMPLETE")


def move(function: str, version: str) -> None:
    boto3.client("lambda").update_alias(FunctionName=function, Name=LIVE, FunctionVersion=version)


def running(operator: Operator) -> dict[str, str]:
    client = boto3.client("lambda")
    return {
        name: client.get_alias(
            FunctionName=operator.world.stack.outputs[f"{name}FunctionName"], Name=LIVE
        )["FunctionVersion"]
        for name in FUNCTIONS
    }


@pytest.fixture
def deployments(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> Deployments:
    """A stack that was created; its functions run version 1."""
    found = Deployments(operator)

    class CloudFormation:
        def get_paginator(self, name: str) -> Any:  # noqa: ANN401  # a paginator of boto3
            return Pages(name)

    class Pages:
        def __init__(self, name: str) -> None:
            self.name = name

        def paginate(self, StackName: str) -> list[dict[str, Any]]:
            stack = ROOT if StackName == "roundsman" else StackName
            if self.name == "describe_stack_events":
                events = found.events[stack]
                return [{"StackEvents": events[:2]}, {"StackEvents": events[2:]}]
            assert self.name == "list_stack_resources"
            nested = {"ResourceType": "AWS::CloudFormation::Stack", "PhysicalResourceId": NESTED}
            return [{"StackResourceSummaries": [nested] if stack == ROOT else []}]

    class Boto3:
        def client(self, name: str) -> CloudFormation:
            assert name == "cloudformation"
            return CloudFormation()

    monkeypatch.setattr(rollback, "boto3", Boto3())
    found.created()
    return found


def test_the_functions_that_the_deployment_changed_go_back_and_no_others(
    operator: Operator, deployments: Deployments
) -> None:
    deployments.succeeds(Payment="1", Submission="1")
    before = running(operator)
    assert (before["Payment"], before["Mail"]) == ("2", "1")
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[:2] == [
        "Submission: version 2, before 1",
        "Payment: version 2, before 1",
    ]
    assert "2 functions of roundsman went back" in result.stdout
    assert set(running(operator).values()) == {"1"}
    assert "Every function runs" in operator.types("rollback", "--confirm", "roundsman").stdout


@pytest.mark.parametrize("says_what_it_gives_up", [True, False])
def test_a_version_of_a_deployment_that_failed_is_never_gone_back_to(
    operator: Operator, deployments: Deployments, says_what_it_gives_up: bool
) -> None:
    deployments.says_what_it_gives_up = says_what_it_gives_up
    deployments.fails("Payment", "Mail")  # they publish version 2, which is never live
    deployments.succeeds(Payment="1")
    assert running(operator)["Payment"] == "3"
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.stdout.splitlines()[0] == "Payment: version 3, before 1"
    assert running(operator)["Payment"] == "1"


def test_a_deployment_that_failed_last_does_not_count_as_the_last_one(
    operator: Operator, deployments: Deployments
) -> None:
    deployments.succeeds(Payment="1")
    deployments.fails("Payment", "Mail")
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.stdout.splitlines()[0] == "Payment: version 2, before 1"
    assert running(operator)["Mail"] == "1"


@pytest.mark.parametrize("says_what_it_gives_up", [True, False])
def test_nobody_goes_back_to_a_version_that_somebody_left(
    operator: Operator, deployments: Deployments, says_what_it_gives_up: bool
) -> None:
    deployments.says_what_it_gives_up = says_what_it_gives_up
    deployments.succeeds(Payment="1")  # version 2 is wrong
    assert operator.types("rollback", "--confirm", "roundsman").exit_code == 0
    deployments.succeeds(Payment="2")  # the former code again, as version 3
    assert running(operator)["Payment"] == "3"
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.stdout.splitlines()[0] == "Payment: version 3, before 1"


def test_a_function_that_is_new_stays(operator: Operator, deployments: Deployments) -> None:
    for stack in deployments.events.values():  # Mail was not there before
        stack[:] = [one for one in stack if deployments.function("Mail") not in str(one)]
    deployments.happened(ROOT, ROOT, "UPDATE_IN_PROGRESS")
    move(deployments.function("Mail"), deployments.publish("Mail"))
    deployments.happened(ROOT, ROOT, "UPDATE_COMPLETE")
    assert operator.types("rollback", "--confirm", "roundsman").exit_code == 0
    assert running(operator)["Mail"] == "2"


def test_nothing_goes_back_without_the_name_of_the_stack(
    operator: Operator, deployments: Deployments
) -> None:
    deployments.succeeds(Payment="1")
    result = operator.types("rollback")
    assert result.exit_code != 0
    assert "To confirm, add: --confirm roundsman" in result.stderr
    for words in (("--json",), ("--confirm", "webroundsman"), ("--confirm", "round")):
        assert operator.types("rollback", *words).exit_code == USAGE
    assert running(operator)["Payment"] == "2"


def test_what_went_back_is_printed_as_json(operator: Operator, deployments: Deployments) -> None:
    deployments.succeeds(Payment="1")
    found = operator.reads("rollback", "--confirm", "roundsman")
    assert_schema("rollback", found)
    went = {"name": "Payment", "function": deployments.function("Payment"), "left": 2, "runs": 1}
    assert found == {"stack": "roundsman", "wentBack": [went]}
    assert operator.reads("rollback", "--confirm", "roundsman")["wentBack"] == []


@pytest.mark.usefixtures("deployments")
def test_a_stack_that_was_deployed_once_has_nothing_to_go_back_to(operator: Operator) -> None:
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.exit_code != 0
    assert "was deployed once" in result.stderr


def test_a_stack_that_is_being_deployed_waits(operator: Operator, deployments: Deployments) -> None:
    deployments.succeeds(Payment="1")
    deployments.happened(ROOT, ROOT, "UPDATE_IN_PROGRESS")
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.exit_code != 0
    assert "Wait until the deployment has ended" in result.stderr
    assert running(operator)["Payment"] == "2"


def test_a_former_version_that_was_deleted_is_named(
    operator: Operator, deployments: Deployments
) -> None:
    deployments.succeeds(Payment="1")
    function = deployments.function("Payment")
    boto3.client("lambda").delete_function(FunctionName=function, Qualifier="1")
    result = operator.types("rollback", "--confirm", "roundsman")
    assert result.exit_code != 0
    assert f"Version 1 of {function}, which was live before, was deleted" in result.stderr


def test_what_an_interrupt_left_goes_back_by_a_second_time(
    deployments: Deployments, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployments.succeeds(Payment="1", Submission="1")
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


def test_a_version_of_a_failed_deployment_is_an_orphan_and_one_that_was_left_is_not(
    operator: Operator, deployments: Deployments
) -> None:
    client = boto3.client("lambda")
    payment = deployments.function("Payment")
    assert read_versions(client, "Payment", payment).orphan is None
    deployments.fails("Payment")
    assert read_versions(client, "Payment", payment).orphan == 2
    deployments.succeeds(Payment="1")
    assert read_versions(client, "Payment", payment).orphan is None
    operator.types("rollback", "--confirm", "roundsman")
    assert read_versions(client, "Payment", payment).running == 1
    assert read_versions(client, "Payment", payment).orphan is None


class TestEvents:
    """What the events of CloudFormation say, without AWS."""

    def events(self, *statuses: str) -> list[Any]:
        at = datetime(2026, 11, 23, tzinfo=UTC)
        found = [
            {
                "StackId": ROOT,
                "PhysicalResourceId": ROOT,
                "ResourceStatus": status,
                "Timestamp": at + timedelta(hours=hour),
            }
            for hour, status in enumerate(statuses)
        ]
        return found[::-1]

    def test_only_deployments_that_succeeded_count_and_each_lasts_until_the_next_of_any_outcome(
        self,
    ) -> None:
        events = self.events(
            *("CREATE_IN_PROGRESS", "CREATE_COMPLETE"),
            *("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"),
            *("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"),
            *("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE"),
        )
        hours = [
            (one.began.hour, one.until.hour if one.until else None) for one in succeeded(events)
        ]
        assert hours == [(7, None), (2, 4), (0, 2)]
        assert [one.creation for one in succeeded(events)] == [False, False, True]

    def test_events_of_resources_are_no_deployments(self) -> None:
        [event] = self.events("UPDATE_COMPLETE")
        event["PhysicalResourceId"] = NESTED
        assert succeeded([event]) == []

    @pytest.mark.parametrize("status", ["UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"])
    def test_a_deployment_under_way_is_an_error(self, status: str) -> None:
        with pytest.raises(InspectorError, match=status):
            succeeded(self.events("UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", status))

    def test_versions_are_published_or_given_up(self) -> None:
        arn = "arn:aws:lambda:x:1:function:pay:7"
        kind = "AWS::Lambda::Version"

        def one(**more: str) -> Any:  # noqa: ANN401  # an event
            whole = {
                "ResourceType": kind,
                "ResourceStatus": "DELETE_SKIPPED",
                "PhysicalResourceId": arn,
            }
            return {**whole, **more}

        assert versions_in([one()]) == DeployedVersions({}, {"pay": {7}})
        for status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            found = versions_in([one(ResourceStatus=status)])
            assert found == DeployedVersions({"pay": {7}}, {})
        for more in (
            {"ResourceStatus": "CREATE_IN_PROGRESS"},
            {"ResourceType": "AWS::Lambda::LayerVersion"},
            {"PhysicalResourceId": ""},
        ):
            assert versions_in([one(**more)]) == DeployedVersions({}, {})
