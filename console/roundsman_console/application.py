"""The application whose stack is operated: its workflows, which say what an order must be."""

import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from roundsman.inspector.errors import InspectorError
from roundsman.model.workflow import Workflow
from roundsman.submission.events import EventReader

REGISTRY = Path("layers") / "workflows" / "workflows" / "registry.py"


def application_events() -> EventReader | None:
    """Return the reader of the events of the application in this folder or a parent of it.

    None if there is no application here. Raises InspectorError if its workflows cannot be imported.
    """
    here = Path.cwd()
    for folder in (here, *here.parents):
        if (folder / REGISTRY).is_file():
            return EventReader(_workflows(folder))
    return None


def _workflows(folder: Path) -> Mapping[str, Workflow]:
    layer = str((folder / REGISTRY).parents[1])
    if layer not in sys.path:
        sys.path.insert(0, layer)
    try:
        found = import_module("workflows.registry").WORKFLOWS
    except Exception as error:  # the module is the application's, and may raise anything
        raise InspectorError(
            f"The workflows in {REGISTRY} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    if not isinstance(found, dict) or not all(isinstance(w, Workflow) for w in found.values()):
        raise InspectorError(f"WORKFLOWS in {REGISTRY} must be a dict of workflows, by name.")
    return found
