"""The subject of the rules: an application's template and its workflows."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from roundsman import Agent, Workflow
from roundsman_dev.template import Document, Template, mapping_of, part

ANY_ADDRESS = "https://service.test"
"""The value of every parameter without a default; these are the addresses of services."""


@dataclass(frozen=True)
class Application:
    """A template and the workflows that its agents perform."""

    template: Document
    """The plain CloudFormation that the template becomes with its parameters' defaults. Its nested
    stacks are put into it, and every Fn::FindInMap is replaced by its value."""
    workflows: tuple[Workflow, ...]
    agents: Mapping[str, Agent] | None = None
    """The agents as their code defines them, by name; None if the code was not read."""
    root: Document = field(default_factory=dict)
    """The template as it is written, with a block for each nested stack."""
    sources: Mapping[str, str] = field(default_factory=dict)
    """The text of each module of the agents, by its path in the project; empty if it was not read.
    """
    definitions: Mapping[str, str] = field(default_factory=dict)
    """The text of each module of the workflows, as `sources`."""
    folders: Mapping[str, str] = field(default_factory=dict)
    """The name of the agent that the app.py of each folder defines, by the folder's path in the
    project; empty if the code was not read."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """The requirements.txt of each folder of functions that has one, by the folder's path."""
    objections: tuple[str, ...] = ()
    """A sentence for each value that a block gives and its nested stack does not take."""
    events: Mapping[str, str] = field(default_factory=dict)
    """The text of each event file that must be an order of a workflow, by its path in the project;
    empty if it was not read."""
    names_by_key: Mapping[str, str] = field(default_factory=dict)
    """The name of the workflow of each key of WORKFLOWS; empty if the code was not read."""

    @classmethod
    def read(
        cls,
        path: Path,
        workflows: Iterable[Workflow],
        agents: Iterable[Agent] | None = None,
    ) -> "Application":
        """Read and translate a SAM template.

        Raises TemplateProblem if there is no SAM template at `path`.
        """
        template = Template.read(path)
        values = {
            name: ANY_ADDRESS
            for name, parameter in part(template.document, "Parameters").items()
            if "Default" not in mapping_of(parameter)
        }
        code = None if agents is None else {agent.name: agent for agent in agents}
        return cls(
            template.translate(values),
            tuple(workflows),
            code,
            template.written,
            objections=tuple(template.objections()),
        )


Rule: TypeAlias = Callable[[Application], list[str]]
"""A rule returns one sentence for each problem, and an empty list if there is none. It never raises
because of what a template contains. Its docstring says the rule and its reason."""
