"""The agents of functions/agents, as the tests run them."""

from importlib import import_module
from pathlib import Path

from roundsman import Agent

FOLDER = Path(__file__).parents[1] / "functions" / "agents"


def _agent(name: str) -> Agent:
    found = getattr(import_module(f"functions.agents.{name}.app"), name)
    assert isinstance(found, Agent)
    return found


AGENTS = [_agent(path.parent.name) for path in sorted(FOLDER.glob("*/app.py"))]
