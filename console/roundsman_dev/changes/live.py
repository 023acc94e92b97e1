"""Reads the templates of a deployed stack and of the stacks nested in it, as AWS processed them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roundsman.aws.outputs import describe_stack
from roundsman_console.aws.resources import NESTED_STACK
from roundsman_console.aws.stack import PLANNED
from roundsman_console.base.errors import InspectorError
from roundsman_dev.changes.whole import StackTemplate

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


@dataclass(frozen=True, slots=True)
class LiveStack:
    """A stack as it is deployed."""

    exists: bool
    templates: StackTemplate = field(default_factory=StackTemplate)
    parameters: Mapping[str, str] = field(default_factory=dict)
    """The values of the parameters of its own template."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Those of the nested stacks that its outputs contain."""


def read_live(client: "CloudFormationClient", name: str) -> LiveStack:
    """Return the stack with this name; one that does not exist has no template.

    Raises the errors of boto3, and InspectorError if a template cannot be read.
    """
    found = describe_stack(client, name)
    if found is None or found.status == PLANNED:
        return LiveStack(exists=False)
    templates = _templates(client, found.arn)
    own = templates.parameters
    values = {name: value for name, value in found.parameters.items() if name in own}
    return LiveStack(True, templates, values, found.parameters)


def _templates(client: "CloudFormationClient", stack: str) -> StackTemplate:
    answer = client.get_template(StackName=stack, TemplateStage="Processed")
    nested = {
        one["LogicalResourceId"]: one["PhysicalResourceId"]
        for page in client.get_paginator("list_stack_resources").paginate(StackName=stack)
        for one in page["StackResourceSummaries"]
        if one["ResourceType"] == NESTED_STACK and one.get("PhysicalResourceId")
        if not one["ResourceStatus"].startswith("DELETE")
    }
    return StackTemplate(
        parsed_template(answer["TemplateBody"], stack),
        {name: _templates(client, arn) for name, arn in nested.items()},
    )


def parsed_template(body: object, where: str) -> dict[str, Any]:
    """Return a template of an answer of AWS: a mapping, or JSON or YAML as text.

    Raises InspectorError if it is none.
    """
    found: object = body
    if isinstance(body, str):
        try:
            found = json.loads(body)
        except ValueError:
            found = _of_yaml(body)
    plain = json.loads(json.dumps(found)) if isinstance(found, dict) else None  # not ordered
    if not isinstance(plain, dict):
        raise InspectorError(f"The template of {where} cannot be read.")
    return plain


def _of_yaml(text: str) -> object:
    from samtranslator.yaml_helper import yaml_parse  # type: ignore[import-untyped]
    from yaml import YAMLError

    try:
        return yaml_parse(text)
    except YAMLError:
        return None
