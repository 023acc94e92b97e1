"""Limits of AWS that a large application reaches: the sizes of templates, policies and settings.

Each limit is one that AWS does not raise. A deployment beyond it fails, some of them halfway.
"""

import json
import re

from roundsman.testing.rules.application import Application, Rule
from roundsman.testing.rules.reading import (
    agents,
    functions,
    mappings_in,
    roles,
    variables,
)
from roundsman.testing.stack.template import Document, Json, part

RESOURCES = 500
"""In one template; each nested stack counts as one resource of its parent."""
ALL_RESOURCES = 2_500
"""Of a stack and its nested stacks together, since one deployment may change them all."""
OUTPUTS = 200
PARAMETERS = 200
TEMPLATE_BYTES = 1_000_000
POLICY_CHARACTERS = 10_240
"""In all inline policies of one role together; white space does not count."""
VARIABLES_BYTES = 4_096
"""In the names and values of all environment variables of one function together."""

_LONGEST = "x" * 160
"""In place of a value that only a deployment knows: as long as the longest ARN of a stack."""


def template_sizes(application: Application) -> list[str]:
    """The template has no more resources, outputs, parameters and bytes than CloudFormation takes,
    and neither do all of its nested stacks together.

    Each agent is one resource and one output of the template, and some twenty of its own stack.
    """
    root, template = application.root, application.template
    blocks = len(agents(template)) + 1
    every = len(part(template, "Resources")) + blocks
    sizes = (
        ("resources", len(part(root, "Resources")), RESOURCES),
        ("outputs", len(part(root, "Outputs")), OUTPUTS),
        ("parameters", len(part(root, "Parameters")), PARAMETERS),
        ("bytes", len(json.dumps(root)), TEMPLATE_BYTES),
        ("resources with its nested stacks", every, ALL_RESOURCES),
    )
    return [
        f"the template has {size} {unit}, and CloudFormation takes {most}: put a part of it into "
        "a stack of its own"
        for unit, size, most in sizes
        if size > most
    ]


def policy_sizes(application: Application) -> list[str]:
    """The inline policies of a role fit in IAM's limit, however long the names are."""
    problems = list[str]()
    for name, role in roles(application.template).items():
        policies = mappings_in(role.get("Policies"))
        size = sum(len(_compact(policy.get("PolicyDocument"))) for policy in policies)
        if size > POLICY_CHARACTERS:
            problems.append(
                f"{name}: its inline policies may have {size} characters, and IAM takes "
                f"{POLICY_CHARACTERS}: name resources by a pattern, or attach a managed policy"
            )
    return problems


def variable_sizes(application: Application) -> list[str]:
    """The environment variables of a function fit in Lambda's limit."""
    problems = list[str]()
    for name in functions(application.template):
        values = variables(application.template, name)
        size = sum(len(key) + len(_text(_longest(value))) for key, value in values.items())
        if size > VARIABLES_BYTES:
            problems.append(
                f"{name}: its environment variables may have {size} bytes, and Lambda takes "
                f"{VARIABLES_BYTES}: keep large settings elsewhere"
            )
    return problems


def _compact(document: Json) -> str:
    return json.dumps(_longest(document), separators=(",", ":"))


def _text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _longest(value: Json) -> Json:
    """The value with each intrinsic function replaced by the longest text that it may become."""
    match value:
        case {"Fn::Sub": str(text), **others} if not others:
            return re.sub(r"\$\{[^}]*\}", "x" * 40, text)
        case dict() if _is_intrinsic(value):
            return _LONGEST
        case dict():
            return {key: _longest(inner) for key, inner in value.items()}
        case list():
            return [_longest(inner) for inner in value]
        case _:
            return value


def _is_intrinsic(value: Document) -> bool:
    return len(value) == 1 and next(iter(value)).startswith(("Ref", "Fn::"))


RULES: tuple[Rule, ...] = (template_sizes, policy_sizes, variable_sizes)
