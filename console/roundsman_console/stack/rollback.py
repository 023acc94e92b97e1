"""Letting each function run the version again that was live before the last deployment.

Only the aliases are moved, so this takes seconds. The stack's template still names the newer
versions: the former code has to be deployed afterwards.

What was live is what a deployment of the whole stack left behind when it succeeded: CloudFormation
then gives up the version that its template named before, and its events name it. A deployment that
failed gives up its own version, which has never been live for longer than it took to fail.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from roundsman.aws.errors import aws_errors
from roundsman.aws.outputs import LIVE
from roundsman_console.errors import InspectorError
from roundsman_console.stack.resources import NESTED_STACK
from roundsman_console.stack.stack import DeployedStack
from roundsman_console.stack.versions import functions_of, note_left, read_left

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import StackEventTypeDef

AFTERWARDS = (
    "The stack's template still names the newer versions: deploy the former code now, before any "
    "other change."
)
"""What is left to do when the functions have gone back, for people."""
_FIRST = "Submission"
"""The function whose alias is moved first: it starts no more orders of the newer workflows."""
_VERSION = "AWS::Lambda::Version"
_GIVEN_UP = ("DELETE_SKIPPED", "DELETE_COMPLETE")
"""What CloudFormation says of a version that its template no longer names; the first one stays."""
_ARN_PARTS = 8  # arn:aws:lambda:REGION:ACCOUNT:function:NAME:VERSION


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A function that runs another version than before the last deployment."""

    name: str
    """As in the template: `Payment`, `Scheduler`."""
    function: str
    """The physical name."""
    running: str
    """The number of the version that the alias names now."""
    former: str
    """The number of the version that was live before."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment of the whole stack that succeeded."""

    began: datetime
    until: datetime | None
    """When the next deployment of any outcome began; None for the newest."""


def find_changes(stack: DeployedStack) -> list[VersionChange]:
    """Return the functions that run another version than before the stack's last deployment.

    Deployments that failed do not count, and neither do versions that were left by going back
    before. They are in the order in which their aliases are to be moved. Raises InspectorError if
    the stack is being deployed, was deployed only once, or if a former version is gone.
    """
    client: CloudFormationClient = boto3.client("cloudformation")
    with aws_errors("reading the deployments of the stack"):
        deployments = succeeded(_events(client, stack.name, None))
    if not deployments:
        raise InspectorError(
            f"The stack {stack.name} was deployed once, or last more than 90 days ago: there is "
            "nothing to go back to."
        )
    functions = functions_of(stack.outputs)
    names = {function: name for name, function in functions.items()}
    with aws_errors("reading the versions of the functions"):
        found = []
        for function, versions in _given_up(client, stack, deployments[0]).items():
            if function in names:
                change = _change(client, stack, deployments, names[function], function, versions)
                found += [change] if change is not None else []
    return sorted(found, key=lambda change: (change.name != _FIRST, change.name))


def go_back(stack: DeployedStack, changes: Sequence[VersionChange]) -> None:
    """Move the alias of each function to its former version.

    May be repeated: `find_changes` then returns those that are left. Each version that is left is
    kept in a tag of its function, so that nobody goes back to it later. Raises InspectorError if
    Lambda refuses.
    """
    client = stack.lambda_client
    for change in changes:
        with aws_errors(f"moving the alias of {change.function}"):
            arn = client.get_function_configuration(FunctionName=change.function)["FunctionArn"]
            note_left(client, arn, read_left(client, arn) | {int(change.running)})
            client.update_alias(
                FunctionName=change.function, Name=LIVE, FunctionVersion=change.former
            )


def succeeded(events: Sequence["StackEventTypeDef"]) -> list[Deployment]:
    """Return the updates of a stack that succeeded, the newest first.

    `events` are those of the stack, the newest first. Raises InspectorError if a deployment is
    under way.
    """
    own = [
        (event["Timestamp"], event.get("ResourceStatus", ""))
        for event in events
        if event.get("PhysicalResourceId") == event["StackId"]
    ]
    if own and own[0][1].endswith("_IN_PROGRESS"):
        raise InspectorError(f"The stack is {own[0][1]}. Wait until the deployment has ended.")
    found: list[Deployment] = []
    until: datetime | None = None
    complete = False
    for at, status in own:
        if status in ("UPDATE_IN_PROGRESS", "IMPORT_IN_PROGRESS", "CREATE_IN_PROGRESS"):
            if complete and status == "UPDATE_IN_PROGRESS":
                found.append(Deployment(at, until))
            until, complete = at, False
        elif status == "UPDATE_COMPLETE":
            complete = True
    return found


def given_up(events: Sequence["StackEventTypeDef"]) -> dict[str, set[int]]:
    """Return the versions that CloudFormation gave up, by function.

    `events` are those of one deployment in one stack.
    """
    found: dict[str, set[int]] = {}
    for event in events:
        status = event.get("ResourceStatus", "")
        parts = event.get("PhysicalResourceId", "").split(":")
        if (
            event.get("ResourceType") == _VERSION
            and status in _GIVEN_UP
            and len(parts) == _ARN_PARTS
            and parts[7].isdecimal()
        ):
            found.setdefault(parts[6], set()).add(int(parts[7]))
    return found


def _change(
    client: "CloudFormationClient",
    stack: DeployedStack,
    deployments: Sequence[Deployment],
    name: str,
    function: str,
    versions: Set[int],
) -> VersionChange | None:
    """The way back of a function whose versions the last deployment gave up; None if it is there.

    A version that somebody left before is passed over for the one before it.
    """
    alias = stack.lambda_client.get_alias(FunctionName=function, Name=LIVE)
    running, left = alias["FunctionVersion"], read_left(stack.lambda_client, alias["AliasArn"])
    for number, deployment in enumerate(deployments):
        if number > 0:
            versions = _given_up(client, stack, deployment).get(function, set())
        former = [version for version in versions if version not in left]
        if former:
            _check_exists(stack, function, max(former))
            same = running == str(max(former))
            return None if same else VersionChange(name, function, running, str(max(former)))
    raise InspectorError(f"{function} has no version that somebody has not left: deploy the code.")


def _check_exists(stack: DeployedStack, function: str, version: int) -> None:
    try:
        stack.lambda_client.get_function_configuration(
            FunctionName=function, Qualifier=str(version)
        )
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") != "ResourceNotFoundException":
            raise
        raise InspectorError(
            f"Version {version} of {function}, which was live before, was deleted: deploy the "
            "former code."
        ) from error


def _given_up(
    client: "CloudFormationClient", stack: DeployedStack, deployment: Deployment
) -> dict[str, set[int]]:
    """The versions that one deployment gave up, in the stack and in those nested in it."""
    found: dict[str, set[int]] = {}
    for each in _stacks(client, stack.name):
        events = [
            event
            for event in _events(client, each, deployment.began)
            if deployment.until is None or event["Timestamp"] < deployment.until
        ]
        for function, versions in given_up(events).items():
            found.setdefault(function, set()).update(versions)
    return found


def _stacks(client: "CloudFormationClient", stack: str) -> Iterator[str]:
    """Yield the stack and the ARNs of those nested in it."""
    yield stack
    for page in client.get_paginator("list_stack_resources").paginate(StackName=stack):
        for one in page["StackResourceSummaries"]:
            if one["ResourceType"] == NESTED_STACK and one.get("PhysicalResourceId"):
                yield from _stacks(client, one["PhysicalResourceId"])


def _events(
    client: "CloudFormationClient", stack: str, since: datetime | None
) -> list["StackEventTypeDef"]:
    """The events of a stack, the newest first; CloudFormation keeps them for 90 days."""
    found: list[StackEventTypeDef] = []
    for page in client.get_paginator("describe_stack_events").paginate(StackName=stack):
        for event in page["StackEvents"]:
            if since is not None and event["Timestamp"] < since:
                return found
            found.append(event)
    return found
