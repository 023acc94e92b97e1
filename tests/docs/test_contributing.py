"""CONTRIBUTING.md fits a screen, and its map leads to files and commands that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
ONE_SCREEN = 70  # lines
SHORT = {
    "core/": "layers/core/roundsman/",
    "console/": "console/roundsman_console/",
    "dev/": "console/roundsman_dev/",
    "testing/": "testing/roundsman_testing/",
}
"""What the map writes for a folder, as the page says above it."""

MAP = TEXT.partition("## To change X")[2].partition("\n## ")[0]
NAMED = re.findall(r"`((?:[a-z_]+/)+[\w.-]*|[a-z]+\.(?:py|toml|yml))`", MAP.partition("| --- ")[2])
GOALS = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


def test_the_page_fits_a_screen() -> None:
    assert len(TEXT.splitlines()) <= ONE_SCREEN


@pytest.mark.parametrize("path", sorted(set(NAMED)))
def test_each_path_of_the_map_exists(path: str) -> None:
    short = path.partition("/")[0] + "/"
    whole = SHORT[short] + path.removeprefix(short) if short in SHORT else path
    assert (ROOT / whole).exists(), whole


def test_the_map_names_paths() -> None:
    rows = [line for line in MAP.splitlines() if line.startswith("| ")][2:]
    assert len(NAMED) > 2 * (len(rows) - 2)


@pytest.mark.parametrize("goal", sorted(set(re.findall(r"`make ([a-z-]+)", TEXT))))
def test_each_command_of_the_page_is_a_goal_of_make(goal: str) -> None:
    assert goal in GOALS
