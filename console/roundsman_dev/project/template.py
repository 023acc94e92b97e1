"""Reads the blocks of an application's template, in whatever YAML style they are written."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from roundsman_console.base.errors import ConsoleError

if TYPE_CHECKING:
    from yaml import Node


@dataclass(frozen=True)
class TemplateNames:
    """The names of a template's parameters, resources and outputs."""

    parameters: frozenset[str] = frozenset()
    agents: Mapping[str, str | None] = field(default_factory=dict)
    """By the name of each resource: the agent of its block; None if it is no block of an agent."""
    outputs: frozenset[str] = frozenset()


def read_names(template: str) -> TemplateNames:
    """Return the names of a template.

    Raises ConsoleError if it is not YAML, has no Resources, or has a name twice: YAML's readers
    take the last one then.
    """
    try:
        import yaml
    except ImportError as error:
        raise ConsoleError(
            f"Reading template.yaml needs {error.name}: install roundsman[cli]."
        ) from error
    try:
        root = yaml.compose(template, Loader=yaml.SafeLoader)
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        raise ConsoleError(f"template.yaml is not valid YAML: {reason}") from error
    sections = _items(root, "template.yaml")
    if "Resources" not in sections:
        raise ConsoleError("template.yaml is no SAM template: it has no Resources.")
    resources = _items(sections["Resources"], "Resources")
    return TemplateNames(
        frozenset(_items(sections.get("Parameters"), "Parameters")),
        {name: _agent_of(block) for name, block in resources.items()},
        frozenset(_items(sections.get("Outputs"), "Outputs")),
    )


def _agent_of(block: "Node") -> str | None:
    values = _items(_items(block, "a block").get("Properties"), "Properties")
    agent = _items(values.get("Parameters"), "Parameters").get("Agent")
    return agent.value if agent is not None and isinstance(agent.value, str) else None


def _items(node: "Node | None", where: str) -> "dict[str, Node]":
    """The values of a mapping by their keys; empty for anything else."""
    from yaml import MappingNode

    found: dict[str, Node] = {}
    for key, value in node.value if isinstance(node, MappingNode) else ():
        if key.value in found:
            raise ConsoleError(
                f"template.yaml, line {key.start_mark.line + 1}: {where} has {key.value} twice. "
                "Remove one of them."
            )
        found[key.value] = value
    return found
