"""Every interleaving has its tests."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.world.stories import STORIES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "explanation" / "reliability.md"


@cache
def names_in(file: str) -> frozenset[str]:
    """The names of a file's test functions."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    found = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
    return frozenset(name for name in found if name.startswith("test_"))


def test_there_are_as_many_stories_as_ways_to_break_such_a_system() -> None:
    assert len(STORIES) == 62
    assert len({story.sentence for story in STORIES}) == 62


@pytest.mark.parametrize("node", [node for story in STORIES for node in story.tests])
def test_every_test_that_a_story_names_is_there(node: str) -> None:
    file, _, name = node.partition("::")
    assert name in names_in(file)


def test_every_story_has_a_test_and_every_test_of_their_files_a_story() -> None:
    assert all(story.tests for story in STORIES)
    named = {node for story in STORIES for node in story.tests}
    files = {file for file in (node.partition("::")[0] for node in named) if HERE.name in file}
    here = {f"{file}::{name}" for file in files for name in names_in(file)}
    assert here <= named


def test_the_page_says_how_many_there_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert f"lists {len(STORIES)} sequences of events" in page
    tests = {node for story in STORIES for node in story.tests}
    assert f"| {len(STORIES)} stories, {len(tests)} tests, " in page
