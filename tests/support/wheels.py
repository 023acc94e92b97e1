"""The wheel of the package, built from the sources."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]


def build_wheel(folder: Path, sources: Path = PROJECT) -> Path:
    """Build the wheel into the folder. pip gets what builds it from its index."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    options = ["--no-deps", "--wheel-dir", str(folder)]
    subprocess.run([*command, *options, str(sources)], check=True)
    [wheel] = folder.glob("roundsman-*.whl")
    return wheel
