"""Finds the locked requirements that the package contains."""

from importlib.resources import files
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]
IN_THE_REPOSITORY = {
    "core-layer.txt": REPOSITORY / "layers" / "core" / "requirements.txt",
    "emulator.txt": REPOSITORY / "requirements" / "emulator.txt",
    "lambda-runtime.txt": REPOSITORY / "requirements" / "lambda-runtime.txt",
}


def lock(name: str) -> Path:
    """Return the path of a file with locked requirements. Raises KeyError for an unknown name."""
    packed = Path(str(files("roundsman_console") / "locks" / name))
    return packed if packed.is_file() else IN_THE_REPOSITORY[name]
