"""The outputs and parameters of a deployed stack, by name.

An application's stack consists of nested stacks. Two of its outputs hand on what is known of them,
so that one call reads everything: `EngineSettings` (`DueShards=16,...`), and for each agent an
output such as `PaymentAgent` (`payment,FUNCTION,URL,URL,URL,256`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


LIVE = "live"
"""The alias of each function by which it is invoked; it names the published version that runs."""


@dataclass(frozen=True, slots=True)
class StackDescription:
    """A stack as CloudFormation describes it."""

    arn: str
    """It names the account and the region."""
    outputs: Mapping[str, str]
    """With those of the agents: `PaymentFunctionName`, `PaymentRequestQueueUrl` and so on."""
    parameters: Mapping[str, str]
    """With those of the engine, such as `DueShards`, and the memory of the agents."""
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
    outputs = {
        output["OutputKey"]: output["OutputValue"]
        for output in found[0].get("Outputs", [])
        if "OutputKey" in output and "OutputValue" in output
    }
    parameters = {
        parameter["ParameterKey"]: parameter["ParameterValue"]
        for parameter in found[0].get("Parameters", [])
        if "ParameterKey" in parameter and "ParameterValue" in parameter
    }
    return StackDescription(
        arn=found[0]["StackId"],
        outputs=with_agents(outputs),
        parameters={**parameters, **nested_settings(outputs)},
        status=found[0]["StackStatus"],
    )


_AGENT = "Agent"
_SETTINGS = "EngineSettings"
_OF_AN_AGENT = ("FunctionName", "RequestQueueUrl", "UrgentRequestQueueUrl", "ReplyQueueUrl")


def with_agents(outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the outputs with one for each function and queue of each agent."""
    found = dict(outputs)
    for name, value in outputs.items():
        parts = value.split(",")
        if name.endswith(_AGENT) and len(parts) == len(_OF_AN_AGENT) + 2:
            agent = name.removesuffix(_AGENT)
            for each, part in zip(_OF_AN_AGENT, parts[1:], strict=False):
                found.setdefault(f"{agent}{each}", part)
    return found


def nested_settings(outputs: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the nested stacks that the outputs contain, by name."""
    pairs = (each.partition("=") for each in outputs.get(_SETTINGS, "").split(",") if "=" in each)
    found = {name: value for name, _, value in pairs}
    for name, value in outputs.items():
        parts = value.split(",")
        if name.endswith(_AGENT) and len(parts) == len(_OF_AN_AGENT) + 2:
            found[f"{name.removesuffix(_AGENT)}Memory"] = parts[-1]
    return found


def reply_queue_of(outputs: Mapping[str, str], agent: str) -> str | None:
    """Return the URL of the agent's reply queue; None if the stack has none.

    The queue of the agent `payment_backup` is the output `PaymentBackupReplyQueueUrl`.
    """
    wanted = f"{agent.replace('_', '')}replyqueueurl"
    return next((url for name, url in outputs.items() if name.lower() == wanted), None)
