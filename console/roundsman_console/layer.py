"""Builds the layers of an application: `python -m roundsman_console.layer FOLDER`.

The core layer has the package roundsman as it is installed in this Python, without what only
developers and operators use, and the locked libraries that it needs. With `--workflows`, it is the
layer of the application's own workflows, and of the libraries in its requirements.txt.
"""

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import roundsman
from roundsman_console.locks_folder import lock

NOT_ON_LAMBDA = ("testing", "inspector")
PURE_PYTHON = ("--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none")


def build_core(folder: Path, python: str) -> None:
    """Write the core layer into `folder`.

    `python` has pip; its bytecode is put beside the modules. Raises CalledProcessError if pip
    fails.
    """
    package = Path(roundsman.__file__).parent
    _build(folder, python, package, lock("core-layer.txt"), NOT_ON_LAMBDA)


def build_workflows(folder: Path, python: str, source: Path) -> None:
    """Write the layer of the workflows in `source` into `folder`. As `build_core`."""
    _build(folder, python, source / "workflows", source / "requirements.txt")


def _build(
    folder: Path, python: str, package: Path, requirements: Path, left_out: Sequence[str] = ()
) -> None:
    """Write a layer of the package and its libraries.

    Only wheels that run on every Python and processor are taken, so that any host builds for any
    runtime.
    """
    target = folder / "python"
    target.mkdir(parents=True, exist_ok=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    libraries = ["--requirement", str(requirements), "--target", str(target)]
    subprocess.run([*pip, *PURE_PYTHON, *libraries], check=True)
    ignored = shutil.ignore_patterns("__pycache__", *left_out)
    shutil.copytree(package, target / package.name, ignore=ignored, dirs_exist_ok=True)
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
    parser.add_argument(
        "--workflows",
        type=Path,
        metavar="SOURCE",
        help="build the layer of the workflows in this folder, with its requirements.txt",
    )
    asked = parser.parse_args()
    if asked.workflows is None:
        build_core(asked.folder, asked.python)
    else:
        build_workflows(asked.folder, asked.python, asked.workflows)


if __name__ == "__main__":
    main()
