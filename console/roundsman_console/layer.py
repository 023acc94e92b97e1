"""Builds the core layer of an application: `python -m roundsman_console.layer FOLDER`.

The layer has the package roundsman as it is installed in this Python, without what only developers
and operators use, and the locked libraries that it needs.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

import roundsman
from roundsman_console.locks_folder import lock

NOT_ON_LAMBDA = ("testing", "inspector")
PURE_PYTHON = ("--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none")


def build(folder: Path, python: str) -> None:
    """Write the layer into `folder`; `python` has pip, and its bytecode is put beside the modules.

    Raises CalledProcessError if pip fails.
    """
    target = folder / "python"
    target.mkdir(parents=True, exist_ok=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    requirements = ["--requirement", str(lock("core-layer.txt")), "--target", str(target)]
    subprocess.run([*pip, *PURE_PYTHON, *requirements], check=True)
    source = Path(roundsman.__file__).parent
    ignored = shutil.ignore_patterns("__pycache__", *NOT_ON_LAMBDA)
    shutil.copytree(source, target / "roundsman", ignore=ignored, dirs_exist_ok=True)
    for unused in [target / "bin", *target.rglob("tests"), *target.rglob("__pycache__")]:
        shutil.rmtree(unused, ignore_errors=True)
    # Where the runtime's Python is the same, no cold start compiles anything; any other ignores it.
    compiled = ["-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
    places = ["-s", str(target), "-p", "/opt/python", str(target)]
    subprocess.run([python, *compiled, *places], check=True)


def main() -> None:
    """Read the arguments, and build the layer."""
    parser = argparse.ArgumentParser(prog="python -m roundsman_console.layer", description=__doc__)
    parser.add_argument("folder", type=Path, help="the folder that becomes the layer")
    parser.add_argument("--python", default=sys.executable, help="a Python with pip")
    asked = parser.parse_args()
    build(asked.folder, asked.python)


if __name__ == "__main__":
    main()
