"""Asks the emulator's CloudFormation about a stack, whatever the person's own AWS settings are."""

import os
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman_console.local.errors import LocalError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


def stack_outputs(endpoint: str, region: str, stack: str) -> dict[str, str]:
    """The outputs of a deployed stack. Raises LocalError if there is no such stack."""
    try:
        found = _cloudformation(endpoint, region).describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise LocalError(f"Cannot read the outputs of the stack {stack}: {error}") from error
    return {
        output["OutputKey"]: output["OutputValue"]
        for output in found[0].get("Outputs", [])
        if "OutputKey" in output and "OutputValue" in output
    }


def deploy_failure(endpoint: str, region: str, stack: str) -> str | None:
    """The resource that a deployment failed on, and why; None where none is known."""
    try:
        answer = _cloudformation(endpoint, region).describe_stack_events(StackName=stack)
    except (BotoCoreError, ClientError):
        return None  # it failed before there was a stack
    failures = [
        f"{event.get('LogicalResourceId')} ({event.get('ResourceType')}): "
        f"{event.get('ResourceStatusReason')}"
        for event in answer.get("StackEvents", [])
        if str(event.get("ResourceStatus", "")).endswith("_FAILED")
        and event.get("ResourceStatusReason")
    ]
    # The newest comes first; the oldest is the cause, the later ones are what was cancelled for it.
    return failures[-1] if failures else None


def _cloudformation(endpoint: str, region: str) -> "CloudFormationClient":
    # All that a profile or a proxy variable would change is given, so neither is looked for.
    nowhere = (None, None, os.devnull, None)
    session = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": nowhere,
            "credentials_file": nowhere,
        }
    )
    client: CloudFormationClient = boto3.Session(botocore_session=session).client(
        "cloudformation",
        region_name=region,
        endpoint_url=endpoint,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - the emulator takes any
        config=Config(proxies={}, retries={"total_max_attempts": 2}),
    )
    return client
