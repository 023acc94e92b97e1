"""The files of a proof's stack: the engine of this release, and the proof's own application."""

import hashlib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from roundsman_dev.project.files import fill, skeleton, stacks, write_new_folder

PACKAGE = "proof"
"""The name of the application's package on Lambda."""

_HERE = "roundsman_dev.prove.application"

AGENTS = ("stock", "payment", "courier")

_OF_SKELETON: Final = (
    Path("functions/scheduler/app.py"),
    Path("functions/supervisor/app.py"),
    Path("layers/core/Makefile"),
)
"""The files that a proof has as every application has them."""


def project_files() -> dict[Path, str]:
    """Return the texts of the project by path."""
    made = {path: text for path, text in skeleton() if path in _OF_SKELETON}
    made |= dict(stacks())
    folder = files("roundsman_dev") / "prove" / "application"
    made[Path("template.yaml")] = _read(folder / "template.yaml")
    layer = Path("layers/workflows")
    made[layer / "Makefile"] = _read(folder / "WorkflowsLayer.mk")
    for name, text in _modules(folder):
        made[layer / PACKAGE / name] = text
    made[Path("functions/submission/app.py")] = _read(folder / "submission_app.py.txt")
    of_agent = _read(folder / "agent_app.py.txt")
    for agent in AGENTS:
        made[Path("functions/agents") / agent / "app.py"] = fill(of_agent, {"agent": agent})
    return made


def write_project(folder: Path) -> None:
    """Write the project into a new folder. Raises ConsoleError if it is not empty."""
    write_new_folder(folder, project_files())


def template_hashes(made: Mapping[Path, str]) -> dict[str, str]:
    """Return the SHA-256 of each template of the files, by its path."""
    return {
        path.as_posix(): hashlib.sha256(text.encode()).hexdigest()
        for path, text in sorted(made.items())
        if path.suffix == ".yaml"
    }


def _modules(folder: Traversable) -> Iterator[tuple[str, str]]:
    for each in sorted(folder.iterdir(), key=lambda found: found.name):
        if each.name.endswith(".py"):
            yield each.name, _read(each).replace(_HERE, PACKAGE)


def _read(file: Traversable) -> str:
    return file.read_text(encoding="utf-8")
