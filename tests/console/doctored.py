"""A deployment on moto as CloudFormation would have left it, for the tests of the doctor.

moto makes no TTL, no recovery and no subscription of a template; the test kit disables event source
mappings so that moto runs no function by itself. Here all of that is as on AWS.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import boto3
from typer.testing import Result

from roundsman_testing.stack import Stack
from tests.console.operators import Operator, document

LISTED = "after-call.lambda.ListEventSourceMappings"


def put_in_order(world: Stack) -> None:
    """What a deployment to AWS would have made of the template."""
    dynamodb = world.dynamodb
    for output, table in world.stack.outputs.items():
        if output.endswith("TableName"):
            dynamodb.update_time_to_live(
                TableName=table,
                TimeToLiveSpecification={"Enabled": True, "AttributeName": "ExpiresAt"},
            )
            dynamodb.update_continuous_backups(
                TableName=table,
                PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True},
            )
            dynamodb.update_table(TableName=table, DeletionProtectionEnabled=True)
    world.alert_queue()


@contextmanager
def mappings_enabled(*but: str) -> Iterator[None]:
    """Let each event source mapping be seen enabled, but those of these functions."""
    hide = see_mappings_enabled(*but)
    try:
        yield
    finally:
        hide()


def see_mappings_enabled(*but: str) -> Callable[[], None]:
    """The same until what is returned is called, or another deployment is made."""
    session = boto3.DEFAULT_SESSION
    assert session is not None
    events = session.events

    def enable(parsed: dict[str, list[dict[str, str]]], **_rest: object) -> None:
        for mapping in parsed.get("EventSourceMappings", []):
            if not any(f"-{name}-" in mapping["FunctionArn"] for name in but):
                mapping["State"] = "Enabled"

    events.register(LISTED, enable)

    def undo() -> None:
        events.unregister(LISTED, enable)

    return undo


def findings(result: Result) -> dict[str, str]:
    """Where the doctor's report as JSON found each kind (the last of each)."""
    found = document(result)["findings"]
    assert isinstance(found, list)
    return {one["kind"]: one["where"] for one in found}


def visit(operator: Operator, *options: str) -> Result:
    """The doctor's visit, as JSON."""
    with mappings_enabled():
        return operator.types("doctor", "--json", *options)
