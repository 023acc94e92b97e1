"""The outputs and parameters of a deployed stack, by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


@dataclass(frozen=True, slots=True)
class StackDescription:
    """A stack as CloudFormation describes it."""

    outputs: Mapping[str, str]
    parameters: Mapping[str, str]
    status: str
    """For example `UPDATE_COMPLETE`. A stack has no outputs before its first deployment ended."""


def describe_stack(client: "CloudFormationClient", name: str) -> StackDescription | None:
    """Return the stack with this name; None if there is none in the client's account and region.

    Raises the errors of boto3.
    """
    try:
        found = client.describe_stacks(StackName=name)["Stacks"]
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") == "ValidationError":
            return None
        raise
    if not found:
        return None
    return StackDescription(
        outputs={
            output["OutputKey"]: output["OutputValue"]
            for output in found[0].get("Outputs", [])
            if "OutputKey" in output and "OutputValue" in output
        },
        parameters={
            parameter["ParameterKey"]: parameter["ParameterValue"]
            for parameter in found[0].get("Parameters", [])
            if "ParameterKey" in parameter and "ParameterValue" in parameter
        },
        status=found[0]["StackStatus"],
    )


def reply_queue_of(outputs: Mapping[str, str], agent: str) -> str | None:
    """Return the URL of the agent's reply queue; None if the stack has none.

    The queue of the agent `payment_backup` is the output `PaymentBackupReplyQueueUrl`.
    """
    wanted = f"{agent.replace('_', '')}replyqueueurl"
    return next((url for name, url in outputs.items() if name.lower() == wanted), None)
