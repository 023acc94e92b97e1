"""The real template.yaml as a stack on moto, for tests that need its queues, tables and topics.

`create_stack_on_moto` must be called inside `mock_aws()`, and makes the stack in the region of
the environment. moto runs no functions: `mappings`
says which queue wakes which function and in what batches, and `function_environments` what
environment each function would see, so that a test can carry messages to the handlers itself.
"""

import copy
import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch

import boto3
from moto.cloudformation.models import Stack
from samtranslator.translator.transform import transform  # type: ignore[import-untyped]
from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

Json: TypeAlias = "dict[str, Json] | list[Json] | str | int | float | bool | None"
Document: TypeAlias = dict[str, Json]

TEMPLATE = Path(__file__).parents[1] / "template.yaml"
CODE_BUCKET = "roundsman-test-code"
CODE_KEY = "function.zip"
TEMPLATE_KEY = "template.json"

# What a deployment must be told; everything else has a default.
SERVICE_URLS: Mapping[str, str] = {
    "InventoryUrl": "http://inventory.test",
    "PaymentUrl": "http://payment.test",
    "ShippingUrl": "http://shipping.test",
    "MailUrl": "http://mail.test",
}

# moto warns of each of these and makes nothing; their tests read the translated document.
UNKNOWN_TO_MOTO = (
    "AWS::CloudWatch::Alarm",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
)


@dataclass(frozen=True)
class EventSource:
    """One event source mapping: messages of `queue_url` wake `function`, `batch_size` at once."""

    queue_url: str
    function: str
    batch_size: int
    maximum_concurrency: int | None
    reports_failures: bool


@dataclass(frozen=True)
class StackOnMoto:
    """A created stack. Functions go by their logical ids, such as "SchedulerFunction"."""

    name: str
    outputs: Mapping[str, str]
    resources: Mapping[str, str]  # physical ids by logical id
    mappings: tuple[EventSource, ...]
    function_environments: Mapping[str, Mapping[str, str]]


def mapping_of(value: Json) -> Document:
    """`value`, which must be an object: what the template says at some place."""
    assert isinstance(value, dict), value
    return value


def load_template() -> Document:
    """template.yaml as written, its short intrinsics (`!Ref`) spelled out."""
    return copy.deepcopy(_parsed_template())


@cache
def _parsed_template() -> Document:
    return mapping_of(yaml_parse(TEMPLATE.read_text()))


def parameter_values(parameters: Mapping[str, str] | None = None) -> dict[str, str]:
    """The value of every parameter: as given, else the service's fake address or the default."""
    defaults = {
        name: str(mapping_of(parameter)["Default"])
        for name, parameter in mapping_of(load_template()["Parameters"]).items()
        if "Default" in mapping_of(parameter)
    }
    return {**defaults, **SERVICE_URLS, **(parameters or {})}


def translate(parameters: Mapping[str, str] | None = None) -> Document:
    """The plain CloudFormation that the template becomes, with its mappings looked up."""
    return _translate(tuple(sorted((parameters or {}).items())))


@cache
def _translate(given: tuple[tuple[str, str], ...]) -> Document:
    values = parameter_values(dict(given))
    template = load_template()
    for resource in map(mapping_of, mapping_of(template["Resources"]).values()):
        properties = mapping_of(resource["Properties"])
        for place in ("CodeUri", "ContentUri"):  # what `sam package` puts there
            if place in properties:
                properties[place] = f"s3://{CODE_BUCKET}/{CODE_KEY}"
    translated = mapping_of(transform(template, dict(values), _NoManagedPolicies()))
    tables = mapping_of(translated["Mappings"])
    translated["Resources"] = _look_up(translated["Resources"], tables, values)
    return translated


class _NoManagedPolicies:
    """What samtranslator asks for the addresses of AWS's own policies; the template names none."""

    def load(self) -> dict[str, str]:
        return {}


def _look_up(value: Json, tables: Document, values: Mapping[str, str]) -> Json:
    """`value` with each Fn::FindInMap replaced: moto looks numbers up as numbers and finds none."""
    if isinstance(value, list):
        return [_look_up(item, tables, values) for item in value]
    if not isinstance(value, dict):
        return value
    match value:
        case {"Fn::FindInMap": [str(table), {"Ref": str(parameter)}, str(column)]}:
            row = mapping_of(mapping_of(tables[table])[values[parameter]])
            return row[column]
        case _:
            return {key: _look_up(item, tables, values) for key, item in value.items()}


def create_stack_on_moto(
    parameters: Mapping[str, str] | None = None, *, stack_name: str = "roundsman"
) -> StackOnMoto:
    """Create the stack of the real template on moto, with the services at fake addresses.

    `parameters` override the template's defaults, as `--parameter-overrides` does.
    """
    values = parameter_values(parameters)
    document = translate(parameters)
    resources = mapping_of(document["Resources"])
    known = {
        name: resource
        for name, resource in resources.items()
        if mapping_of(resource)["Type"] not in UNKNOWN_TO_MOTO
    }
    _upload({**document, "Resources": known})
    cloudformation: CloudFormationClient = boto3.client("cloudformation")
    # moto would read the JSON as YAML, which is half of all the time that this takes.
    with patch.object(Stack, "parse_template", staticmethod(json.loads)):
        cloudformation.create_stack(
            StackName=stack_name,
            TemplateURL=f"https://{CODE_BUCKET}.s3.amazonaws.com/{TEMPLATE_KEY}",
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in values.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
    return _describe(cloudformation, stack_name)


def _upload(document: Document) -> None:
    """Put the template and an empty code package where CloudFormation fetches them."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("app.py", "")
    # In us-east-1 a bucket needs no location, and the template may come from any region.
    s3: S3Client = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket=CODE_BUCKET)
    s3.put_object(Bucket=CODE_BUCKET, Key=CODE_KEY, Body=archive.getvalue())
    s3.put_object(Bucket=CODE_BUCKET, Key=TEMPLATE_KEY, Body=json.dumps(document).encode())


def _describe(cloudformation: "CloudFormationClient", name: str) -> StackOnMoto:
    (stack,) = cloudformation.describe_stacks(StackName=name)["Stacks"]
    assert stack["StackStatus"] == "CREATE_COMPLETE", stack.get("StackStatusReason")
    pages = cloudformation.get_paginator("list_stack_resources").paginate(StackName=name)
    resources = {
        summary["LogicalResourceId"]: summary["PhysicalResourceId"]
        for page in pages
        for summary in page["StackResourceSummaries"]
    }
    functions = {
        physical: logical for logical, physical in resources.items() if logical.endswith("Function")
    }
    return StackOnMoto(
        name=name,
        outputs={o["OutputKey"]: o["OutputValue"] for o in stack["Outputs"]},
        resources=resources,
        mappings=_mappings(functions),
        function_environments=_environments(functions),
    )


def _mappings(functions: Mapping[str, str]) -> tuple[EventSource, ...]:
    """The event source mappings, which are then disabled.

    At each send moto would read the queue and try to run the function in Docker.
    """
    awslambda: LambdaClient = boto3.client("lambda")
    sources = []
    for mapping in awslambda.list_event_source_mappings()["EventSourceMappings"]:
        function = functions.get(_name_in(mapping["FunctionArn"]))
        if function is not None:
            awslambda.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
            sources.append(_event_source(mapping, function))
    return tuple(sources)


def _event_source(mapping: "EventSourceMappingConfigurationTypeDef", function: str) -> EventSource:
    return EventSource(
        queue_url=_queue_url(mapping["EventSourceArn"]),
        function=function,
        batch_size=mapping["BatchSize"],
        maximum_concurrency=mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
        reports_failures="ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", []),
    )


def _queue_url(arn: str) -> str:
    sqs: SQSClient = boto3.client("sqs")
    return sqs.get_queue_url(QueueName=_name_in(arn))["QueueUrl"]


def _name_in(arn: str) -> str:
    return arn.rsplit(":", 1)[1]


def _environments(functions: Mapping[str, str]) -> dict[str, dict[str, str]]:
    awslambda: LambdaClient = boto3.client("lambda")
    return {
        functions[found["FunctionName"]]: {
            # Text on AWS; moto keeps a parameter's number as a number.
            name: str(value)
            for name, value in found["Environment"]["Variables"].items()
        }
        for found in awslambda.list_functions()["Functions"]
        if found["FunctionName"] in functions
    }
