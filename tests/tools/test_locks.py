"""The locks: hashed, without addresses, in agreement, and fit for building a layer on any host."""

import importlib.metadata
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LAYERS = {
    "layers/core/requirements.txt": "requirements/core-layer.in",
    "layers/workflows/requirements.txt": "requirements/workflows-layer.in",
}
LOCKS = sorted(
    [*LAYERS, *(f"requirements/{path.name}" for path in ROOT.glob("requirements/*.txt"))]
)


def entries(lock: str) -> list[str]:
    """Each requirement of a lock with its continuation lines, comments left out."""
    lines = [line for line in (ROOT / lock).read_text().splitlines() if not re.match(r"\s*#", line)]
    return "\n".join(lines).replace("\\\n", " ").splitlines()


def pinned(lock: str) -> dict[str, set[str]]:
    """The versions a lock pins for each name: more than one where markers distinguish them."""
    versions: dict[str, set[str]] = {}
    for entry in entries(lock):
        match = re.match(r"([a-z0-9-]+)(?:\[[^]]*\])?==([^ ;]+)", entry)
        assert match is not None, f"{lock}: {entry} is not pinned"
        versions.setdefault(match[1], set()).add(match[2])
    return versions


def asked_names(path: str) -> set[str]:
    """The packages that an input file asks for; the example's workflows layer needs none."""
    lines = (ROOT / path).read_text().splitlines()
    return {re.split(r"[^a-z0-9-]", line)[0] for line in lines if line and line[0] != "#"}


def test_the_core_layer_asks_for_libraries() -> None:
    assert asked_names(LAYERS["layers/core/requirements.txt"])


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_is_pinned_and_hashed_and_no_address_is_named(lock: str) -> None:
    asked = LAYERS.get(lock)
    assert entries(lock) or (asked is not None and not asked_names(asked))
    for entry in entries(lock):
        assert "--hash=sha256:" in entry, f"{lock}: {entry.split()[0]} has no hash"
        assert "://" not in entry, f"{lock}: {entry.split()[0]} names an address"
        assert not entry.lstrip().startswith("-"), f"{lock} has an option: {entry}"


@pytest.mark.parametrize("lock", LAYERS)
def test_a_layer_ships_pure_python_of_the_version_that_is_tested(lock: str) -> None:
    for name, versions in pinned(lock).items():
        installed = importlib.metadata.distribution(name)
        assert versions == {installed.version}, f"{name} is tested as {installed.version}"
        tags = re.findall(r"^Tag: (.+)$", installed.read_text("WHEEL") or "", re.MULTILINE)
        assert tags, f"{name} was not installed from a wheel"
        assert all(tag.endswith("-none-any") for tag in tags), f"{name} is not pure: {tags}"


@pytest.mark.parametrize("lock", LAYERS)
def test_a_layer_does_not_ship_what_the_lambda_runtime_has(lock: str) -> None:
    assert not pinned(lock).keys() & {"boto3", "botocore", "s3transfer"}


@pytest.mark.parametrize(("lock", "asked"), LAYERS.items())
def test_a_layer_ships_what_its_input_file_asks_for(lock: str, asked: str) -> None:
    assert asked_names(asked) <= pinned(lock).keys()


def test_the_package_asks_for_what_its_layers_ship() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = {line for path in LAYERS.values() for line in (ROOT / path).read_text().splitlines()}
    assert {line for line in asked if line and line[0] != "#"} <= set(project["dependencies"])


def test_what_a_developer_needs_is_locked_and_so_is_what_builds_the_package() -> None:
    """`make install` installs from the lock alone, and the package with --no-build-isolation."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = settings["project"]["optional-dependencies"].values()
    groups = settings["dependency-groups"].values()
    asked = [line for part in (*extras, *groups) for line in part if isinstance(line, str)]
    asked += settings["build-system"]["requires"]
    names = {re.split(r"[^a-z0-9-]", line)[0] for line in asked} - {"roundsman"}
    assert names <= pinned("requirements/dev.txt").keys()


def make(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--file", str(ROOT / "Makefile"), *arguments],
        cwd=folder,
        # Without the settings of a make that may be running this test.
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        check=False,
    )


def fake_python(folder: Path, script: str) -> Path:
    path = folder / "fake-python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_make_alone_lists_every_command() -> None:
    result = make(ROOT)
    commands = re.findall(r"^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert result.returncode == 0
    assert [line.split()[0] for line in result.stdout.splitlines()] == commands


def test_a_python_that_is_too_old_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.txt").touch()
    (tmp_path / "pyproject.toml").touch()
    old = fake_python(tmp_path, "exit 1")
    result = make(tmp_path, "install", f"PYTHON={old}")
    assert result.returncode != 0
    assert result.stderr.startswith(
        f"Roundsman needs Python 3.11 or newer; none of these is: {old}."
    )
    assert not (tmp_path / ".venv").exists()


def test_a_python_that_cannot_make_environments_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "dev.txt").touch()
    (tmp_path / "pyproject.toml").touch()
    bare = fake_python(tmp_path, '[ "$1" != -m ] || { mkdir -p .venv; exit 1; }')
    result = make(tmp_path, "install", f"PYTHON={bare}")
    assert result.returncode != 0
    assert "cannot make a virtual environment: install its venv module" in result.stderr
    assert not (tmp_path / ".venv").exists()
