"""Builds the layers of an application: `python -m roundsman_console.layer FOLDER`.

The core layer has the package roundsman as it is installed in this Python, and the locked libraries
that it needs. With `--workflows`, it is the
layer of the application's own workflows, and of the libraries in its requirements.txt, in the
versions that this Python has for the tests or newer ones.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import Distribution, distributions
from pathlib import Path

import roundsman
from roundsman_console.base.locks_folder import lock

PURE_PYTHON = ("--only-binary=:all:", "--platform=any", "--implementation=py", "--abi=none")
_NOT_FOUND = re.compile(
    r"No matching distribution found for ([\w.-]+)"
    r"|ERROR: ([\w.]+)-\S*\.whl is not a supported wheel on this platform"
)
"""How pip names a library of which there is no pure Python."""

WHAT_TO_DO = (
    "A layer runs on every Python and processor, so it takes pure Python only. Take a library of "
    "pure Python, or, if only agents need it, move it to functions/agents/AGENT/requirements.txt, "
    "which `sam build` installs for the agent's function."
)


class LayerProblem(Exception):
    """A layer cannot be built, or would run other libraries than the tests. One sentence a line."""


def build_core(folder: Path, python: str) -> None:
    """Write the core layer into `folder`.

    `python` has pip; its bytecode is put beside the modules. Raises LayerProblem if a library
    cannot be installed or is not pure Python.
    """
    _build(folder, python, Path(roundsman.__file__).parent, lock("core-layer.txt"))


def build_workflows(folder: Path, python: str, source: Path) -> None:
    """Write the layer of the workflows in `source` into `folder`, and print its libraries.

    As `build_core`. Also raises LayerProblem if a library is older than the one that this Python
    has, which the tests use.
    """
    _build(folder, python, source / "workflows", source / "requirements.txt")
    tested = _libraries(sys.path)
    problems = list[str]()
    for name, taken in sorted(_libraries([str(folder / "python")]).items()):
        print(f"{name} {taken.version}{_beside(taken, tested.get(name))}")
        if name in tested and _release(taken) < _release(tested[name]):
            problems.append(_older(name, taken, tested))
    if problems:
        raise LayerProblem("\n".join(problems))


def _beside(taken: Distribution, tested: Distribution | None) -> str:
    if tested is None:
        return ", which this Python does not have for the tests"
    return "" if tested.version == taken.version else f", and the tests use {tested.version}"


def _older(name: str, taken: Distribution, tested: Mapping[str, Distribution]) -> str:
    """Say why the layer would get an older library, and what to do."""
    wanted = tested[name].version
    found = f"{name}: the layer would get {taken.version}, and the tests use {wanted}."
    compiled = list(_compiled(name, tested, set()))
    if name in compiled:
        return f"{found} {name} {wanted} is not pure Python. {WHAT_TO_DO}"
    if compiled:
        return (
            f"{found} {name} {wanted} needs {', '.join(compiled)}, which is not pure Python. "
            f"{WHAT_TO_DO}"
        )
    return (
        f"{found} Either requirements.txt of the layer allows no newer one, or {wanted} has no "
        f"wheel of pure Python. Install {taken.version} for the tests, or allow {wanted}."
    )


def _compiled(name: str, tested: Mapping[str, Distribution], seen: set[str]) -> Iterator[str]:
    """Yield the library and those that it needs, as far as they are not pure Python."""
    if name in seen or name not in tested:
        return
    seen.add(name)
    if not _is_pure(tested[name]):
        yield name
    for needed in tested[name].requires or ():
        if "extra ==" not in needed:
            yield from _compiled(_normal(re.split(r"[^\w.-]", needed)[0]), tested, seen)


def _is_pure(library: Distribution) -> bool:
    """Return whether the wheel of a library runs everywhere. One without tags counts as such."""
    tags = re.findall(r"^Tag: (.+)$", library.read_text("WHEEL") or "", re.MULTILINE)
    return all(tag.endswith("-none-any") for tag in tags)


def _libraries(path: Sequence[str]) -> dict[str, Distribution]:
    """Return the first library of each name on a path, as an import finds it."""
    found: dict[str, Distribution] = {}
    for each in distributions(path=list(path)):
        found.setdefault(_normal(each.name), each)
    return found


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _release(library: Distribution) -> list[int]:
    """Return the numbers of a version, as far as they order releases: `2.0` is `2`."""
    numbers = re.match(r"[\d.]*", library.version)
    found = [int(each) for each in (numbers[0] if numbers else "").split(".") if each]
    while found and not found[-1]:
        found.pop()
    return found


def _build(folder: Path, python: str, package: Path, requirements: Path) -> None:
    """Write a layer of the package and its libraries.

    Only wheels that run on every Python and processor are taken, so that any host builds for any
    runtime.
    """
    target = folder / "python"
    target.mkdir(parents=True, exist_ok=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    libraries = ["--requirement", str(requirements), "--target", str(target)]
    done = subprocess.run(
        [*pip, *PURE_PYTHON, *libraries], check=False, stderr=subprocess.PIPE, text=True
    )
    if done.returncode:
        raise LayerProblem(_refusal(done.stderr))
    if compiled := [n for n, each in _libraries([str(target)]).items() if not _is_pure(each)]:
        raise LayerProblem(f"{', '.join(compiled)}: not pure Python. {WHAT_TO_DO}")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(package, target / package.name, ignore=ignored, dirs_exist_ok=True)
    for unused in [target / "bin", *target.rglob("tests"), *target.rglob("__pycache__")]:
        shutil.rmtree(unused, ignore_errors=True)
    # Where the runtime's Python is the same, no cold start compiles anything; any other ignores it.
    compiled = ["-m", "compileall", "-qq", "--invalidation-mode", "unchecked-hash"]
    places = ["-s", str(target), "-p", "/opt/python", str(target)]
    subprocess.run([python, *compiled, *places], check=True)


def _refusal(complaint: str) -> str:
    """Return what to do about a failure of pip."""
    if found := _NOT_FOUND.search(complaint):
        name = _normal(found[1] or found[2])
        return (
            f"{name}: there is no pure Python of a version that requirements.txt allows, or no "
            f"such library. {WHAT_TO_DO}"
        )
    return f"pip cannot install the libraries of the layer:\n{complaint.strip()}"


def main() -> None:
    """Read the arguments, and build the layer. A problem is printed, and the exit code is 1."""
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
    try:
        if asked.workflows is None:
            build_core(asked.folder, asked.python)
        else:
            build_workflows(asked.folder, asked.python, asked.workflows)
    except LayerProblem as problem:
        sys.exit(str(problem))


if __name__ == "__main__":
    main()
