"""Reads the stack's functions and their mappings from Lambda."""

from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import ClientError

from roundsman.aws.outputs import LIVE
from roundsman_console.inspector.doctor.facts import FunctionFact, MappingFact
from roundsman_console.inspector.doctor.readings import Looking
from roundsman_console.inspector.read.stack import DeployedStack

if TYPE_CHECKING:
    from mypy_boto3_lambda import LambdaClient

SUFFIX = "FunctionName"


def find_functions(
    stack: DeployedStack, looking: Looking
) -> tuple[list[FunctionFact], list[MappingFact] | None]:
    """Return the functions that the stack's outputs name, and their event source mappings.

    The mappings are None if those of a function could not be read: a mapping that was not read must
    not count as missing.
    """
    client: LambdaClient = boto3.client("lambda")
    functions: list[FunctionFact] = []
    mappings: list[MappingFact] = []
    seen = True
    for output, physical in sorted(stack.outputs.items()):
        if not output.endswith(SUFFIX):
            continue
        name = output.removesuffix("Name")
        with looking.at(name):
            functions.append(_function(client, name, physical, looking))
        before = seen
        seen = False
        with looking.at(f"the mappings of {name}"):
            mappings += _mappings(client, physical)
            seen = before
    return functions, mappings if seen else None


def _function(client: "LambdaClient", name: str, physical: str, looking: Looking) -> FunctionFact:
    try:
        found = client.get_function_configuration(FunctionName=physical, Qualifier=LIVE)
    except ClientError as error:
        if error.response["Error"].get("Code") != "ResourceNotFoundException":
            raise
        return FunctionFact(
            name, physical, 0, "Failed", "Failed", "it or its alias live does not exist"
        )
    reserved = None
    with looking.at(f"the concurrency of {name}"):
        reserved = client.get_function_concurrency(FunctionName=physical).get(
            "ReservedConcurrentExecutions"
        )
    return FunctionFact(
        name,
        physical,
        timeout=int(found.get("Timeout", 3)),
        state=found.get("State", "Active"),
        update=found.get("LastUpdateStatus", "Successful"),
        reason=found.get("LastUpdateStatusReason", "") or found.get("StateReason", ""),
        reserved=reserved,
    )


def _mappings(client: "LambdaClient", physical: str) -> list[MappingFact]:
    # Lambda lists the mappings to an alias only where they are asked for by it.
    alias = f"{physical}:{LIVE}"
    pages = client.get_paginator("list_event_source_mappings").paginate(FunctionName=alias)
    return [
        MappingFact(
            one.get("UUID", ""),
            one.get("EventSourceArn", ""),
            physical,
            one.get("State", ""),
        )
        for page in pages
        for one in page["EventSourceMappings"]
    ]
