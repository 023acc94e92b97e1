"""The project with another workflow than its own, to be deployed instead."""

import shutil
from pathlib import Path

from tests.emulator.conftest import PROJECT

WORKFLOWS = Path("layers") / "workflows" / "workflows"


def copied(folder: Path) -> Path:
    """The project as far as it is deployed."""
    folder.mkdir()
    shutil.copy(PROJECT / "template.yaml", folder)
    for part in ("functions", "layers", "stacks"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(PROJECT / part, folder / part, ignore=ignored)
    for shared in ("requirements", ".cache"):  # so that the emulator is not installed once more
        (folder / shared).symlink_to(PROJECT / shared)
    return folder


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert text.count(old) == 1, f"{path.name} no longer has {old!r}"
    path.write_text(text.replace(old, new))
