"""docs/tutorial.md: what it shows is what its commands make. tests/emulator runs all of it."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

import roundsman
from roundsman.model.states import TaskState
from roundsman_console.main import app
from tests.docs.test_glossary import ROWS
from tests.support.tutorial_page import TEXT, blocks, command_blocks, shown_code

PROJECT = Path(__file__).parents[2]
WRITES = ("roundsman init ", "roundsman add ")
MOST_CONCEPTS = 12
"""What a reader can learn before the first order of one's own."""
CONCEPTS = {
    *(row[0] for row in ROWS),
    *roundsman.__all__,
    *(str(state) for state in TaskState),
    *("agent", "circuit", "engine", "local AWS", "moto", "plan", "queue", "service", "stack"),
    *("stand-in", "supervisor", "template", "undone", "wheel", "world"),
}
"""The words of Roundsman: the glossary's, the names that a program imports, the states of an order,
and those that the glossary takes for granted."""


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
    assert {language for language, _ in blocks()} == {"sh", "python"}


def test_the_code_that_the_page_shows_is_in_the_files_of_the_application(shop: Path) -> None:
    texts = [path.read_text(encoding="utf-8") for path in shop.rglob("*") if path.is_file()]
    assert shown_code()
    for code in shown_code():
        assert any(code in text for text in texts), code


def test_the_folders_that_the_applications_own_page_names_are_there(shop: Path) -> None:
    lines = (shop / "README.md").read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| `")]
    cells = [line.split("|")[1].replace("`", "") for line in rows]
    names = [name.strip() for cell in cells for name in cell.split(", ")]
    assert len(names) > len(rows)
    missing = [name for name in names if not (shop / name).exists()]
    assert missing == ["vendor/"], "which is there if the wheel is on no index"


def test_the_wheel_of_the_page_is_that_of_this_version() -> None:
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]
    assert f'"roundsman-{version}-py3-none-any.whl[' in TEXT


def named(text: str) -> set[str]:
    """The concepts that a text names: one of two forms, such as Undone and undone, counts once."""
    return {
        concept.lower()
        for concept in CONCEPTS
        if re.search(rf"(?<![\w-]){re.escape(concept)}(?:s|es)?(?![\w-])", text, re.IGNORECASE)
    }


def test_a_reader_needs_few_concepts_before_the_first_order() -> None:
    before = TEXT.partition("roundsman submit")[0]
    assert {"workflow", "step", "agent", "order", "service", "stand-in"} <= named(before)
    assert len(named(before)) <= MOST_CONCEPTS, sorted(named(before))


def test_a_concept_is_found_in_each_of_its_forms() -> None:
    assert named("Two Steps, an agent's services and a `Callback`; stepping, ordered") == {
        *("step", "agent", "service", "callback"),
    }


def test_the_page_is_read_in_a_part_of_its_ten_minutes() -> None:
    """At 200 words a minute: four minutes, and the commands need the others."""
    assert len(TEXT.split()) <= 800
