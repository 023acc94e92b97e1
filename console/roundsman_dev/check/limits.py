"""Limits of AWS that a large application reaches: the sizes of templates.

Each limit is one that AWS does not raise. A deployment beyond it fails, some of them halfway.
"""

import json

from roundsman_dev.check.application import Application, Rule
from roundsman_dev.check.reading import agents
from roundsman_dev.template import part

RESOURCES = 500
"""In one template; each nested stack counts as one resource of its parent."""
ALL_RESOURCES = 2_500
"""Of a stack and its nested stacks together, since one deployment may change them all."""
OUTPUTS = 200
PARAMETERS = 200
TEMPLATE_BYTES = 1_000_000


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


RULES: tuple[Rule, ...] = (template_sizes,)
