"""What `sam build` makes of the layers' sources, with the installation of libraries left out."""

import marshal
import shutil
import subprocess
import sys
from importlib.util import cache_from_source
from pathlib import Path
from types import CodeType

import pytest

from tests.project import TEMPLATE

LAYERS = {"core": ("CoreLayer", "roundsman"), "workflows": ("WorkflowsLayer", "workflows")}


def build(layer: str, source: Path, artifacts: Path, python: str = "true") -> str:
    """Run the layer's build as `sam build` does; `true` stands for an installer with no work.

    Returns what the build printed.
    """
    target, _ = LAYERS[layer]
    done = subprocess.run(
        ["make", f"build-{target}", f"ARTIFACTS_DIR={artifacts}", f"LAYER_PYTHON={python}"],
        cwd=source,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.fixture(params=list(LAYERS))
def layer(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def source(layer: str, tmp_path: Path) -> Path:
    """A copy of the layer's sources, as `sam build` makes one."""
    ignored = shutil.ignore_patterns("__pycache__")
    copied = shutil.copytree(TEMPLATE.parent / "layers" / layer, tmp_path / layer, ignore=ignored)
    return Path(copied)


def test_a_layer_holds_its_package_where_python_looks_for_it(
    layer: str, source: Path, tmp_path: Path
) -> None:
    _, package = LAYERS[layer]
    build(layer, source, tmp_path / "built")
    built = tmp_path / "built" / "python" / package
    expected = {path.relative_to(source / package) for path in (source / package).rglob("*.py")}
    assert {path.relative_to(built) for path in built.rglob("*.py")} == expected
    assert Path("__init__.py") in expected


def test_a_layer_holds_neither_caches_nor_tests_nor_its_own_build_files(
    layer: str, source: Path, tmp_path: Path
) -> None:
    _, package = LAYERS[layer]
    for clutter in ("__pycache__", "tests"):
        (source / package / "deep" / clutter).mkdir(parents=True)
        (source / package / "deep" / clutter / "left_over.py").touch()
    build(layer, source, tmp_path / "built")
    names = {path.name for path in (tmp_path / "built").rglob("*")}
    assert not names & {"__pycache__", "tests", "left_over.py", "Makefile", "requirements.txt"}


def test_a_layer_takes_libraries_that_run_on_every_python_only(
    layer: str, source: Path, tmp_path: Path
) -> None:
    printed = build(layer, source, tmp_path / "built", python="echo")
    assert "--only-binary=:all: --platform any --implementation py --abi none" in printed
    assert "--requirement requirements.txt" in printed


HEAD = 16  # bytes of a bytecode file before its code: magic, flags, hash


def test_a_layer_holds_bytecode_that_knows_where_it_will_lie_and_is_never_checked(
    layer: str, source: Path, tmp_path: Path
) -> None:
    _, package = LAYERS[layer]
    compiles_only = tmp_path / "python"  # an installer with no work, and a real compiler
    compiles_only.write_text(f'#!/bin/sh\n[ "$2" != compileall ] || exec {sys.executable} "$@"\n')
    compiles_only.chmod(0o755)
    build(layer, source, tmp_path / "built", python=str(compiles_only))
    built = tmp_path / "built" / "python"
    for module in (built / package).rglob("*.py"):
        found = Path(cache_from_source(str(module))).read_bytes()
        assert found[4:8] == b"\x01\x00\x00\x00", "by its hash, unchecked"
        code = marshal.loads(found[HEAD:])  # noqa: S302  # what was compiled a moment ago
        assert isinstance(code, CodeType)
        assert code.co_filename == f"/opt/python/{module.relative_to(built).as_posix()}"
