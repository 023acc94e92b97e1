"""The wheel of the package, built from the sources."""

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

PROJECT = Path(__file__).parents[2]


PARTS = (
    *("pyproject.toml", "PACKAGE.md", "LICENSE", "stacks", "requirements"),
    *("console", "layers", "testing"),
)
"""All that the wheel is built from."""


def copy_sources(folder: Path) -> Path:
    """Copy what the wheel is built from into a new folder, where a test may change it."""
    folder.mkdir()
    for part in PARTS:
        if (PROJECT / part).is_dir():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(PROJECT / part, folder / part, ignore=ignored)
        else:
            shutil.copy(PROJECT / part, folder)
    return folder


def build_wheel(folder: Path, sources: Path = PROJECT) -> Path:
    """Build the wheel into the folder.

    pip gets what builds it from its index, unless it is here already.
    """
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--wheel-dir", str(folder)]
    if find_spec("hatchling") is not None:
        options.append("--no-build-isolation")
    subprocess.run([*command, *options, str(sources)], check=True)
    [wheel] = folder.glob("roundsman-*.whl")
    return wheel
