"""Creates the queues, tables, topics and functions of a template on moto, by CloudFormation.

moto runs no functions. `StackOnMoto` therefore describes the event source mappings and the
environment of each function, and `roundsman_testing.stack.driver` runs the functions with them.
"""

import io
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from unittest.mock import patch

import boto3
from moto.awslambda.models import lambda_backends
from moto.cloudformation.models import Stack as MotoStack
from moto.cloudformation.models import cloudformation_backends
from moto.cloudformation.parsing import clean_json
from moto.core.models import DEFAULT_ACCOUNT_ID

from roundsman.aws.outputs import LIVE, with_agents
from roundsman.model.instants import SECOND
from roundsman_dev.template import (
    CODE_BUCKET,
    CODE_KEY,
    Document,
    FunctionCode,
    Json,
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
    "AWS::CloudWatch::Dashboard",
    "AWS::Lambda::Alias",
    "AWS::Lambda::EventInvokeConfig",
    "AWS::Lambda::Version",
    "AWS::Logs::MetricFilter",
    "AWS::SNS::TopicPolicy",
    "AWS::SQS::QueuePolicy",
    "AWS::Scheduler::Schedule",
)
"""Resource types that are left out: moto warns about them and creates nothing. No function needs
them, except the policies of queues, which `_set_queue_policies` makes."""

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
    resources = part(document, "Resources")
    aliases = {
        name: part(mapping_of(resource), "Properties")["FunctionName"]
        for name, resource in resources.items()
        if mapping_of(resource)["Type"] == "AWS::Lambda::Alias"
    }
    known: Document = {
        name: _without_aliases(_without_description(mapping_of(resource)), aliases)
        for name, resource in resources.items()
        if mapping_of(resource)["Type"] not in UNKNOWN_TO_MOTO
    }
    conditions = part(document, "Conditions")
    kept = {name: _without_absent(resource, conditions, values) for name, resource in known.items()}
    _upload({**document, "Resources": kept})
    cloudformation: CloudFormationClient = boto3.client("cloudformation")
    # moto would parse the JSON as YAML, which takes half of the time of a deployment.
    with patch.object(MotoStack, "parse_template", staticmethod(json.loads)):
        cloudformation.create_stack(
            StackName=stack_name,
            TemplateURL=f"https://{CODE_BUCKET}.s3.amazonaws.com/{TEMPLATE_KEY}",
            Parameters=[{"ParameterKey": k, "ParameterValue": v} for k, v in values.items()],
            Capabilities=["CAPABILITY_NAMED_IAM"],
        )
    _set_queue_policies(stack_name, resources, conditions, values)
    return _describe(cloudformation, stack_name, template)


def _set_queue_policies(
    stack: str, resources: Document, conditions: Document, values: Mapping[str, str]
) -> None:
    """Give each queue its policy, which submission reads; moto enforces none."""
    sqs: SQSClient = boto3.client("sqs")
    backend = cloudformation_backends[DEFAULT_ACCOUNT_ID][sqs.meta.region_name]
    made = backend.get_stack(stack).resource_map
    for body in resources.values():
        if mapping_of(body)["Type"] == "AWS::SQS::QueuePolicy":
            properties = part(mapping_of(body), "Properties")
            document = _without_absent(properties["PolicyDocument"], conditions, values)
            policy = json.dumps(clean_json(document, made))
            for queue in clean_json(properties["Queues"], made):
                sqs.set_queue_attributes(QueueUrl=queue, Attributes={"Policy": policy})


def _without_description(resource: Document) -> Document:
    """Return a function without its description: moto cannot split the ARN of a layer for it."""
    if resource["Type"] != "AWS::Lambda::Function":
        return resource
    properties = part(resource, "Properties")
    kept = {name: value for name, value in properties.items() if name != "Description"}
    return {**resource, "Properties": kept}


def _without_aliases(value: Json, aliases: Mapping[str, Json]) -> Json:
    """Return the value with the function in place of each alias: moto makes no aliases of a stack.

    `_mappings` makes them. A resource does not wait for an alias either.
    """
    match value:
        case {"Ref": str(name)} if name in aliases:
            return aliases[name]
        case dict():
            return {
                name: _without_aliases(inner, aliases)
                for name, inner in value.items()
                if name != "DependsOn"
            }
        case list():
            return [_without_aliases(inner, aliases) for inner in value]
        case _:
            return value


def _without_absent(value: Json, conditions: Document, values: Mapping[str, str]) -> Json:
    """Return the value without the items of lists that a condition leaves out.

    moto keeps an item that is AWS::NoValue, and refuses a policy with one.
    """
    match value:
        case dict():
            return {n: _without_absent(inner, conditions, values) for n, inner in value.items()}
        case list():
            kept = (item for item in value if not _is_absent(item, conditions, values))
            return [_without_absent(item, conditions, values) for item in kept]
        case _:
            return value


def _is_absent(item: Json, conditions: Document, values: Mapping[str, str]) -> bool:
    match item:
        case {"Fn::If": [str(name), yes, no]}:
            chosen = yes if _holds(conditions.get(name), values) else no
            return chosen == {"Ref": "AWS::NoValue"}
        case _:
            return False


def _holds(condition: Json, values: Mapping[str, str]) -> bool:
    match condition:
        case {"Fn::Not": [inner]}:
            return not _holds(inner, values)
        case {"Fn::Or": [*inner]}:
            return any(_holds(one, values) for one in inner)
        case {"Fn::Equals": [one, other]}:
            return _text(one, values) == _text(other, values)
        case _:
            return False


def _text(value: Json, values: Mapping[str, str]) -> str:
    match value:
        case {"Ref": str(name)}:
            return values.get(name, name)
        case _:
            return str(value)


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
    """Disable the event source mappings on moto and return them; make the alias of each function.

    If they were enabled, moto would run the function in Docker at each message sent. moto lists a
    mapping only under the name that it was made with.
    """
    sources = []
    sqs: SQSClient = boto3.client("sqs")
    for physical in functions:
        awslambda.create_alias(FunctionName=physical, Name=LIVE, FunctionVersion="$LATEST")
    made = lambda_backends[DEFAULT_ACCOUNT_ID][awslambda.meta.region_name]._event_source_mappings
    for mapping in awslambda.list_event_source_mappings()["EventSourceMappings"]:
        physical = _name_in(mapping["FunctionArn"])
        if physical in functions:
            awslambda.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
            made[mapping["UUID"]].function_name = f"{physical}:{LIVE}"
            sources.append(_event_source(sqs, mapping, functions[physical]))
    return tuple(sources)


def _event_source(
    sqs: "SQSClient", mapping: "EventSourceMappingConfigurationTypeDef", function: str
) -> EventSource:
    arn = mapping["EventSourceArn"]
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
