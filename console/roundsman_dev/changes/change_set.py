"""Makes a change set of a stack with its nested stacks, reads it, and carries it out.

The shapes are those of the pages CreateChangeSet, DescribeChangeSet, ResourceChange and
ExecuteChangeSet of AWS's reference of CloudFormation.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import WaiterError

from roundsman_console.aws.deployment_failure import first_failure
from roundsman_console.aws.resources import ENGINE, NESTED_STACK
from roundsman_console.base.errors import InspectorError, NotFound
from roundsman_dev.changes.compare import VERSIONS, Action, Changes, ResourceChange, stable_name
from roundsman_dev.changes.live import LiveStack, parsed_template
from roundsman_dev.changes.package import read_object
from roundsman_dev.changes.whole import StackTemplate, nested_urls

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_cloudformation.type_defs import (
        CreateChangeSetInputTypeDef,
        DescribeChangeSetOutputTypeDef,
        ParameterTypeDef,
        ResourceChangeTypeDef,
        WaiterConfigTypeDef,
    )
    from mypy_boto3_s3 import S3Client

_POLLS: "WaiterConfigTypeDef" = {"Delay": 5, "MaxAttempts": 240}  # every 5 s for 20 minutes
_DEPLOYS: "WaiterConfigTypeDef" = {"Delay": 10, "MaxAttempts": 720}  # every 10 s for 2 hours
_NOTHING_CHANGES = ("didn't contain changes", "No updates are to be performed")
_ACTIONS = {
    "Add": Action.ADD,
    "Import": Action.ADD,
    "Modify": Action.CHANGE,
    "SyncWithActual": Action.CHANGE,
    "Remove": Action.REMOVE,
    "Dynamic": Action.MAY_REPLACE,  # AWS cannot say what it will do
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedDeployment:
    """What a change set is made of."""

    stack: str
    url: str
    """The address of the template."""
    parameters: Mapping[str, str | None]
    """None for a value that the stack has and keeps."""
    tags: Mapping[str, str]
    role: str | None = None
    """The role with which CloudFormation deploys; None for that of the stack, or of the caller."""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """A change set that can be carried out."""

    arn: str
    nested: bool
    """Whether AWS looked into the nested stacks."""
    refused: str = ""
    """Why AWS did not; empty if it did."""


def make_change_set(
    client: "CloudFormationClient", deployment: PlannedDeployment, live: LiveStack, name: str
) -> ChangeSet | None:
    """Make a change set of the stack; None if nothing would change.

    If AWS refuses to look into the nested stacks, the change set is made of the root alone, and
    carries out the same. Raises InspectorError with AWS's reason if that fails too, and the errors
    of boto3.
    """
    arn, refused = _made(client, deployment, live, name, nested=True)
    if not refused:
        return ChangeSet(arn, nested=True)
    client.delete_change_set(ChangeSetName=arn)
    if _says_nothing_changes(refused):
        return None
    arn, reasons = _made(client, deployment, live, f"{name}-root", nested=False)
    if not reasons:
        return ChangeSet(arn, nested=False, refused=" ".join(refused))
    client.delete_change_set(ChangeSetName=arn)
    if _says_nothing_changes(reasons):
        return None
    raise InspectorError(f"AWS makes no change set of {deployment.stack}: {' '.join(reasons)}")


def _says_nothing_changes(reasons: Sequence[str]) -> bool:
    """Whether nothing changes; the first reason is that of the root, which counts."""
    return any(words in reasons[0] for words in _NOTHING_CHANGES)


def _made(
    client: "CloudFormationClient",
    deployment: PlannedDeployment,
    live: LiveStack,
    name: str,
    *,
    nested: bool,
) -> tuple[str, list[str]]:
    """The ARN of a new change set, and why it failed; empty if it did not."""
    parameters: list[ParameterTypeDef] = [
        {"ParameterKey": key, "UsePreviousValue": True}
        if value is None
        else {"ParameterKey": key, "ParameterValue": value}
        for key, value in sorted(deployment.parameters.items())
    ]
    asked: CreateChangeSetInputTypeDef = {
        "StackName": deployment.stack,
        "ChangeSetName": name,
        "ChangeSetType": "UPDATE" if live.exists else "CREATE",
        "TemplateURL": deployment.url,
        "Parameters": parameters,
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
        "IncludeNestedStacks": nested,
    }
    if deployment.tags:
        asked["Tags"] = [{"Key": key, "Value": value} for key, value in deployment.tags.items()]
    if deployment.role:
        asked["RoleARN"] = deployment.role
    arn = client.create_change_set(**asked)["Id"]
    try:
        client.get_waiter("change_set_create_complete").wait(ChangeSetName=arn, WaiterConfig=_POLLS)
    except WaiterError:
        return arn, list(_reasons(client, arn))
    return arn, []


def _reasons(client: "CloudFormationClient", arn: str) -> Iterator[str]:
    """Yield why a change set failed: of a nested one that failed, its own reason."""
    found = client.describe_change_set(ChangeSetName=arn)
    yield found.get("StatusReason", f"The change set is {found['Status']}.")
    for change in _resource_changes(client, arn):
        inner = change.get("ChangeSetId")
        if inner and client.describe_change_set(ChangeSetName=inner)["Status"] == "FAILED":
            for reason in _reasons(client, inner):
                yield f"{change.get('LogicalResourceId', '')}: {reason}"


def _resource_changes(
    client: "CloudFormationClient", arn: str
) -> Iterator["ResourceChangeTypeDef"]:
    pages = client.get_paginator("describe_change_set").paginate(ChangeSetName=arn)
    for page in pages:
        for change in page.get("Changes", ()):
            if "ResourceChange" in change:
                yield change["ResourceChange"]


def read_changes(client: "CloudFormationClient", arn: str) -> Changes:
    """Return what AWS says that a change set does, with those of its nested stacks.

    Raises the errors of boto3.
    """
    found = Changes()
    for change, passed_on in _read(client, arn, ""):
        one = (change,)
        found = found.joined(Changes(passed_on=one) if passed_on else Changes(own=one))
    return found


def _read(
    client: "CloudFormationClient", arn: str, prefix: str
) -> Iterator[tuple[ResourceChange, bool]]:
    for change in _resource_changes(client, arn):
        name, kind = change.get("LogicalResourceId", ""), change.get("ResourceType", "")
        inner = change.get("ChangeSetId")
        if kind == NESTED_STACK:  # the comparison looks into one that has no change set of its own
            if inner:
                yield from _read(client, inner, prefix if name == ENGINE else f"{prefix}{name}")
        else:
            stable = f"{prefix}{stable_name(name, kind)}"
            yield (
                ResourceChange(stable, kind, _action(change), _properties(change)),
                _passes_on(change),
            )


def _action(change: "ResourceChangeTypeDef") -> Action:
    kind, action = change.get("ResourceType", ""), change.get("Action", "Dynamic")
    if kind in VERSIONS:
        return Action.NEW_VERSION
    if action == "Remove" and change.get("PolicyAction") in ("Retain", "ReplaceAndRetain"):
        return Action.LEAVE
    replacement = change.get("Replacement", "False") if action == "Modify" else "False"
    if replacement != "False":
        return Action.REPLACE if replacement == "True" else Action.MAY_REPLACE
    return _ACTIONS.get(action, Action.MAY_REPLACE)


def _properties(change: "ResourceChangeTypeDef") -> tuple[str, ...]:
    targets = [one.get("Target", {}) for one in change.get("Details", ())]
    return tuple(sorted({each.get("Name") or each.get("Attribute", "") for each in targets} - {""}))


def _passes_on(change: "ResourceChangeTypeDef") -> bool:
    """Whether a resource changes at most because of what it names, whose value is not known yet."""
    details = change.get("Details", ())
    return bool(details) and all(
        one.get("Evaluation") == "Dynamic" and one.get("ChangeSource") != "DirectModification"
        for one in details
    )


@dataclass(frozen=True, slots=True)
class FoundChangeSet:
    """A change set that exists already, with what it would deploy."""

    arn: str
    stack: str
    nested: bool
    templates: StackTemplate
    parameters: Mapping[str, str]


def find_change_set(
    client: "CloudFormationClient", s3: "S3Client", stack: str, name: str
) -> FoundChangeSet:
    """Return the change set of a stack with this name or ARN, and the templates that it deploys.

    Raises NotFound if the stack has none, InspectorError if it is of another stack or cannot be
    carried out any more, and the errors of boto3.
    """
    try:
        if name.startswith("arn:"):
            found = client.describe_change_set(ChangeSetName=name)
        else:
            found = client.describe_change_set(ChangeSetName=name, StackName=stack)
    except client.exceptions.ChangeSetNotFoundException as error:
        raise NotFound(f"The stack {stack} has no change set {name}.") from error
    if found["StackName"] != stack:
        raise InspectorError(f"This change set is of the stack {found['StackName']}, not {stack}.")
    _check_available(found)
    arn = found["ChangeSetId"]
    answer = client.get_template(ChangeSetName=arn, TemplateStage="Processed")
    root = parsed_template(answer["TemplateBody"], arn)
    return FoundChangeSet(
        arn,
        stack,
        bool(found.get("IncludeNestedStacks")),
        _in_s3(s3, root),
        {
            one["ParameterKey"]: one["ParameterValue"]
            for one in found.get("Parameters", ())
            if "ParameterKey" in one and "ParameterValue" in one
        },
    )


def _check_available(found: "DescribeChangeSetOutputTypeDef") -> None:
    status = found.get("ExecutionStatus", "UNAVAILABLE")
    if status == "AVAILABLE":
        return
    if status == "OBSOLETE":
        raise InspectorError("The stack was changed since this change set was made: make another.")
    reason = found.get("StatusReason", "")
    raise InspectorError(f"This change set cannot be carried out, it is {status}. {reason}".strip())


def _in_s3(s3: "S3Client", template: Mapping[str, object]) -> StackTemplate:
    plain = parsed_template(dict(template), "the change set")
    nested = {
        name: _in_s3(s3, parsed_template(read_object(s3, url), name))
        for name, url in nested_urls(plain).items()
    }
    return StackTemplate(plain, nested)


def execute(client: "CloudFormationClient", found: FoundChangeSet, live: LiveStack) -> None:
    """Carry out a change set, and return when the stack is as it says.

    Raises InspectorError with the first event that failed if AWS takes it back, and the errors of
    boto3.
    """
    client.execute_change_set(ChangeSetName=found.arn)
    try:
        if live.exists:
            updated = client.get_waiter("stack_update_complete")
            updated.wait(StackName=found.stack, WaiterConfig=_DEPLOYS)
        else:
            created = client.get_waiter("stack_create_complete")
            created.wait(StackName=found.stack, WaiterConfig=_DEPLOYS)
    except WaiterError as error:
        reason = first_failure(client, found.stack) or str(error)
        raise InspectorError(f"The stack {found.stack} was not deployed: {reason}") from error


def handed_on(
    names: Sequence[str], given: Mapping[str, str], live: LiveStack
) -> dict[str, str | None]:
    """Return the parameters of a change set as `sam deploy` hands them on.

    A value that is not given stays as the stack has it; a new parameter has its default.
    """
    return {name: given.get(name) for name in names if name in given or name in live.parameters}
