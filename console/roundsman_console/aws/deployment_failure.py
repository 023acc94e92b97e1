"""Why the last deployment of a stack failed, by CloudFormation's events."""

from typing import TYPE_CHECKING

from roundsman_console.aws.resources import NESTED_STACK

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

_BEGINNINGS = ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS")


def first_failure(client: "CloudFormationClient", stack: str) -> str | None:
    """Return the first event of a stack's last deployment that failed; None if there is none.

    That of a nested stack is read from its own events. Raises the errors of boto3.
    """
    failed: tuple[str, str, str, str] | None = None
    for page in client.get_paginator("describe_stack_events").paginate(StackName=stack):
        for event in page["StackEvents"]:  # the newest is first
            status = event.get("ResourceStatus", "")
            of_itself = event.get("PhysicalResourceId") == event["StackId"]
            if status.endswith("_FAILED") and not of_itself:
                failed = (
                    event.get("LogicalResourceId", ""),
                    event.get("ResourceType", ""),
                    event.get("PhysicalResourceId", ""),
                    event.get("ResourceStatusReason", status),
                )
            if of_itself and status in _BEGINNINGS:
                return None if failed is None else _cause(client, *failed)
    return None if failed is None else _cause(client, *failed)


def _cause(client: "CloudFormationClient", name: str, kind: str, physical: str, reason: str) -> str:
    inner = first_failure(client, physical) if kind == NESTED_STACK and physical else None
    return f"{name}: {inner or reason}"
