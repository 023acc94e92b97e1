"""Clients for the emulator's CloudFormation and IAM, which ignore the user's AWS settings."""

import os
from typing import TYPE_CHECKING

import boto3
import botocore.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from roundsman_console.local.errors import LocalError
from roundsman_console.local.state import LocalRecord

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_iam import IAMClient


def stack_outputs(record: LocalRecord) -> dict[str, str]:
    """Return the outputs of the deployed stack. Raises LocalError if they cannot be read."""
    stack = record.stack
    try:
        found = cloudformation_client(record).describe_stacks(StackName=stack)["Stacks"]
    except (BotoCoreError, ClientError) as error:
        raise LocalError(f"Cannot read the outputs of the stack {stack}: {error}") from error
    return {
        output["OutputKey"]: output["OutputValue"]
        for output in found[0].get("Outputs", [])
        if "OutputKey" in output and "OutputValue" in output
    }


def deploy_failure(record: LocalRecord) -> str | None:
    """Return the resource that made a deployment fail, and the reason; None if it is unknown."""
    try:
        answer = cloudformation_client(record).describe_stack_events(StackName=record.stack)
    except (BotoCoreError, ClientError):
        return None  # the deployment failed before the stack was created
    failures = [
        f"{event.get('LogicalResourceId')} ({event.get('ResourceType')}): "
        f"{event.get('ResourceStatusReason')}"
        for event in answer.get("StackEvents", [])
        if str(event.get("ResourceStatus", "")).endswith("_FAILED")
        and event.get("ResourceStatusReason")
    ]
    # The newest event is first. The oldest failure is the cause; later ones are cancellations.
    return failures[-1] if failures else None


def cloudformation_client(record: LocalRecord) -> "CloudFormationClient":
    """Return a client for the emulator's CloudFormation, which ignores the user's AWS settings."""
    client: CloudFormationClient = _session(record).client(
        "cloudformation",
        endpoint_url=record.endpoint,
        verify=record.certificate or None,
        config=_DIRECTLY,
    )
    return client


def iam_client(record: LocalRecord) -> "IAMClient":
    """Return a client for the emulator's IAM, with the permissions of the account's root user."""
    client: IAMClient = _session(record).client(
        "iam", endpoint_url=record.endpoint, verify=record.certificate or None, config=_DIRECTLY
    )
    return client


_DIRECTLY = Config(proxies={}, retries={"total_max_attempts": 2})


def _session(record: LocalRecord) -> boto3.Session:
    # All settings are explicit, so that no profile, configuration file or variable changes them.
    nowhere = (None, None, os.devnull, None)
    nothing_else = botocore.session.Session(
        session_vars={
            "profile": (None, None, None, None),
            "config_file": nowhere,
            "credentials_file": nowhere,
        }
    )
    return boto3.Session(
        botocore_session=nothing_else,
        region_name=record.region,
        aws_access_key_id="test",
        aws_secret_access_key="test",  # noqa: S106 - the emulator's credentials for the root user
    )
