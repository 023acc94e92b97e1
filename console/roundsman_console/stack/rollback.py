"""Letting each function run the version again that it ran before the last deployment.

Only the aliases are moved, so this takes seconds. The stack's template still names the newer
versions: the former code has to be deployed afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

import boto3

from roundsman.aws.errors import aws_errors
from roundsman.aws.outputs import LIVE
from roundsman_console.errors import InspectorError
from roundsman_console.stack.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

AFTERWARDS = (
    "The stack's template still names the newer versions: deploy the former code now, before any "
    "other change."
)
"""What is left to do when the functions have gone back, for people."""
_SUFFIX = "FunctionName"
_FIRST = "Submission"
"""The function whose alias is moved first: it starts no more orders of the newer workflows."""


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
    """The number of the version that it named before the last deployment."""


def find_changes(stack: DeployedStack) -> list[VersionChange]:
    """Return the functions that run another version than before the stack's last deployment.

    They are in the order in which their aliases are to be moved. Raises InspectorError if the stack
    was deployed only once, or if a function had no version before.
    """
    with aws_errors("reading the versions of the functions"):
        deployed_at = _last_deployment(stack)
        found = [
            _change(stack, output.removesuffix(_SUFFIX), function, deployed_at)
            for output, function in sorted(stack.outputs.items())
            if output.endswith(_SUFFIX)
        ]
    changes = [each for each in found if each.running != each.former]
    return sorted(changes, key=lambda change: change.name != _FIRST)


def go_back(stack: DeployedStack, changes: Sequence[VersionChange]) -> None:
    """Move the alias of each function to its former version.

    May be repeated: `find_changes` then returns those that are left. Raises InspectorError if
    Lambda refuses.
    """
    for change in changes:
        with aws_errors(f"moving the alias of {change.function}"):
            stack.lambda_client.update_alias(
                FunctionName=change.function, Name=LIVE, FunctionVersion=change.former
            )


def _last_deployment(stack: DeployedStack) -> datetime:
    """When the last update of the stack began; CloudFormation keeps its events for 90 days."""
    client: CloudFormationClient = boto3.client("cloudformation")
    pages = client.get_paginator("describe_stack_events").paginate(StackName=stack.name)
    for event in (each for page in pages for each in page["StackEvents"]):  # the newest is first
        of_the_stack = event.get("PhysicalResourceId") == event["StackId"]
        if of_the_stack and event.get("ResourceStatus") == "UPDATE_IN_PROGRESS":
            return event["Timestamp"]
    raise InspectorError(
        f"The stack {stack.name} was deployed once, or last more than 90 days ago: there is "
        "nothing to go back to."
    )


def _change(stack: DeployedStack, name: str, function: str, deployed_at: datetime) -> VersionChange:
    client = stack.lambda_client
    running = client.get_alias(FunctionName=function, Name=LIVE)["FunctionVersion"]
    pages = client.get_paginator("list_versions_by_function").paginate(FunctionName=function)
    former = [
        int(version["Version"])
        for page in pages
        for version in page["Versions"]
        if version["Version"].isdecimal()
        if datetime.fromisoformat(version["LastModified"]) < deployed_at
    ]
    if not former:
        raise InspectorError(f"{function} had no version before the last deployment.")
    return VersionChange(name, function, running, str(max(former)))
