"""Creates the queues, tables, topics and functions of a template on moto, by CloudFormation.

moto runs no functions. `StackOnMoto` therefore describes the event source mappings and the
environment of each function, and `roundsman.testing.stack.driver` runs the functions with them.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

import boto3
from moto.cloudformation.models import Stack as MotoStack

from roundsman.aws.outputs import with_agents
from roundsman.model.instants import SECOND
from roundsman.testing.stack.template import (
    CODE_BUCKET,
    CODE_KEY,
    Document,
    FunctionCode,
    Template,
    TemplateProblem,
    mapping_of,
    part,
)

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_lambda import LambdaClient
    from mypy_boto3_lambda.type_defs import EventSourceMappingConfigurationTypeDef
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient

TEMPLATE_KEY = "template.json"

UNKNOWN_TO_MOTO = (
    "AWS::CloudWatch::Alarm",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
)
"""Resource types that are left out: moto warns about them and creates nothing. No function needs
them."""

OUTPUTS = (
    "SubmissionQueueUrl",
    "SchedulerQueueUrl",
    "RejectedQueueUrl",
    "OrdersTableName",
    "TasksTableName",
    "ControlTableName",
    "HistoryTableName",
    "AlertTopicArn",
    "ReplyQueuePrefix",
    "SupervisorFunctionName",
)
"""The outputs that the template must have, because a test finds its resources by them."""


@dataclass(frozen=True)
class EventSource:
    """One event source mapping: the queue that invokes a function, and its settings."""

    queue_url: str
    queue_arn: str
    function: str
    """The logical id of the function."""
    batch_size: int
    """The largest number of messages in one invocation."""
    maximum_concurrency: int | None
    """The MaximumConcurrency of the mapping; None if it has none."""
    reports_failures: bool
    """Whether the function returns a partial batch response (ReportBatchItemFailures)."""


@dataclass(frozen=True)
class StackOnMoto:
    """A created stack. Functions are named by their logical ids, such as `SchedulerFunction`."""

    name: str
    template: Template
    outputs: Mapping[str, str]
    resources: Mapping[str, str]
    """Physical ids by logical id."""
    mappings: tuple[EventSource, ...]
    functions: Mapping[str, FunctionCode]
    function_environments: Mapping[str, Mapping[str, str]]
    function_timeouts: Mapping[str, int]
    """In ms."""

    def logical_id(self, physical: str) -> str:
        """The logical id of a resource, by its physical id. Raises KeyError if there is none."""
        return {found: logical for logical, found in self.resources.items()}[physical]


def create_stack_on_moto(
    template: Template,
    parameters: Mapping[str, str] | None = None,
    *,
    stack_name: str = "roundsman",
) -> StackOnMoto:
    """Create the stack of the template, inside `mock_aws()`, in the region of the environment.

    `parameters` override the template's defaults, as `--parameter-overrides` does. Raises
    TemplateProblem if an output is missing or moto cannot create the stack.
    """
    if missing := [name for name in OUTPUTS if name not in part(template.document, "Outputs")]:
        raise TemplateProblem(
            f"{template.path.name} has no output {', '.join(missing)}: "
            "a test finds by it what it sends to and reads"
        )
    values = template.parameter_values(parameters)
    document = template.translate(parameters)
    known: Document = {
        name: _named_function(mapping_of(resource))
        for name, resource in part(document, "Resources").items()
        if mapping_of(resource)["Type"] not in UNKNOWN_TO_MOTO
    }
    _upload({**document, "Resources": known})
    cloudformation: CloudFormationClient = boto3.client("cloudformation")
    # moto would parse the JSON as YAML, which takes half of the time of a deployment.
    with patch.object(MotoStack, "parse_template", staticmethod(json.loads)):
        cloudformation.create_stack(
            StackName=stack_name,
            TemplateURL=f"https://{CODE_BUCKET}.s3.amazonaws.com/{TEMPLATE_KEY}",
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in values.items()],
            Capabilities=["CAPABILITY_IAM"],
        )
    return _describe(cloudformation, stack_name, template)


def _named_function(resource: Document) -> Document:
    """Return an event source mapping with its function's name in place of its ARN.

    AWS lists the mappings of a function under both; moto only under the one in the template.
    """
    if resource["Type"] != "AWS::Lambda::EventSourceMapping":
        return resource
    properties = part(resource, "Properties")
    function = properties["FunctionName"]
    found = function.get("Fn::GetAtt") if isinstance(function, dict) else None
    if not isinstance(found, list):
        return resource
    return {**resource, "Properties": {**properties, "FunctionName": {"Ref": found[0]}}}


def _upload(document: Document) -> None:
    """Upload the template and an empty code package to the bucket that CloudFormation reads."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as package:
        package.writestr("app.py", "")
    # A bucket in us-east-1 needs no location, and CloudFormation reads templates of any region.
    s3: S3Client = boto3.client("s3", region_name="us-east-1")
    s3.create_bucket(Bucket=CODE_BUCKET)
    s3.put_object(Bucket=CODE_BUCKET, Key=CODE_KEY, Body=archive.getvalue())
    s3.put_object(Bucket=CODE_BUCKET, Key=TEMPLATE_KEY, Body=json.dumps(document).encode())


def _describe(client: "CloudFormationClient", name: str, template: Template) -> StackOnMoto:
    (stack,) = client.describe_stacks(StackName=name)["Stacks"]
    if stack["StackStatus"] != "CREATE_COMPLETE":
        raise TemplateProblem(f"moto made no stack of it: {stack.get('StackStatusReason')}")
    pages = client.get_paginator("list_stack_resources").paginate(StackName=name)
    summaries = [summary for page in pages for summary in page["StackResourceSummaries"]]
    functions = {
        summary["PhysicalResourceId"]: summary["LogicalResourceId"]
        for summary in summaries
        if summary["ResourceType"] == "AWS::Lambda::Function"
    }
    awslambda: LambdaClient = boto3.client("lambda")
    configurations = {
        functions[found["FunctionName"]]: found
        for found in awslambda.list_functions()["Functions"]
        if found["FunctionName"] in functions
    }
    return StackOnMoto(
        name=name,
        template=template,
        outputs=with_agents({o["OutputKey"]: o["OutputValue"] for o in stack["Outputs"]}),
        resources={s["LogicalResourceId"]: s["PhysicalResourceId"] for s in summaries},
        mappings=_mappings(awslambda, functions),
        functions=template.functions(),
        function_environments={
            # AWS has text only; moto keeps the numbers of parameters as numbers.
            function: {
                k: str(v) for k, v in found.get("Environment", {}).get("Variables", {}).items()
            }
            for function, found in configurations.items()
        },
        function_timeouts={
            function: int(found["Timeout"]) * SECOND for function, found in configurations.items()
        },
    )


def _mappings(awslambda: "LambdaClient", functions: Mapping[str, str]) -> tuple[EventSource, ...]:
    """Disable the event source mappings on moto and return them.

    If they were enabled, moto would run the function in Docker at each message sent.
    """
    sources = []
    for mapping in awslambda.list_event_source_mappings()["EventSourceMappings"]:
        function = functions.get(_name_in(mapping["FunctionArn"]))
        if function is not None:
            awslambda.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
            sources.append(_event_source(mapping, function))
    return tuple(sources)


def _event_source(mapping: "EventSourceMappingConfigurationTypeDef", function: str) -> EventSource:
    arn = mapping["EventSourceArn"]
    sqs: SQSClient = boto3.client("sqs")
    return EventSource(
        queue_url=sqs.get_queue_url(QueueName=_name_in(arn))["QueueUrl"],
        queue_arn=arn,
        function=function,
        batch_size=mapping["BatchSize"],
        maximum_concurrency=mapping.get("ScalingConfig", {}).get("MaximumConcurrency"),
        reports_failures="ReportBatchItemFailures" in mapping.get("FunctionResponseTypes", []),
    )


def _name_in(arn: str) -> str:
    return arn.rsplit(":", 1)[1]
