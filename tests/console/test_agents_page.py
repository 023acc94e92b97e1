"""AGENTS.md of a new application: what it says works, from its first command to its last."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from roundsman_dev.project.create import create

PROJECT = Path(__file__).parents[2]
INSTALLED = os.pathsep.join(str(PROJECT / part) for part in ("layers/core", "console", "testing"))
MODULE = Path("layers/workflows/workflows/purchase.py")
AGENT = Path("functions/agents/letters/app.py")
TEST = Path("tests/test_letters.py")
ONLY_STARTED = {"make test", "make deployed"}
"""Other tests run them to their end: of applications on moto, and of the tutorial."""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """An application whose environment is that of this test."""
    folder = tmp_path / "shop"
    create(folder, agents=["stock", "payment"], workflows=["purchase"], version="0.1.0")
    programs = {
        "python": f'exec {shlex.quote(sys.executable)} "$@"',
        "roundsman": f"exec {shlex.quote(sys.executable)} -c "
        "'from roundsman_console.main import app; app()' \"$@\"",
    }
    (folder / ".venv/bin").mkdir(parents=True)
    for name, script in programs.items():
        (folder / ".venv/bin" / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / ".venv/bin" / name).chmod(0o755)
    for stamp in (".installed", ".unit"):
        (folder / ".venv" / stamp).touch()
    return folder


def commands(page: str) -> list[str]:
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    return [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]


def run(folder: Path, command: str) -> str:
    done = subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
            "PYTHONPATH": INSTALLED,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def put_in(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


@pytest.mark.exhaustive
def test_the_step_of_the_page_is_added_and_every_command_of_the_page_runs(shop: Path) -> None:
    page = (shop / "AGENTS.md").read_text(encoding="utf-8")
    step, functions, test = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    typed = commands(page)
    assert len(typed) == 6
    adds = [command for command in typed if " add " in command]
    for command in adds:
        run(shop, command)
    put_in(shop / MODULE, "purchase = Workflow(", f"{step}\npurchase = Workflow(")
    put_in(shop / MODULE, "purchase_payment)", "purchase_payment, send_letter)")
    imported = "from workflows.returns import returns_letters\n"
    put_in(shop / AGENT, imported, f"from workflows.purchase import send_letter\n{imported}")
    put_in(shop / AGENT, "\nhandler = ", f"\n{functions}\n\nhandler = ")
    (shop / TEST).write_text(test, encoding="utf-8")
    said = {
        command: run(shop, f"{command} --dry-run" if command in ONLY_STARTED else command)
        for command in typed
        if command not in adds
    }
    assert "5 passed" in said["make unit"], "two of each workflow, and that of the page"


@pytest.mark.exhaustive
def test_every_command_of_the_page_is_a_goal_of_make_or_a_verb(shop: Path) -> None:
    for command in commands((shop / "AGENTS.md").read_text(encoding="utf-8")):
        if command.startswith("make "):
            run(shop, f"{command} --dry-run")
        else:
            run(shop, f"{' '.join(command.split()[:3])} --help")


def test_the_files_that_the_page_names_are_there(shop: Path) -> None:
    page = (shop / "AGENTS.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+[\w.]*|[\w-]+\.(?:md|yaml))`", page))
    written = {str(AGENT), str(TEST), "events/WORKFLOW.json"}
    assert written < named
    assert [name for name in sorted(named - written) if not (shop / name).exists()] == []
