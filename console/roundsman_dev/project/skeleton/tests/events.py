"""The orders of events/ that the tests send."""

import json
from pathlib import Path

from roundsman import Json, Workflow
from workflows.registry import WORKFLOWS

FOLDER = Path(__file__).parents[1] / "events"


def event_file(workflow: Workflow) -> Path:
    """The order of a workflow: first.json of the first one, WORKFLOW.json of another one."""
    first = next(iter(WORKFLOWS.values()))
    return FOLDER / ("first.json" if workflow == first else f"{workflow.name}.json")


def read_event(path: Path) -> dict[str, Json]:
    """The order in a file."""
    order: dict[str, Json] = json.loads(path.read_text(encoding="utf-8"))
    return order
