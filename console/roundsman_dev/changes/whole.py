"""A stack as one template: with the resources of the stacks nested in it, under the names by which
people know them (`PaymentRequestQueue` of the block `Payment`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from roundsman_console.aws.resources import ENGINE, NESTED_STACK
from roundsman_console.base.errors import InspectorError
from roundsman_dev.changes.values import mapping_of, with_values
from roundsman_dev.nested_stacks import (
    APPLICATION,
    ENGINE_TEMPLATE,
    Document,
    NestedProblem,
    copied,
    flattened,
)


@dataclass(frozen=True, slots=True)
class StackTemplate:
    """A template in plain CloudFormation and the templates of the stacks nested in it."""

    template: Document = field(default_factory=dict)
    nested: Mapping[str, "StackTemplate"] = field(default_factory=dict)
    """By the name of the block."""

    @property
    def parameters(self) -> Document:
        """The parameters that the template declares, by name."""
        return mapping_of(self.template.get("Parameters"))


def whole_resources(stack: StackTemplate, parameters: Mapping[str, str]) -> dict[str, Document]:
    """Return the resources of a stack and of its nested stacks, with the values that are known.

    A nested stack whose template is not given stays as one resource. Raises InspectorError if the
    templates do not fit together.
    """
    try:
        template = _whole(stack)
    except NestedProblem as problem:
        raise InspectorError(f"The templates do not fit together: {problem}.") from problem
    return with_values(template, parameters)


def _whole(stack: StackTemplate) -> Document:
    if not stack.template:
        return {}
    template = mapping_of(copied(stack.template))
    inner = {}
    for name, resource in mapping_of(template.get("Resources")).items():
        if name in stack.nested and isinstance(resource, dict):
            # `flattened` tells the engine, whose resources keep their names, by its file.
            location = f"{name}/{ENGINE_TEMPLATE if name == ENGINE else 'template.yaml'}"
            resource["Type"] = APPLICATION
            mapping_of(resource.get("Properties"))["Location"] = location
            inner[Path(location)] = _whole(stack.nested[name])
    return flattened(template, Path(), inner.__getitem__)


def nested_urls(template: Document) -> dict[str, str]:
    """Return the address of the template of each nested stack, by the name of its block."""
    found = {}
    for name, resource in mapping_of(template.get("Resources")).items():
        body = mapping_of(resource)
        url = mapping_of(body.get("Properties")).get("TemplateURL")
        if body.get("Type") == NESTED_STACK and isinstance(url, str):
            found[name] = url
    return found
