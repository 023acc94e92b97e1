"""The agents of functions/agents, as the tests run them."""

from importlib import import_module
from pathlib import Path

from roundsman import Agent, Workflow

PROJECT = Path(__file__).parents[1]
FOLDER = PROJECT / "functions" / "agents"


def _agent(name: str) -> Agent:
    found = getattr(import_module(f"functions.agents.{name}.app"), name)
    assert isinstance(found, Agent)
    return found


AGENTS = [_agent(path.parent.name) for path in sorted(FOLDER.glob("*/app.py"))]


def agents_of(workflow: Workflow) -> list[Agent]:
    """The agents that perform steps of the workflow, or steps that may be added."""
    names = {name for step in workflow.all_steps for name in step.agent_names()}
    return [agent for agent in AGENTS if agent.name in names]
