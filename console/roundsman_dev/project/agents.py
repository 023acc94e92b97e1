"""Adds an agent to an application: its block in the template, and its code."""

import re
from collections.abc import Mapping
from pathlib import Path

from roundsman.aws.queue_urls import agent_title
from roundsman_console.base.errors import ConsoleError, InvalidArgument
from roundsman_dev.project.files import fill, part
from roundsman_dev.project.names import check_agent
from roundsman_dev.project.template import read_names

TEMPLATE = Path("template.yaml")
BLOCKS_END = "  # New agents are added above this line by `roundsman add agent`.\n"
OUTPUTS_END = "  # The outputs of new agents are added above this line by `roundsman add agent`.\n"


def code_of(agent: str) -> Path:
    """Return the path of the agent's code."""
    return Path("functions") / "agents" / agent / "app.py"


def with_agent(template: str, agent: str) -> str:
    """Return the template with the agent's block and output; unchanged if it has them.

    Everything else in the template stays as it is. Raises InvalidArgument for a name that is
    invalid or that the template gives to something else, and ConsoleError if the template is
    unreadable or lacks the line above which a block or an output belongs.
    """
    names = read_names(template)
    check_agent(agent, [name for name in names.agents.values() if name is not None])
    if "Engine" not in names.agents:
        raise ConsoleError(
            "template.yaml has no block Engine, whose outputs the block of an agent needs. Compare "
            "it with one that `roundsman init` makes, and add the block."
        )
    title = agent_title(agent)
    if title in names.parameters:
        raise InvalidArgument(
            f"An agent cannot be named {agent}: template.yaml has a parameter {title}, and a block "
            "may not have the name of a parameter."
        )
    if names.agents.get(title, agent) != agent:
        raise InvalidArgument(
            f"An agent cannot be named {agent}: template.yaml has a block {title} of something "
            "else. Rename that one, or choose another name."
        )
    values = {"agent": agent, "title": title}
    text = template
    if title not in names.agents:
        text = _insert(text, fill(part("agent_block.yaml"), values), BLOCKS_END, title)
    if f"{title}Agent" not in names.outputs:
        text = _insert(text, fill(part("agent_output.yaml"), values), OUTPUTS_END, title)
    return text


def agent_files(template: str, agent: str, existing: Mapping[Path, str]) -> dict[Path, str]:
    """Return the files that adding the agent writes; empty if there is nothing to do."""
    found: dict[Path, str] = {}
    new = with_agent(template, agent)
    if new != template:
        found[TEMPLATE] = new
    if code_of(agent) not in existing:
        found[code_of(agent)] = fill(part("agent_app.py"), {"agent": agent})
    return found


def undeclared(template: str) -> list[str]:
    """Return the parameters that the block of an agent names and the template does not declare."""
    names = re.findall(r": !Ref (\w+)$", part("agent_block.yaml"), re.MULTILINE)
    declared = read_names(template).parameters
    return [name for name in names if name not in declared]


def _insert(text: str, block: str, marker: str, title: str) -> str:
    at = text.find(marker)
    if at < 0:
        raise ConsoleError(
            f"template.yaml has no line {marker.strip()!r}, above which the block {title} belongs. "
            "Add the line and run the command again."
        )
    return text[:at] + block + text[at:]
