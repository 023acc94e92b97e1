"""Letting each function run the version again that was live before the last deployment.

Only the aliases are moved, so this takes seconds. The stack's template still names the newer
versions: the former code has to be deployed afterwards.

What was live is read from CloudFormation's events of the deployments that succeeded: the version
that such a deployment gave up, because its template named it before, or else the one that an
earlier one published. A version that a failed deployment published was never live for longer than
it took to fail.
"""

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from roundsman.aws.errors import aws_errors
from roundsman.aws.outputs import LIVE
from roundsman_console.acts.verb import Asked, Confirmed, Preview, StackVerb
from roundsman_console.aws.resources import NESTED_STACK
from roundsman_console.aws.stack import DeployedStack
from roundsman_console.aws.versions import functions_of, note_left, read_left
from roundsman_console.base.constraints import Count
from roundsman_console.base.counted import counted
from roundsman_console.base.errors import InspectorError
from roundsman_console.base.result import Result

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
_PUBLISHED = ("CREATE_COMPLETE", "UPDATE_COMPLETE")
"""What it says of a version that its template names now."""
_BEGINNINGS = {"UPDATE_IN_PROGRESS": "UPDATE_COMPLETE", "CREATE_IN_PROGRESS": "CREATE_COMPLETE"}
"""The statuses with which a deployment begins, and that with which it has then succeeded."""
_ARN_PARTS = 8  # arn:aws:lambda:REGION:ACCOUNT:function:NAME:VERSION


@dataclass(frozen=True, slots=True)
class VersionChange:
    """A function that went back."""

    name: str
    """As in the template: Payment, Scheduler."""
    function: str
    left: Count
    """The version that ran until now."""
    runs: Count
    """The version that runs now."""


@dataclass(frozen=True, slots=True)
class RollbackResult(Result):
    """The functions that went back to the versions of before the last deployment."""

    stack: str
    went_back: Sequence[VersionChange]
    """Empty if every function runs that version already."""

    def words(self) -> Sequence[str]:
        if not self.went_back:
            return ["Every function runs the version from before the last deployment."]
        functions = counted(len(self.went_back), "function")
        return [f"{functions} of {self.stack} went back. {AFTERWARDS}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RollbackVerb(StackVerb):
    """Run the versions again that ran before the last deployment.

    Moves the alias of each changed function, which takes seconds. Deploy the former code
    afterwards. Tables, queues and settings of event sources stay as they are.

    Example: roundsman rollback --confirm roundsman
    """

    name = "rollback"
    title = "Go back"
    reason = ""
    reason_options = ()
    needs_reason = "none"
    document = RollbackResult
    confirmed = Confirmed.BY_STACK

    def preview(self, stack: DeployedStack) -> Preview | RollbackResult:
        changes = find_changes(stack)
        result = RollbackResult(stack.name, changes)
        if not changes:
            return result

        def go(_asked: Asked) -> RollbackResult:
            go_back(stack, changes)
            return result

        functions = counted(len(changes), "function")
        return Preview(
            "These functions would go back.",
            go,
            version=str(changes),
            question=f"Go back with {functions} of {stack.name}?",
            notes=[f"{one.name}: version {one.left}, before {one.runs}" for one in changes],
        )


@dataclass(frozen=True, slots=True)
class PastDeployment:
    """A deployment of the whole stack that succeeded."""

    began: datetime
    until: datetime | None
    """When the next deployment of any outcome began; None for the newest."""
    creation: bool = False


@dataclass(frozen=True, slots=True)
class DeployedVersions:
    """What one deployment did with the versions of functions: their numbers, by function."""

    published: Mapping[str, Set[int]]
    given_up: Mapping[str, Set[int]]


def find_changes(stack: DeployedStack) -> list[VersionChange]:
    """Return the functions that run another version than before the stack's last deployment.

    Deployments that failed do not count, and neither do versions that were left by going back
    before. They are in the order in which their aliases are to be moved. Raises InspectorError if
    the stack is being deployed, was deployed only once, or if a former version is gone.
    """
    client: CloudFormationClient = boto3.client("cloudformation")
    with aws_errors("reading the deployments of the stack"):
        deployments = succeeded(_events(client, stack.name, None))
    if not deployments or deployments[0].creation:
        raise InspectorError(
            f"The stack {stack.name} was deployed once, or last more than 90 days ago: there is "
            "nothing to go back to."
        )
    with aws_errors("reading the versions of the functions"):
        history = _History(client, stack.name, deployments)
        last = history.at(0)
        found = [
            _change(stack, history, name, function)
            for name, function in functions_of(stack.outputs).items()
            if function in last.published or function in last.given_up
        ]
    changes = [each for each in found if each is not None]
    return sorted(changes, key=lambda change: change.name != _FIRST)


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
            note_left(client, arn, read_left(client, arn) | {change.left})
            client.update_alias(
                FunctionName=change.function, Name=LIVE, FunctionVersion=str(change.runs)
            )


def succeeded(events: Sequence["StackEventTypeDef"]) -> list[PastDeployment]:
    """Return the deployments of a stack that succeeded, the newest first.

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
    found: list[PastDeployment] = []
    until: datetime | None = None
    outcome = ""
    for at, status in own:
        if status in _BEGINNINGS:
            if outcome == _BEGINNINGS[status]:
                found.append(PastDeployment(at, until, creation=status == "CREATE_IN_PROGRESS"))
            until, outcome = at, ""
        elif status.endswith("_COMPLETE"):
            outcome = status
    return found


def versions_in(events: Sequence["StackEventTypeDef"]) -> DeployedVersions:
    """Return the versions that the events of one deployment name."""
    published: dict[str, set[int]] = {}
    given_up: dict[str, set[int]] = {}
    for event in events:
        status = event.get("ResourceStatus", "")
        parts = event.get("PhysicalResourceId", "").split(":")
        is_version = event.get("ResourceType") == _VERSION and len(parts) == _ARN_PARTS
        if is_version and parts[7].isdecimal():
            if status in _GIVEN_UP:
                given_up.setdefault(parts[6], set()).add(int(parts[7]))
            elif status in _PUBLISHED:
                published.setdefault(parts[6], set()).add(int(parts[7]))
    return DeployedVersions(published, given_up)


@dataclass
class _History:
    """What the deployments of a stack did, each read once, when it is asked for."""

    client: "CloudFormationClient"
    stack: str
    deployments: Sequence[PastDeployment]
    """The newest first."""
    known: dict[int, DeployedVersions] = field(default_factory=dict)
    stacks: list[str] = field(default_factory=list)

    def at(self, number: int) -> DeployedVersions:
        """Return what a deployment did, in the stack and in those nested in it."""
        if number not in self.known:
            self.stacks = self.stacks or list(_stacks(self.client, self.stack))
            deployment = self.deployments[number]
            events = [
                event
                for stack in self.stacks
                for event in _events(self.client, stack, deployment.began)
                if deployment.until is None or event["Timestamp"] < deployment.until
            ]
            self.known[number] = versions_in(events)
        return self.known[number]

    def former(self, function: str) -> Iterator[Set[int]]:
        """Yield the versions of a function that were live before the last deployment, newest first.

        What a deployment gave up was live before it; what an earlier one published was live, too.
        """
        yield self.at(0).given_up.get(function, set())
        for number in range(1, len(self.deployments)):
            yield self.at(number).published.get(function, set())
            yield self.at(number).given_up.get(function, set())


def _change(
    stack: DeployedStack, history: _History, name: str, function: str
) -> VersionChange | None:
    """The way back of a function; None if it is there already, or was not there before."""
    alias = stack.lambda_client.get_alias(FunctionName=function, Name=LIVE)
    running, left = alias["FunctionVersion"], read_left(stack.lambda_client, alias["AliasArn"])
    for versions in history.former(function):
        former = [version for version in versions if version not in left]
        if former:
            if running == str(max(former)):
                return None
            _check_exists(stack, function, max(former))
            return VersionChange(name, function, int(running), max(former))
    return None


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
