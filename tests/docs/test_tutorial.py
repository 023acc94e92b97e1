"""docs/tutorial.md: what it shows is what its commands make. tests/emulator runs all of it."""

import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from roundsman_console.main import app
from tests.support.tutorial_page import TEXT, blocks, command_blocks, shown_code

PROJECT = Path(__file__).parents[2]
WRITES = ("roundsman init ", "roundsman add ")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The application, made with the commands of the page that write files."""
    monkeypatch.chdir(tmp_path)
    lines = [line for block in command_blocks() for line in block.splitlines()]
    for line in lines:
        if line.startswith(WRITES):
            made = CliRunner().invoke(app, shlex.split(line)[1:])
            assert made.exit_code == 0, made.output
        elif line.startswith("cd "):
            monkeypatch.chdir(line.removeprefix("cd "))
    return Path.cwd()


def test_every_block_is_commands_or_code_and_none_is_missed() -> None:
    assert len(blocks()) == TEXT.count("```") / 2
    assert {language for language, _ in blocks()} == {"sh", "python", "yaml"}


def test_the_code_that_the_page_shows_is_in_the_files_of_the_application(shop: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in shop.rglob("*") if path.is_file()]
    assert shown_code()
    for code in shown_code():
        assert any(code in text for text in texts), code


def test_the_folders_that_the_page_names_are_there(shop: Path) -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| `")]
    names = [name for line in rows for name in line.split("|")[1].replace("`", "").split(", ")]
    assert len(names) > len(rows)
    assert [name for name in names if not (shop / name.strip()).exists()] == []


def test_the_wheel_of_the_page_is_that_of_this_version() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert f'"roundsman-{version}-py3-none-any.whl[' in TEXT
