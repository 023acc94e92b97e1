"""The resources of a stack and of its nested stacks, and what connects queues to functions."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from roundsman.aws.outputs import LIVE

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef

SCHEDULE = "AWS::Scheduler::Schedule"
NESTED_STACK = "AWS::CloudFormation::Stack"
ENGINE = "Engine"  # the block whose resources keep their names


@dataclass(frozen=True, slots=True)
class StackResource:
    """A resource that has been created."""

    name: str
    """The logical ID; in an agent's stack with the block's name before it."""
    kind: str
    """The type, for example `AWS::SQS::Queue`."""
    physical_id: str


def stack_resources(
    client: "CloudFormationClient", stack: str, prefix: str = ""
) -> Iterator[StackResource]:
    """Yield the resources of a stack and of its nested stacks, without the nested stacks.

    `RequestQueue` of the block `Payment` is `PaymentRequestQueue`; resources of the engine keep
    their names. `prefix` is put before each name. Raises the errors of boto3.
    """
    for page in client.get_paginator("list_stack_resources").paginate(StackName=stack):
        for found in page["StackResourceSummaries"]:
            name, physical = found["LogicalResourceId"], found.get("PhysicalResourceId", "")
            if found["ResourceType"] != NESTED_STACK:
                if physical:
                    yield StackResource(f"{prefix}{name}", found["ResourceType"], physical)
            elif physical:
                inner = prefix if name == ENGINE else f"{prefix}{name}"
                yield from stack_resources(client, physical, inner)


def event_source_mappings(
    client: "LambdaClient", function: str
) -> "Iterator[EventSourceMappingConfigurationTypeDef]":
    """Yield what connects queues to the live version of a function. Raises the errors of boto3.

    `function` is its physical name.
    """
    # Lambda lists the mappings to an alias only where they are asked for by it.
    pages = client.get_paginator("list_event_source_mappings").paginate(
        FunctionName=f"{function}:{LIVE}"
    )
    for page in pages:
        yield from page["EventSourceMappings"]
