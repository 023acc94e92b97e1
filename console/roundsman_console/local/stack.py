"""Asks the emulator's CloudFormation about a stack, whatever the person's own AWS settings are."""

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
    """The outputs of the deployed stack. Raises LocalError if there is no such stack."""
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
    """The resource that a deployment failed on, and why; None where none is known."""
    try:
        answer = cloudformation_client(record).describe_stack_events(StackName=record.stack)
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


def cloudformation_client(record: LocalRecord) -> "CloudFormationClient":
    """The emulator's CloudFormation, whatever this process's own AWS settings are."""
    client: CloudFormationClient = _session(record).client(
        "cloudformation",
        endpoint_url=record.endpoint,
        verify=record.certificate or None,
        config=_DIRECTLY,
    )
    return client


def iam_client(record: LocalRecord) -> "IAMClient":
    """The emulator's IAM, as its account's root."""
    client: IAMClient = _session(record).client(
        "iam", endpoint_url=record.endpoint, verify=record.certificate or None, config=_DIRECTLY
    )
    return client


_DIRECTLY = Config(proxies={}, retries={"total_max_attempts": 2})


def _session(record: LocalRecord) -> boto3.Session:
    # All that a profile or a proxy variable would change is given, so neither is looked for.
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
        aws_secret_access_key="test",  # noqa: S106 - the emulator's own, for its account's root
    )
