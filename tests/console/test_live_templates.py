"""What `roundsman changes` reads of a stack with nested stacks, on moto."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from roundsman_console.base.errors import InspectorError
from roundsman_dev.changes.compare import Action
from roundsman_dev.changes.live import read_live
from roundsman_dev.changes.review import compare_with_live
from roundsman_dev.changes.whole import StackTemplate

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient

TABLE: Any = {
    "Type": "AWS::DynamoDB::Table",
    "DeletionPolicy": "Retain",
    "Properties": {
        "TableName": {"Fn::Sub": "${Stack}-orders"},
        "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "Id", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "Id", "KeyType": "HASH"}],
    },
}


def engine(table: Any = TABLE) -> dict[str, Any]:  # noqa: ANN401  # a template
    return {
        "Parameters": {"Stack": {"Type": "String"}},
        "Resources": {"OrdersTable": table},
    }


AGENT: Any = {
    "Parameters": {"Stack": {"Type": "String"}, "Table": {"Type": "String"}},
    "Resources": {
        "Queue": {
            "Type": "AWS::SQS::Queue",
            "Properties": {
                "QueueName": {"Fn::Sub": "${Stack}_Queue"},
                "Tags": [{"Key": "table", "Value": {"Ref": "Table"}}],
            },
        }
    },
}


def root(**urls: str) -> dict[str, Any]:
    def block(name: str, **parameters: object) -> dict[str, object]:
        given = {"Stack": {"Ref": "Name"}, **parameters}
        return {
            "Type": "AWS::CloudFormation::Stack",
            "Properties": {"TemplateURL": urls[name], "Parameters": given},
        }

    return {
        "Parameters": {"Name": {"Type": "String"}},
        "Resources": {
            "Engine": block("Engine"),
            "Payment": block("Payment", Table={"Ref": "Name"}),
        },
    }


@pytest.fixture
def cloudformation() -> Iterator["CloudFormationClient"]:
    """Two stacks, `shop` and `webshop-Engine-1`, of whose names one has the other in it."""
    with mock_aws():
        s3 = boto3.client("s3", region_name="us-east-1")
        s3.create_bucket(Bucket="code")
        urls = {}
        for name, template in (("Engine", engine()), ("Payment", AGENT)):
            s3.put_object(Bucket="code", Key=name, Body=json.dumps(template).encode())
            urls[name] = f"https://s3.amazonaws.com/code/{name}"
        client = boto3.client("cloudformation", region_name="us-east-1")
        for stack in ("shop", "webshop-Engine-1"):
            client.create_stack(
                StackName=stack,
                TemplateBody=json.dumps(root(**urls)),
                Parameters=[{"ParameterKey": "Name", "ParameterValue": stack}],
            )
        yield client


def new(table: Any = TABLE) -> StackTemplate:  # noqa: ANN401  # a template
    nested = {"Engine": StackTemplate(engine(table)), "Payment": StackTemplate(AGENT)}
    return StackTemplate(root(Engine="https://x", Payment="https://y"), nested)


def test_the_same_templates_are_no_change(cloudformation: "CloudFormationClient") -> None:
    live = read_live(cloudformation, "shop")
    assert live.exists
    assert dict(live.parameters) == {"Name": "shop"}
    found = compare_with_live(live, new(), {})
    assert (found.own, found.passed_on, found.rights) == ((), (), ())


def test_a_table_that_a_nested_stack_would_replace_is_found(
    cloudformation: "CloudFormationClient",
) -> None:
    other = {**TABLE, "Properties": {**TABLE["Properties"], "TableName": "other"}}
    found = compare_with_live(read_live(cloudformation, "shop"), new(other), {})
    assert [(one.name, one.action) for one in found.stopped()] == [("OrdersTable", Action.REPLACE)]


def test_a_stack_that_does_not_exist_has_nothing(cloudformation: "CloudFormationClient") -> None:
    live = read_live(cloudformation, "sho")
    assert not live.exists
    found = compare_with_live(live, new(), {"Name": "sho"})
    assert {one.action for one in found.own} == {Action.ADD}


def test_a_block_that_lacks_a_parameter_is_named(cloudformation: "CloudFormationClient") -> None:
    templates = new()
    template: Any = templates.template
    del template["Resources"]["Payment"]["Properties"]["Parameters"]["Table"]
    with pytest.raises(InspectorError, match=r"Payment: .* asks for Table"):
        compare_with_live(read_live(cloudformation, "shop"), templates, {})
